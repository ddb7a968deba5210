"""Class sums, Z' Y: the sum of the aggregates of every class (docs/proofs/class-sums.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import torch
from torch import Tensor

from gcon.edges.fixed_point import column_units, real_numbers
from gcon.edges.schemes import Schemes
from gcon.edges.source import Edges
from gcon.mechanisms.exact_products import Precise, left_numbers
from gcon.mechanisms.public_rows import check_nodes, checked_rows
from gcon.mechanisms.statistic import Statistic
from gcon.privacy.proven import proven
from gcon_lab.mechanisms.bilinear_sums import check_same_nodes
from gcon_lab.mechanisms.walks import joint_bound, walk_bounds, walk_rounding, weighted_walks


@proven("class-sums")
@final
class ClassSums(Statistic):
    """The matrix Z' Y with Z = (1/s) [Z_m1, ..., Z_ms] the aggregates of all nodes: s d rows, one column per class.

    The block of a scheme without steps is X' Y / s, which everybody can compute: it is released without noise.

    Args:
        features: X, n x d, public.
        targets: Y, n x c, public: one-hot rows, rows of weights, zeros for nodes without a label.
        schemes: restart, steps and clip.
        device: where to multiply.

    Example:
        >>> schemes = Schemes(restart=0.8, steps=(float("inf"),))
        >>> features, targets = torch.tensor([[1.0], [-1.0]]), torch.eye(2)
        >>> round(ClassSums(features, targets, schemes).sensitivity, 7)
        0.2828427

    Privacy:
        With W the largest row sum of Y (no negative entry) one edge moves a block by at most W * diam(X) * phi, in the
        cells where phi is proven; elsewhere by the longest row of Y times the edge influence. Blocks add in squares.
        Rounding is that of the steps of a walk; the sum over the nodes is exact.
    """

    name = "class sums"

    def __init__(self, features: Tensor, targets: Tensor, schemes: Schemes, *, device: str = "cpu") -> None:
        self._features = checked_rows("features", features, as_they_are=True)
        wanted = checked_rows("targets", targets, as_they_are=True)
        check_same_nodes(self._features, wanted)
        # Only nodes with a target enter the sums: at large scale few have one.
        self._used = wanted.any(dim=1).nonzero()[:, 0]
        self._targets = left_numbers(wanted[self._used].to("cpu", torch.float64))
        self._schemes, self._device = schemes, device
        # Bounds hold for the rounded rows, which are what is multiplied.
        weights = real_numbers(*self._targets)
        self._bounds = walk_bounds(self._features, weights, schemes)
        self.rounding = walk_rounding(column_units(self._features), weights, schemes, num_nodes=len(self._features))
        bound = joint_bound(self._bounds)
        self.sensitivity = bound + 2 * self.rounding if bound > 0 else 0.0
        free = torch.tensor([bound.free for bound in self._bounds])
        self.edge_free = free.repeat_interleave(self._features.shape[1])[:, None] if free.any() else None

    def public_record(self) -> Mapping[str, object]:
        """Shape, schemes and the bound of every scheme."""
        return {
            "rows": self._features.shape[1] * self._schemes.num_blocks,
            "columns": len(self._targets.units),
            "restart": self._schemes.restart,
            "steps": list(self._schemes.steps),
            "clip": self._schemes.clip,
            "bounds": [bound.reason for bound in self._bounds],
        }

    def precisely(self, edges: Edges) -> Precise:
        """Z' Y."""
        check_nodes(edges, self._features)
        found = weighted_walks(edges, self._features.to(self._device), self._used, self._targets, self._schemes)
        return Precise(found.value.T.contiguous(), found.rest.T.contiguous())
