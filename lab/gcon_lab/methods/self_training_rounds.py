"""Private self-training: every round releases features against the answers around each node, and answers anew.

Round t releases X' T_w P_t with noise, where T_w takes means over a node (with weight w) and its neighbours. P_0 are the
edge-free encoder's answers; a linear discriminant from the released matrix gives P_(t+1). Labelled nodes keep their label.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from gcon.edges.edge_list import EdgeList
from gcon.edges.schemes import Schemes
from gcon.learn.pseudo_labels import training_rows
from gcon.mechanisms.gaussian_release import GaussianRelease, NoisyStatistic, Portion, gaussian_release_plan
from gcon.mechanisms.statistic import BoundedEdges
from gcon.methods.method import Trained
from gcon.nodes import PublicNodes
from gcon.privacy.boundary import Private
from gcon.privacy.gates import release_statistic
from gcon.privacy.ledger import Ledger
from gcon.privacy.randomness import Randomness
from gcon_lab.mechanisms.bilinear_sums import BilinearSums
from gcon_lab.methods.linear_models import EncodedMethod, Linear, discriminant, linear_scorers

ROUNDS, SELF_WEIGHT = 2, 2.0
INFERENCE_RESTART = 0.2
_PUBLIC_SCHEMES = Schemes(restart=0.0, steps=(1,))


@dataclass(frozen=True, kw_only=True)
class SelfTrainingRounds(EncodedMethod):
    """Two rounds at equal shares of the budget. One set of settings serves all graphs."""

    name = "self-training-rounds"
    about = "Releases features against the mean answers around each node, once a round; Gaussian noise."

    def _train(
        self, nodes: PublicNodes, edges: Private[EdgeList], *, ledger: Ledger, randomness: Randomness
    ) -> Trained:
        encoder = self._taught_encoder(nodes)
        start = training_rows(nodes, encoder, "all").targets
        taught = _Rounds(nodes, encoder.encode(nodes.features), start)
        released = release_statistic(
            GaussianRelease(
                plan=gaussian_release_plan(self.epsilon, self.delta_for(nodes)),
                stages=(taught.portions,) * ROUNDS,
                method=self.name,
            ),
            BoundedEdges(edges),
            ledger=ledger,
            randomness=randomness,
            purpose=f"self-training, {ROUNDS} rounds",
        )
        linear = taught.replayed(released.value)[0]
        return Trained(
            scorers=linear_scorers(encoder, linear, _PUBLIC_SCHEMES, INFERENCE_RESTART), receipts=(released.receipt,)
        )


class _Rounds:
    """What follows from the rounds released so far. Holds public values only."""

    def __init__(self, nodes: PublicNodes, rows: Tensor, start: Tensor) -> None:
        self._nodes, self._rows, self._start = nodes, rows, start

    def portions(self, released: tuple[NoisyStatistic, ...]) -> tuple[Portion, ...]:
        """The next round."""
        answers = self.replayed(released)[1] if released else self._start
        return (Portion(BilinearSums(self._rows, answers, SELF_WEIGHT), 1 / ROUNDS),)

    def replayed(self, released: tuple[NoisyStatistic, ...]) -> tuple[Linear, Tensor]:
        """The classifier of the last round, and its answers."""
        answers, nodes = self._start, self._nodes
        for each in released:
            linear = discriminant(each.value, self._rows, answers, nodes)
            classes = torch.where(nodes.train_mask, nodes.labels, linear.scores(self._rows).argmax(dim=1))
            answers = one_hot(classes, nodes.num_classes).to(torch.float64)
        return linear, answers
