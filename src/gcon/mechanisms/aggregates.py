"""Propagated features, and the proven bound on how far one edge can move them: what convex training starts from."""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass, field
from typing import final

import torch
from torch import Tensor

from gcon.edges.fixed_point import STEP_ERROR, column_units
from gcon.edges.schemes import Schemes, propagate
from gcon.edges.source import Edges, HoldsRows
from gcon.mechanisms.influence import InfluenceBound, edge_influence, fixed_point_extent


@final
@dataclass(frozen=True, eq=False)
class Aggregates(HoldsRows):
    """Public features that are to be propagated over private edges, together with what one edge can change in the result.

    Attributes:
        features: n x d public features; copied.
        schemes: restart, steps, clip.
        bound: which influence bound the result carries.
        device: where to compute the aggregates, and where they stay.
        rows: a public mask: whose aggregates to keep; by default those of all nodes.
        edge_influence: bound on the sum over all rows of the row changes that one edge causes.
        influence_bounds: which proven bound, scheme by scheme.
        diameter: of the features, with what rounding to fixed point may add.
        influence_rounding: the part of the edge influence that the rounding of steps may add.
        longest_row: bound on the length of every row (Theorem 1 needs 1).
        num_rows, num_columns: the public shape.

    Privacy:
        Holds public numbers. The bound is computed from them, before any edge is read.
    """

    row_fields = ("_features",)

    features: InitVar[Tensor]
    schemes: Schemes
    bound: InfluenceBound = field(default="auto", kw_only=True)
    device: str = field(default="cpu", kw_only=True)
    rows: InitVar[Tensor | None] = field(default=None, kw_only=True)
    _features: Tensor = field(init=False)
    _rows: Tensor | None = field(init=False)
    edge_influence: float = field(init=False)
    influence_bounds: tuple[str, ...] = field(init=False)
    diameter: float = field(init=False)
    influence_rounding: float = field(init=False)
    longest_row: float = field(init=False)
    num_rows: int = field(init=False)
    num_columns: int = field(init=False)

    def __post_init__(self, features: Tensor, rows: Tensor | None) -> None:
        # A copy, like those of statistics: the bound is that of these features, whatever their owner does to them later.
        features, rows = features.detach().clone(), None if rows is None else rows.clone()
        # Features are rounded to fixed point, and every step rounds once (docs/proofs/fixed-point-walks.md, 3).
        num_nodes, units, schemes = int(features.shape[0]), column_units(features), self.schemes
        extent, unit = fixed_point_extent(features, units), float(torch.linalg.vector_norm(units))
        influence = edge_influence(schemes, extent, num_nodes=num_nodes, bound=self.bound)
        row_rounding = 1.01 * STEP_ERROR * schemes.roundings(num_nodes) * unit / math.sqrt(schemes.num_blocks)
        rounding = 2 * num_nodes * row_rounding
        moved = influence.value * (1 + 1e-9) + rounding
        found = {
            "_features": features,
            "_rows": rows,
            "edge_influence": moved if influence.value > 0 else 0.0,
            "influence_bounds": influence.bounds,
            "diameter": extent.diameter,
            "influence_rounding": rounding if influence.value > 0 else 0.0,
            "longest_row": extent.longest_row + row_rounding,
            "num_rows": num_nodes if rows is None else int(rows.sum()),
            "num_columns": int(features.shape[1]) * schemes.num_blocks,
        }
        for name, value in found.items():
            object.__setattr__(self, name, value)

    def public_record(self) -> dict[str, object]:
        """Where the edge influence comes from, for the receipt: a verifier computes it once more."""
        return {
            "restart": self.schemes.restart,
            "steps": list(self.schemes.steps),
            "clip": self.schemes.clip,
            "bounds": list(self.influence_bounds),
            "diameter": self.diameter,
            "rounding": self.influence_rounding,
        }

    def of(self, edges: Edges) -> Tensor:
        """The aggregates: as private as the edges."""
        return propagate(edges, self._features.to(self.device), self.schemes, rows=self._rows)
