"""GAP: aggregation perturbation (Sajadmanesh et al. 2023), edge level.

An edge-free encoder gives unit rows; noisy sums over neighbours are released once, hop after hop; a classifier is
trained on them. Everything after the sums is free.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, normalize, selu

from gcon.edges.source import Edges
from gcon.methods.method import Trained
from gcon.nodes import PublicNodes
from gcon.privacy.budget import checked_budget
from gcon_lab.mechanisms.neighbour_sums import EdgeSensitivity, SumsPlan, gaussian_sums_plan
from gcon_lab.mechanisms.plain_sums import neighbour_sums
from gcon_lab.methods.competitor import PaidEdges, PrivateCompetitorMethod
from gcon_lab.methods.networks import SparseLinear, Training, fit_on_rows, logits_of, seeded, sparse_if_worth_it


@dataclass(frozen=True, kw_only=True)
class NoisySumsMethod(PrivateCompetitorMethod):
    """A method that trains on noisy sums of unit rows.

    Attributes:
        hidden: H, the width of the rows.
        dropout, learning_rate, epochs: of every training; the state of best validation accuracy is kept.
        edge_sensitivity: `undirected` (sqrt 2); `directed` is the published calibration, charged at what it costs.
    """

    hidden: int = 16
    dropout: float = 0.0
    learning_rate: float = 0.01
    epochs: int = 100
    edge_sensitivity: EdgeSensitivity = "undirected"

    @property
    def _training(self) -> Training:
        return Training(learning_rate=self.learning_rate, epochs=self.epochs, select="accuracy")

    def _plan(self, nodes: PublicNodes, releases: int) -> SumsPlan:
        convention, delta = self.edge_sensitivity, checked_budget(self.epsilon, self.delta, nodes.num_nodes).delta
        return gaussian_sums_plan(self.epsilon, delta, releases, convention=convention, method=self.name)


@dataclass(frozen=True, kw_only=True)
class GAP(NoisySumsMethod):
    """GAP-EDP.

    Attributes:
        hops: K, the number of noisy aggregations.
    """

    name = "gap"
    about = "Releases noisy sums of unit rows over neighbours, once; Gaussian noise, sensitivity sqrt(2)."

    hops: int = 2

    def learn(self, nodes: PublicNodes, edges: PaidEdges) -> Trained:
        plan, training = self._plan(nodes, self.hops), self._training
        rows = nodes.features.to(torch.float32)
        with seeded(self.seed):
            encoder = _Encoder(rows.shape[1], self.hidden, nodes.num_classes, self.dropout)
            fit_on_rows(encoder, rows, nodes, training)
        with torch.no_grad():
            first = unit(encoder.encode(sparse_if_worth_it(rows)))
        kept = [first]
        with edges.spend(plan, f"GAP, {self.hops} hop(s)") as account:
            for _ in range(self.hops):
                kept.append(unit(account.release(plan.sums_of(kept[-1]))))
        with seeded(self.seed + 1):
            classifier = _Classifier(self.hops + 1, self.hidden, nodes.num_classes, self.dropout)
            fit_on_rows(classifier, torch.cat(kept, dim=1).float(), nodes, training)

        def cached(_: Tensor, __: Edges | None) -> Tensor:
            return logits_of(classifier, torch.cat(kept, dim=1).float())

        def own_edges(_: Tensor, opened: Edges | None) -> Tensor:
            assert opened is not None
            exact = [first, *(unit(neighbour_sums(opened, before)) for before in kept[:-1])]
            return logits_of(classifier, torch.cat(exact, dim=1).float(), each_by_itself=True)

        return Trained(score_functions={"cached": cached, "own-edges": own_edges}, receipts=(account.receipt,))


def unit(rows: Tensor) -> Tensor:
    """Rows scaled to length 1 in float64; zero rows stay zero.

    Rows of a training that diverged become zero: their sums are worth nothing, but what was paid for is not withheld.
    """
    return normalize(rows.to(torch.float64), dim=1).nan_to_num(nan=0.0)


class _Encoder(nn.Module):
    """Linear, BatchNorm, dropout, SELU, linear; a head on unit rows for its training. Inputs are not dropped."""

    def __init__(self, inputs: int, hidden: int, outputs: int, share: float) -> None:
        super().__init__()
        self.first, self.second = SparseLinear(inputs, hidden), nn.Linear(hidden, hidden)
        self.norm, self.head_norm = nn.BatchNorm1d(hidden), nn.BatchNorm1d(hidden)
        self.head, self.share = nn.Linear(hidden, outputs), share

    def encode(self, rows: Tensor) -> Tensor:
        hidden = self.norm(self.first(rows))
        encoded: Tensor = self.second(selu(dropout(hidden, self.share, training=self.training)))
        return encoded

    def forward(self, rows: Tensor) -> Tensor:
        hidden = self.head_norm(normalize(self.encode(rows), dim=1))
        scores: Tensor = self.head(selu(dropout(hidden, self.share, training=self.training)))
        return scores


class _Classifier(nn.Module):
    """One linear map per hop, side by side, rows scaled to length 1, BatchNorm, dropout, SELU, linear."""

    def __init__(self, blocks: int, hidden: int, outputs: int, share: float) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(blocks))
        self.norm, self.head = nn.BatchNorm1d(blocks * hidden), nn.Linear(blocks * hidden, outputs)
        self.hidden, self.share = hidden, share

    def forward(self, rows: Tensor) -> Tensor:
        parts = rows.split(self.hidden, dim=1)
        joined = torch.cat([layer(part) for layer, part in zip(self.maps, parts, strict=True)], dim=1)
        hidden = self.norm(normalize(joined, dim=1))
        scores: Tensor = self.head(selu(dropout(hidden, self.share, training=self.training)))
        return scores
