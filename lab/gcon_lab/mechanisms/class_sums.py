"""Class sums, Z' Y: the sum of the aggregates of every class (docs/proofs/class-sums.md)."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from gcon.edges.fixed_point import real_numbers
from gcon.edges.schemes import Schemes
from gcon.edges.source import Edges, HoldsRows
from gcon.mechanisms.statistic import Precise, left_numbers
from gcon.privacy.plan import proven
from gcon_lab.mechanisms.bilinear_sums import check_same_nodes
from gcon_lab.mechanisms.checked_rows import check_nodes, checked_rows
from gcon_lab.mechanisms.walks import WalkStatistic, weighted_walks


@proven("class-sums")
@final
class ClassSums(HoldsRows, WalkStatistic):
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

    name, row_fields = "class sums", ("_features",)

    def __init__(self, features: Tensor, targets: Tensor, schemes: Schemes, *, device: str = "cpu") -> None:
        self._features = checked_rows("features", features, as_they_are=True)
        wanted = checked_rows("targets", targets, as_they_are=True)
        check_same_nodes(self._features, wanted)
        # Only nodes with a target enter the sums: at large scale few have one.
        self._used = wanted.any(dim=1).nonzero()[:, 0]
        self._targets = left_numbers(wanted[self._used].to("cpu", torch.float64))
        self._device = device
        free = self._bound(self._features, real_numbers(*self._targets), schemes)
        self.edge_free = None if free is None else free[:, None]
        rows = self._features.shape[1] * schemes.num_blocks
        self.settings = self._settings(rows=rows, columns=len(self._targets.units))

    def precisely(self, edges: Edges) -> Precise:
        check_nodes(edges, self._features)
        found = weighted_walks(edges, self._features.to(self._device), self._used, self._targets, self._schemes)
        return Precise(found.value.T.contiguous(), found.rest.T.contiguous())
