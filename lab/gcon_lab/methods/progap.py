"""ProGAP: aggregation perturbation with progressive training (Sajadmanesh and Gatica-Perez 2024), edge level.

Stage 0 learns from features alone. Every further stage releases noisy sums of what the stage before it learned, once, and
trains on all that was released. Everything but the sums is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, normalize, selu

from gcon.edges.source import Edges
from gcon.methods.method import Trained
from gcon.nodes import PublicNodes
from gcon_lab.mechanisms.plain_sums import neighbour_sums
from gcon_lab.methods.competitor import PaidEdges
from gcon_lab.methods.gap import NoisySumsMethod, unit
from gcon_lab.methods.networks import SparseLinear, fit_network, seeded, sparse_if_worth_it


@dataclass(frozen=True, kw_only=True)
class ProGAP(NoisySumsMethod):
    """ProGAP-EDP.

    Attributes:
        depth: K, the number of noisy aggregations; there are K + 1 stages.
        base_layers: linear layers per block.
        train_earlier_blocks: train the blocks of earlier stages again; otherwise only the newest block and its head.
    """

    name = "progap"
    about = "Releases noisy sums of unit rows over neighbours, one per stage; Gaussian noise, sensitivity sqrt(2)."

    depth: int = 2
    base_layers: int = 1
    train_earlier_blocks: bool = True

    def learn(self, nodes: PublicNodes, edges: PaidEdges) -> Trained:
        plan = self._plan(nodes, self.depth)
        blocks: list[_Block] = []
        inputs = [nodes.features.to(torch.float32)]  # z_0, z_1, ... as drawn
        features = sparse_if_worth_it(inputs[0])
        stage = self._next_stage(blocks, inputs, nodes)  # stage 0 reads no edge
        learned: list[Tensor] = []  # the unit rows that were summed
        with edges.spend(plan, f"ProGAP, {self.depth} stage(s) with edges") as account:
            for place in range(self.depth):
                with torch.no_grad():
                    learned.append(unit(blocks[-1](inputs[-1] if place else features)))
                inputs.append(account.release(plan.sums_of(learned[-1])).to(torch.float32))
                stage = self._next_stage(blocks, inputs, nodes)

        def cached(_: Tensor, __: Edges | None) -> Tensor:
            return _scores(stage, [features, *inputs[1:]])

        def own_edges(_: Tensor, opened: Edges | None) -> Tensor:
            assert opened is not None
            exact = [neighbour_sums(opened, rows).to(torch.float32) for rows in learned]
            return _scores(stage, [features, *exact])

        return Trained(score_functions={"cached": cached, "own-edges": own_edges}, receipts=(account.receipt,))

    def _next_stage(self, blocks: list[_Block], inputs: Sequence[Tensor], nodes: PublicNodes) -> _Stage:
        """Add a block for the newest input, and train it with a fresh head, alone or with the earlier blocks."""
        place = len(blocks)
        with seeded(self.seed + place):
            blocks.append(_Block(inputs[-1].shape[1], self.hidden, layers=self.base_layers, share=self.dropout))
            head = nn.Linear(self.hidden * len(blocks), nodes.num_classes)
            stage = _Stage(blocks, head, fixed=0 if self.train_earlier_blocks else place)
            parts = [
                [sparse_if_worth_it(rows[mask]) for rows in inputs]
                for mask in (nodes.train_mask, nodes.validation_mask)
            ]
            fit_network(
                stage,
                training=self._training,
                train=(lambda: stage(parts[0]), nodes.labels[nodes.train_mask]),
                validation=(lambda: stage(parts[1]), nodes.labels[nodes.validation_mask]),
                groups=[{"params": list(stage.trained_parameters())}],
            )
        return stage


class _Block(nn.Module):
    """Layers of linear, SELU, BatchNorm, dropout; also after the last one."""

    def __init__(self, inputs: int, hidden: int, *, layers: int, share: float) -> None:
        super().__init__()
        widths = [inputs, *[hidden] * (layers - 1)]
        self.linear = nn.ModuleList(SparseLinear(width, hidden) for width in widths)
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden) for _ in widths)
        self.share = share

    def forward(self, rows: Tensor) -> Tensor:
        for linear, norm in zip(self.linear, self.norms, strict=True):
            rows = dropout(norm(selu(linear(rows))), self.share, training=self.training)
        return rows


class _Stage(nn.Module):
    """Blocks side by side, rows scaled to length 1, and a linear head. The first `fixed` blocks stay as they are."""

    def __init__(self, blocks: Sequence[_Block], head: nn.Linear, *, fixed: int) -> None:
        super().__init__()
        self.blocks, self.head, self.fixed = nn.ModuleList(blocks), head, fixed

    def forward(self, inputs: Sequence[Tensor]) -> Tensor:
        joined = torch.cat([block(rows) for block, rows in zip(self.blocks, inputs, strict=True)], dim=1)
        scores: Tensor = self.head(normalize(joined, dim=1))
        return scores

    def train(self, mode: bool = True) -> _Stage:
        """Fixed blocks stay in evaluation mode: their running means must not move either."""
        super().train(mode)
        for block in self.blocks[: self.fixed]:
            block.eval()
        return self

    def trained_parameters(self) -> chain[nn.Parameter]:
        return chain(self.head.parameters(), *(block.parameters() for block in self.blocks[self.fixed :]))


def _scores(stage: _Stage, inputs: Sequence[Tensor]) -> Tensor:
    stage.eval()
    with torch.no_grad():
        scores: Tensor = stage(inputs)
    return scores
