"""Walk moments, F' Z: like edge moments, over walks of several steps (docs/proofs/class-sums.md, 5)."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from gcon.edges.fixed_point import real_numbers
from gcon.edges.schemes import Schemes
from gcon.edges.source import Edges
from gcon.mechanisms.statistic import Precise, left_numbers
from gcon.privacy.plan import proven
from gcon_lab.mechanisms.checked_rows import check_nodes, checked_rows
from gcon_lab.mechanisms.walks import WalkStatistic, weighted_walks


@proven("class-sums")
@final
class WalkMoments(WalkStatistic):
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
        self._device = device
        # The same rows again as weights: the walk has more digits.
        self._everyone, self._weights = torch.arange(len(self._rows)), left_numbers(self._rows)
        free = self._bound(self._rows, real_numbers(*self._weights), schemes)
        self.edge_free = None if free is None else free[None, :]
        width = self._rows.shape[1]
        self.settings = self._settings(rows=width, columns=width * schemes.num_blocks)

    def precisely(self, edges: Edges) -> Precise:
        check_nodes(edges, self._rows)
        return weighted_walks(edges, self._rows.to(self._device), self._everyone, self._weights, self._schemes)
