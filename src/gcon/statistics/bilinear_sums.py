"""Bilinear sums, X' T_w P: features against the mean answer around each node (docs/proofs/bilinear-sums.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import final

import torch
from torch import Tensor

from gcon.errors import check_number
from gcon.graphs.edges import EdgeList
from gcon.propagate.influence import FeatureExtent, feature_extent
from gcon.statistics.blocks import neighbour_sum_blocks
from gcon.statistics.rows import ALLOWANCE, check_nodes, checked_rows, rounding_of_sums
from gcon.statistics.statistic import Statistic

NO_EXTENT = FeatureExtent(0.0, 0.0)


def extent_of(rows: Tensor) -> FeatureExtent:
    """Diameter and longest row, also of matrices without entries."""
    return feature_extent(rows) if rows.numel() else NO_EXTENT


def bilinear_bound(left: FeatureExtent, right: FeatureExtent, self_weight: float = 1.0) -> float:
    """Theorem G: max(diam X, sqrt(2) max |x|) * diam P / (1 + w), for a self weight w of at least 1.

    Example:
        >>> round(bilinear_bound(FeatureExtent(2.0, 1.0), FeatureExtent(2**0.5, 1.0), 4.0), 6)
        0.565685
    """
    spread = max(left.diameter, math.sqrt(2) * left.longest_row * (1 + ALLOWANCE))
    return spread * right.diameter / (1 + self_weight)


@final
class BilinearSums(Statistic):
    """The d x c matrix X' T_w P, where row i of T_w is (w at i, 1 at every neighbour) / (number of neighbours + w).

    With one-hot targets in place of X it is the c x c matrix of which classes meet which; its sensitivity is then
    2 / (1 + w) for one-hot answers.

    Args:
        features: X, n x d, public. Centre them: the origin counts here.
        answers: P, n x c, public or computed from what was released before.
        self_weight: w, at least 1. Larger: less noise, and less weight on neighbours.

    Privacy:
        One edge moves it by at most max(diam X, sqrt(2) max |x_i|) * diam(P) / (1 + w), attained by two isolated nodes.
    """

    def __init__(self, features: Tensor, answers: Tensor, self_weight: float = 1.0) -> None:
        check_number(
            "self_weight",
            self_weight,
            allowed=lambda number: 1 <= number <= 1e6,
            rule="must lie between 1 and 1e6",
            fix="1 to 8 is usual.",
        )
        self._features, self._answers = checked_rows("features", features), checked_rows("answers", answers)
        check_same_nodes(self._features, self._answers)
        self._self_weight = float(self_weight)
        bound = bilinear_bound(extent_of(self._features), extent_of(self._answers), self._self_weight)
        # n products in a sum, n neighbours in a mean, and a few operations around them.
        self._rounding = rounding_of_sums(self._features, self._answers, operations=2 * len(self._features) + 16)
        self._sensitivity = bound * (1 + ALLOWANCE) + 2 * self._rounding if bound > 0 else 0.0

    @property
    def name(self) -> str:
        """What it is."""
        return "bilinear sums"

    @property
    def sensitivity(self) -> float:
        """Theorem G, and rounding on both sides."""
        return self._sensitivity

    @property
    def rounding(self) -> float:
        """Of a sum over n nodes of means over at most n neighbours."""
        return self._rounding

    def public_record(self) -> Mapping[str, object]:
        """Shape and self weight."""
        return {
            "rows": self._features.shape[1],
            "columns": self._answers.shape[1],
            "self_weight": self._self_weight,
        }

    def of(self, edges: EdgeList) -> Tensor:
        """X' T_w P, one pass over the edges."""
        check_nodes(edges, self._features)
        weight = self._self_weight
        total = torch.zeros(self._features.shape[1], self._answers.shape[1], dtype=torch.float64)
        for nodes, sums in neighbour_sum_blocks(edges, self._answers):
            means = (sums + weight * self._answers[nodes]) / (edges.degrees[nodes, None].to(torch.float64) + weight)
            total.addmm_(self._features[nodes].T, means)
        return total


def check_same_nodes(first: Tensor, second: Tensor) -> None:
    """Two public matrices must have one row a node each."""
    check_number(
        "rows of both matrices",
        len(second),
        allowed=lambda number: number == len(first),
        rule=f"must be as many as nodes ({len(first)})",
        fix="Give both matrices one row a node, in the same order.",
    )
