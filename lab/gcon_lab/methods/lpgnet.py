"""LPGNet: stacked perceptrons joined by noisy counts of the neighbours' predicted classes (Kolluri et al. 2022).

The first perceptron reads features alone. Every further one reads the scores of the earlier ones and noisy counts: how many
neighbours of a node the perceptron before it puts into each class. Only the counts read edges.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from gcon.edges.source import Edges
from gcon.learn.encoder import scaled_rows
from gcon.methods.method import Trained
from gcon.nodes import PublicNodes
from gcon_lab.mechanisms.neighbour_sums import laplace_sums_plan
from gcon_lab.mechanisms.plain_sums import neighbour_sums
from gcon_lab.methods.competitor import PaidEdges, PrivateCompetitorMethod
from gcon_lab.methods.mlp import PerceptronMethod
from gcon_lab.methods.networks import Perceptron, logits_of


@dataclass(frozen=True, kw_only=True)
class LPGNet(PrivateCompetitorMethod, PerceptronMethod):
    """LPGNet, with pure epsilon: `delta` is not used. No perceptron has a bias, and learning rates fall to 0.

    Attributes:
        stacked: nl, the number of perceptrons after the first one, 1 or 2; each costs epsilon/nl.
    """

    name = "lpgnet"
    about = "Releases noisy counts of the neighbours' predicted classes; Laplace noise, 2 nl/epsilon, pure epsilon."

    stacked: int = 1

    def learn(self, nodes: PublicNodes, edges: PaidEdges) -> Trained:
        plan = laplace_sums_plan(self.epsilon, self.stacked, method=self.name)
        # What the next perceptron reads, so far: [L_0], then [L_0, N_1, L_1], ... All of it public or released.
        columns = [_first_scores(replace(self, epsilon=1.0, stacked=1), nodes)]
        with edges.spend(plan, f"LPGNet, {self.stacked} stacked layer(s)") as account:
            for place in range(1, self.stacked + 1):
                before, counted = torch.cat(columns, dim=1), predicted_classes(columns[-1])
                columns.append(self._repaired(account.release(plan.sums_of(counted)), place=place))
                final, network = self.scored(torch.cat(columns, dim=1), nodes, place=place)
                columns.append(final)

        def cached(_: Tensor, __: Edges | None) -> Tensor:
            return final

        def own_edges(_: Tensor, opened: Edges | None) -> Tensor:
            assert opened is not None
            exact = self._repaired(neighbour_sums(opened, counted), place=self.stacked)
            return logits_of(network, torch.cat([before, exact], dim=1), each_by_itself=True)

        return Trained(score_functions={"cached": cached, "own-edges": own_edges}, receipts=(account.receipt,))

    def scored(self, rows: Tensor, nodes: PublicNodes, *, place: int) -> tuple[Tensor, Perceptron]:
        """Train perceptron number `place` and score all nodes."""
        network = self._perceptron(rows, nodes, place=place, bias=False, falling=True)
        return logits_of(network, rows), network

    def _repaired(self, counts: Tensor, *, place: int) -> Tensor:
        """Counts clipped at 0; a row of zeros gets a 1 in a class that the seed draws for that node, whoever else has one."""
        clipped = counts.clamp(min=0).to(torch.float32)
        num_nodes, num_classes = clipped.shape
        drawn = torch.randint(num_classes, (num_nodes,), generator=torch.Generator().manual_seed(self.seed + place))
        empty = clipped.sum(dim=1, keepdim=True) == 0
        return torch.where(empty, one_hot(drawn, num_classes).to(torch.float32), clipped)


@lru_cache(maxsize=1)
def _first_scores(method: LPGNet, nodes: PublicNodes) -> Tensor:
    """What the perceptron on features says: the same for every budget and depth, and most of the work."""
    return method.scored(scaled_rows(nodes.features, by="sum"), nodes, place=0)[0]


def predicted_classes(scores: Tensor) -> Tensor:
    """One row per node with a single 1, in the class of its largest score."""
    return one_hot(scores.argmax(dim=1), scores.shape[1]).to(torch.float64)
