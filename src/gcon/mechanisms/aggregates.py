"""The private entry of propagation: private edges in, private aggregates with their proven bound out."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gcon.edges.fixed_point import STEP_ERROR, column_units
from gcon.edges.schemes import Schemes, propagate
from gcon.edges.source import Edges
from gcon.mechanisms.influence import InfluenceBound, edge_influence, fixed_point_extent
from gcon.privacy.boundary import Private
from gcon.privacy.opening import map_private


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundedAggregates:
    """Private aggregates, together with what one edge can change in them.

    Attributes:
        value: the private n x d matrix.
        edge_influence: bound on the sum over all rows of the row changes that one edge causes.
        influence_bounds: which proven bound, scheme by scheme.
        longest_row: bound on the length of every row (Theorem 1 needs 1).
        num_rows, num_columns: the public shape.
    """

    value: Private[Tensor]
    edge_influence: float
    influence_bounds: tuple[str, ...]
    longest_row: float
    num_rows: int
    num_columns: int


def aggregate_privately(
    edges: Private[Edges],
    features: Tensor,
    schemes: Schemes,
    *,
    bound: InfluenceBound = "auto",
    device: str = "cpu",
    rows: Tensor | None = None,
) -> BoundedAggregates:
    """Propagate public features over private edges.

    Args:
        edges: the private graph.
        features: n x d public features; copied.
        schemes: restart, steps, clip.
        bound: which influence bound the result carries.
        device: where to compute the aggregates, and where they stay.
        rows: a public mask: whose aggregates to keep; by default those of all nodes.

    Privacy:
        Reads every edge; the matrix stays private. The bound is computed from public numbers before any edge is read.
    """
    # A copy, like those of statistics: the bound is that of these features, whatever their owner does before a gate opens.
    features, rows = features.detach().clone(), None if rows is None else rows.clone()
    # Features are rounded to fixed point, and every step rounds once (docs/proofs/fixed-point-walks.md, 3).
    units = column_units(features)
    extent, unit = fixed_point_extent(features, units), float(torch.linalg.vector_norm(units))
    influence = edge_influence(schemes, extent, num_nodes=features.shape[0], bound=bound)
    row_rounding = 1.01 * STEP_ERROR * schemes.roundings(features.shape[0]) * unit / math.sqrt(schemes.num_blocks)
    return BoundedAggregates(
        value=map_private(
            lambda opened: propagate(opened, features.to(device), schemes, rows=rows), edges, "aggregates of nodes"
        ),
        edge_influence=influence.value * (1 + 1e-9) + 2 * features.shape[0] * row_rounding
        if influence.value > 0
        else 0.0,
        influence_bounds=influence.bounds,
        longest_row=extent.longest_row + row_rounding,
        num_rows=int(features.shape[0] if rows is None else rows.sum()),
        num_columns=int(features.shape[1]) * schemes.num_blocks,
    )
