"""The private entry of propagation: private edges in, private aggregates with their proven bound out."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gcon.graphs.edges import EdgeList
from gcon.privacy.boundary import Private
from gcon.privacy.opening import map_private
from gcon.propagate.influence import InfluenceBound, edge_influence, feature_extent
from gcon.propagate.schemes import Schemes, propagate


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
    edges: Private[EdgeList],
    features: Tensor,
    schemes: Schemes,
    *,
    bound: InfluenceBound = "auto",
    device: str = "cpu",
) -> BoundedAggregates:
    """Propagate public features over private edges.

    Args:
        edges: the private graph.
        features: n x d public features.
        schemes: restart, steps, clip.
        bound: which influence bound the result carries.
        device: where to compute the aggregates, and where they stay.

    Privacy:
        Reads every edge; the matrix stays private. The bound is computed from public numbers before any edge is read.
    """
    extent = feature_extent(features)
    influence = edge_influence(schemes, extent, num_nodes=features.shape[0], bound=bound)
    return BoundedAggregates(
        value=map_private(
            lambda opened: propagate(opened, features.to(device), schemes), edges, "aggregates of all nodes"
        ),
        edge_influence=influence.value * (1 + 1e-9),  # rounding of the aggregates themselves
        influence_bounds=influence.bounds,
        longest_row=extent.longest_row,
        num_rows=int(features.shape[0]),
        num_columns=int(features.shape[1]) * schemes.num_blocks,
    )
