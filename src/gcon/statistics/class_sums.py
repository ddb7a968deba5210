"""Class sums, Z' Y: the sum of the aggregates of every class (docs/proofs/class-sums.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import torch
from torch import Tensor

from gcon.graphs.edges import EdgeList
from gcon.propagate.schemes import Schemes, propagate
from gcon.statistics.bilinear_sums import check_same_nodes
from gcon.statistics.rows import check_nodes, checked_rows
from gcon.statistics.statistic import Statistic
from gcon.statistics.walks import joint_bound, walk_bounds, walk_rounding


@final
class ClassSums(Statistic):
    """The matrix Z' Y with Z = (1/s) [Z_m1, ..., Z_ms] the aggregates of all nodes: s d rows, one column a class.

    The block of a scheme without steps is X' Y / s, which everybody can compute: it is released without noise.

    Args:
        features: X, n x d, public.
        targets: Y, n x c, public: one-hot rows, rows of weights, zeros for nodes without a label.
        schemes: restart, steps and clip.

    Example:
        >>> schemes = Schemes(restart=0.8, steps=(float("inf"),))
        >>> features, targets = torch.tensor([[1.0], [-1.0]]), torch.eye(2)
        >>> round(ClassSums(features, targets, schemes).sensitivity, 7)
        0.2828427

    Privacy:
        With W the largest row sum of Y (no negative entry) one edge moves a block by at most W * diam(X) * phi, in the
        cells where phi is proven; elsewhere by the longest row of Y times the edge influence. Blocks add in squares.
    """

    def __init__(self, features: Tensor, targets: Tensor, schemes: Schemes) -> None:
        self._features, self._targets = checked_rows("features", features), checked_rows("targets", targets)
        check_same_nodes(self._features, self._targets)
        self._schemes = schemes
        self._bounds = walk_bounds(self._features, self._targets, schemes)
        self._rounding = walk_rounding(self._features, self._targets, schemes)

    @property
    def name(self) -> str:
        """What it is."""
        return "class sums"

    @property
    def sensitivity(self) -> float:
        """(1/s) sqrt(sum over the schemes of their bounds squared), and rounding on both sides."""
        bound = joint_bound(self._bounds)
        return bound + 2 * self._rounding if bound > 0 else 0.0

    @property
    def rounding(self) -> float:
        """Of a sum over n nodes of walks of several steps."""
        return self._rounding

    @property
    def edge_free(self) -> Tensor | None:
        """The rows of schemes that read no edge."""
        free = torch.tensor([bound.free for bound in self._bounds])
        return free.repeat_interleave(self._features.shape[1])[:, None] if free.any() else None

    def public_record(self) -> Mapping[str, object]:
        """Shape, schemes and the bound of every scheme."""
        return {
            "rows": self._features.shape[1] * self._schemes.num_blocks,
            "columns": self._targets.shape[1],
            "restart": self._schemes.restart,
            "steps": list(self._schemes.steps),
            "clip": self._schemes.clip,
            "bounds": [bound.reason for bound in self._bounds],
        }

    def of(self, edges: EdgeList) -> Tensor:
        """Z' Y."""
        check_nodes(edges, self._features)
        sums: Tensor = propagate(edges, self._features, self._schemes).T @ self._targets
        return sums
