"""Large graphs: a sample of the nodes learns as a small graph would, and a network that it taught answers for all the others.

So what grows with the number of nodes is one pass over their features and one over their principal rows, on a GPU too. Up to
`EXACT_NODES` nodes everybody is in the sample.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, dropout
from torch.nn.init import xavier_uniform_

from gcon.learn import sizes
from gcon.learn.encoder import Encoder
from gcon.machine import threads_for
from gcon.nodes import PublicNodes

_TRAINING_SHARE, _VALIDATION_SHARE = 0.6, 0.2  # of the sample, at most; other nodes fill it
_HIDDEN, _STEPS, _BATCH, _LEARNING_RATE, _WEIGHT_DECAY = 128, 1000, 1024, 3e-3, 1e-5
_SAMPLE_SEED, _NETWORK_SEED = 2, 5


@final
@dataclass(frozen=True, eq=False)
class Sample:
    """The nodes that teach and are taught.

    Attributes:
        nodes: a table of them.
        places: where they are among all nodes, rising; None for everybody.
        device: where networks of a large graph learn and answer.
    """

    nodes: PublicNodes
    places: Tensor | None
    device: str

    @classmethod
    def of(cls, nodes: PublicNodes, device: str = "cpu") -> Sample:
        """Everybody, or of many nodes: labelled ones as far as they fit, validation nodes, and others."""
        if nodes.num_nodes <= sizes.EXACT_NODES:
            return cls(nodes, None, device)
        free, size = ~(nodes.train_mask | nodes.validation_mask), sizes.SAMPLE_NODES
        training = _some(nodes.train_mask, int(_TRAINING_SHARE * size))
        validation = _some(nodes.validation_mask, int(_VALIDATION_SHARE * size))
        places = torch.cat([training, validation, _some(free, size - len(training) - len(validation))]).sort().values
        return cls(part_of(nodes, places), places, device)

    def at(self, table: Tensor) -> Tensor:
        """The sampled nodes' rows of a table of all nodes."""
        return table if self.places is None else table[self.places]

    def everywhere(self, answers: Tensor, rows: Tensor) -> Tensor:
        """Class probabilities of all nodes from those of the sampled ones, which stay; of a large graph float32.

        Args:
            answers: of the sampled nodes.
            rows: of all nodes: what the network answers from.
        """
        if self.places is None:
            return answers
        network = _taught(rows[self.places].to(self.device), answers.float().to(self.device), self.device)
        given = network.on(self.device).probabilities(rows)
        given[self.places] = answers.float()
        return given


def part_of(nodes: PublicNodes, places: Tensor) -> PublicNodes:
    """A table of some of the nodes."""
    columns = ("features", "labels", "train_mask", "validation_mask", "test_mask")
    return replace(nodes, **{name: getattr(nodes, name)[places] for name in columns})


def _some(mask: Tensor, most: int) -> Tensor:
    places = mask.nonzero()[:, 0]
    return places[sizes.sampled(len(places), most, seed=_SAMPLE_SEED)]


def _taught(rows: Tensor, answers: Tensor, device: str) -> Encoder:
    """A perceptron that answers as the sample does: its soft answers are the targets, so it is as sure as they are."""
    generator = torch.Generator().manual_seed(_NETWORK_SEED)
    shapes = (rows.shape[1], _HIDDEN), (_HIDDEN, answers.shape[1])
    first, second = (xavier_uniform_(torch.empty(shape), generator=generator).to(device) for shape in shapes)
    parameters = [first, first.new_zeros(_HIDDEN), second, second.new_zeros(answers.shape[1])]
    for parameter in parameters:
        parameter.requires_grad_(True)
    optimizer = torch.optim.Adam(parameters, lr=_LEARNING_RATE, weight_decay=_WEIGHT_DECAY)
    slower = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1.0, end_factor=0.0, total_iters=_STEPS)
    scale = 1 / float(rows.std()) if bool(rows.any()) else 1.0  # rows of length 1 have small entries
    with threads_for(_BATCH, rows.shape[1]), torch.random.fork_rng([device] if device != "cpu" else []):
        torch.manual_seed(_NETWORK_SEED)
        for some in torch.randint(len(rows), (_STEPS, _BATCH), generator=generator).to(device):
            hidden = dropout(torch.relu(rows[some] * scale @ parameters[0] + parameters[1]))
            optimizer.zero_grad()
            cross_entropy(hidden @ parameters[2] + parameters[3], answers[some]).backward()
            optimizer.step()
            slower.step()
    hidden_weight, hidden_bias, head_weight, head_bias = (each.detach().cpu() for each in parameters)
    return Encoder(
        hidden_weight=hidden_weight * scale,
        hidden_bias=hidden_bias,
        head_weight=head_weight,
        head_bias=head_bias,
        unit_input=False,
        centre=None,
    )
