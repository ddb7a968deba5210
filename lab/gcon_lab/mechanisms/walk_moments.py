"""Walk moments, F' Z: like edge moments, over walks of several steps (docs/proofs/class-sums.md, 5)."""

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
from gcon_lab.mechanisms.walks import joint_bound, walk_bounds, walk_rounding, weighted_walks


@proven("class-sums")
@final
class WalkMoments(Statistic):
    """The d x s d matrix F' Z with Z = (1/s) [R_m1 F, ..., R_ms F]. Not symmetric: rows of R_m are.

    The block of a scheme without steps is F' F / s, which everybody can compute: it is released without noise.

    Args:
        rows: F, n x d: public, or computed from what was released before.
        schemes: restart, steps and clip.
        device: where to multiply.

    Privacy:
        One edge moves a block by at most the longest row of F times the edge influence of R_m F, that is r D_F psi (for
        one step by Theorem G, which is smaller where the diameter is less than twice the longest row).
        Rounding is that of the steps of a walk; the sum over the nodes is exact.
    """

    name = "walk moments"

    def __init__(self, rows: Tensor, schemes: Schemes, *, device: str = "cpu") -> None:
        self._rows = checked_rows("rows", rows)
        self._schemes, self._device = schemes, device
        # The same rows again as weights: the walk has more digits.
        self._everyone, self._weights = torch.arange(len(self._rows)), left_numbers(self._rows)
        # Bounds hold for the rounded rows, which are what is multiplied.
        weights = real_numbers(*self._weights)
        self._bounds = walk_bounds(self._rows, weights, schemes)
        self.rounding = walk_rounding(column_units(self._rows), weights, schemes, num_nodes=len(self._rows))
        bound = joint_bound(self._bounds)
        self.sensitivity = bound + 2 * self.rounding if bound > 0 else 0.0
        free = torch.tensor([bound.free for bound in self._bounds])
        self.edge_free = free.repeat_interleave(self._rows.shape[1])[None, :] if free.any() else None

    def public_record(self) -> Mapping[str, object]:
        """Shape, schemes and the bound of every scheme."""
        return {
            "rows": self._rows.shape[1],
            "columns": self._rows.shape[1] * self._schemes.num_blocks,
            "restart": self._schemes.restart,
            "steps": list(self._schemes.steps),
            "clip": self._schemes.clip,
            "bounds": [bound.reason for bound in self._bounds],
        }

    def precisely(self, edges: Edges) -> Precise:
        """F' Z."""
        check_nodes(edges, self._rows)
        return weighted_walks(edges, self._rows.to(self._device), self._everyone, self._weights, self._schemes)
