"""Which nodes learn, and which of them choose.

Up to `EXACT_NODES` nodes everything is computed from all of them at once. Of a large graph a sample learns as a small graph
would, and a network that it taught answers for all the others: what grows with the number of nodes is one pass over their
features and one over their principal rows, in blocks, on a GPU too. Where nobody set labels aside for choices, some are, if
there are enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, dropout
from torch.nn.init import xavier_uniform_

from gcon.learn.encoder import Encoder
from gcon.machine import leave_gpus_alone, threads_for
from gcon.nodes import PublicNodes

COMPARED_NODES = 8_000  # above: nearest features by cells; all pairs of more would take a fifth of a training
EXACT_NODES = 50_000
SAMPLE_NODES = 25_000
BLOCK_NODES = 16_384
_TRAINING_SHARE, _VALIDATION_SHARE = 0.6, 0.2  # of the sample, at most; other nodes fill it
_SAMPLE_SEED, _NETWORK_SEED, _SPARED_SEED = 2, 5, 3
_HIDDEN, _STEPS, _BATCH, _LEARNING_RATE, _WEIGHT_DECAY = 128, 1000, 1024, 3e-3, 1e-5
_ENOUGH, _ENOUGH_PER_CLASS = 500, 50  # labelled nodes from which some can be spared
_SPARED, _MOST_SPARED = 0.2, 500


def blocks(num_nodes: int) -> Iterator[slice]:
    """All nodes, a block at a time; in one block unless they are too many."""
    size = BLOCK_NODES if num_nodes > EXACT_NODES else max(num_nodes, 1)
    return (slice(start, min(start + size, num_nodes)) for start in range(0, num_nodes, size))


def sampled(count: int, most: int, *, seed: int) -> Tensor:
    """The places of at most so many of many things, at random: the same ones every time, in their order."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed))[:most].sort().values


def with_validation(nodes: PublicNodes) -> PublicNodes:
    """The same nodes; without validation nodes a fifth of the labelled ones, at most 500, become validation nodes.

    Few labels are worth more as lessons than as judges: then nothing is set aside. Reads public labels.
    """
    labelled = int(nodes.train_mask.sum())
    if bool(nodes.validation_mask.any()) or labelled < max(_ENOUGH, _ENOUGH_PER_CLASS * nodes.num_classes):
        return nodes
    spared = sampled(labelled, min(int(_SPARED * labelled), _MOST_SPARED), seed=_SPARED_SEED)
    mask = torch.zeros_like(nodes.train_mask)
    mask[nodes.train_mask.nonzero()[:, 0][spared]] = True
    return replace(nodes, train_mask=nodes.train_mask & ~mask, validation_mask=mask)


@final
@dataclass(frozen=True, eq=False)
class Sample:
    """The nodes that teach and are taught.

    Attributes:
        nodes: a table of them.
        places: where they are among all nodes, rising; a slice for everybody.
        device: where networks learn and answer: the processor, unless the graph is large.
    """

    nodes: PublicNodes
    places: Tensor | slice
    device: str

    @classmethod
    def of(cls, nodes: PublicNodes, device: str = "cpu") -> Sample:
        """Of more than `SAMPLE_NODES` nodes: labelled ones as far as they fit, validation nodes, and others."""
        free, size = ~(nodes.train_mask | nodes.validation_mask), SAMPLE_NODES
        training = _some(nodes.train_mask, int(_TRAINING_SHARE * size))
        validation = _some(nodes.validation_mask, int(_VALIDATION_SHARE * size))
        places = torch.cat([training, validation, _some(free, size - len(training) - len(validation))]).sort().values
        return cls(part_of(nodes, places), places, device)

    def everywhere(self, answers: Tensor, rows: Tensor) -> Tensor:
        """Class probabilities of all nodes from those of the sampled ones, which stay; of a large graph float32.

        Args:
            answers: of the sampled nodes.
            rows: of all nodes: what the network answers from.
        """
        if isinstance(self.places, slice):
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
    return places[sampled(len(places), most, seed=_SAMPLE_SEED)]


def _taught(rows: Tensor, answers: Tensor, device: str) -> Encoder:
    """A perceptron that answers as the sample does: its soft answers are the targets, so it is as sure as they are."""
    generator = torch.Generator().manual_seed(_NETWORK_SEED)
    shapes = (rows.shape[1], _HIDDEN), (_HIDDEN, answers.shape[1])
    first, second = (xavier_uniform_(torch.empty(shape), generator=generator).to(device) for shape in shapes)
    parameters = [first, first.new_zeros(_HIDDEN), second, second.new_zeros(answers.shape[1])]
    for parameter in parameters:
        parameter.requires_grad_(True)
    optimizer = torch.optim.Adam(parameters, lr=_LEARNING_RATE, weight_decay=_WEIGHT_DECAY)
    leave_gpus_alone(optimizer, device)
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
