"""Bilinear sums, X' T_w P: features against the mean answer around each node (docs/proofs/bilinear-sums.md)."""

from __future__ import annotations

import math
from functools import partial
from typing import final

import torch
from torch import Tensor

from gcon.edges.fixed_point import STATE_BITS, STEP_ERROR, Walk, column_units, real_numbers, whole_numbers
from gcon.edges.kernels.multiply import walk_step
from gcon.edges.source import Edges, RowBlock
from gcon.errors import check_number
from gcon.mechanisms.influence import FeatureExtent, feature_extent
from gcon.mechanisms.statistic import ALLOWANCE, Precise, Statistic, exact_products, exact_total, left_numbers
from gcon.privacy.plan import proven
from gcon_lab.mechanisms.checked_rows import check_nodes, checked_rows

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


@proven("bilinear-sums")
@final
class BilinearSums(Statistic):
    """The d x c matrix X' T_w P, where row i of T_w is (w at i, 1 at every neighbour) / (number of neighbours + w).

    With one-hot targets in place of X it is the c x c matrix of which classes meet which; its sensitivity is then
    2 / (1 + w) for one-hot answers.

    Args:
        features: X, n x d, public. Centre them: the origin counts here.
        answers: P, n x c, public or computed from what was released before.
        self_weight: w, at least 1. Larger: less noise, and less weight on neighbours.
        device: where to multiply.

    Privacy:
        One edge moves it by at most max(diam X, sqrt(2) max |x_i|) * diam(P) / (1 + w), attained by two isolated nodes.
        The step rounds every mean; the sum over the nodes is exact.
    """

    name = "bilinear sums"

    def __init__(self, features: Tensor, answers: Tensor, self_weight: float = 1.0, *, device: str = "cpu") -> None:
        check_number(
            "self_weight",
            self_weight,
            allowed=lambda number: 1 <= number <= 1e6,
            rule="must lie between 1 and 1e6",
            fix="1 to 8 is usual.",
        )
        given, answers = checked_rows("features", features), checked_rows("answers", answers)
        check_same_nodes(given, answers)
        self._self_weight, self._device = float(self_weight), device
        self.settings = {"rows": given.shape[1], "columns": answers.shape[1], "self_weight": self._self_weight}
        self._features, self._feature_units = left_numbers(given)
        self._answer_units = column_units(answers)
        self._answers = whole_numbers(answers, self._answer_units)
        # Bounds hold for the rounded rows, which are what is multiplied.
        rounded = self._features.to(torch.float64) * self._feature_units
        extents = extent_of(rounded), extent_of(real_numbers(self._answers, self._answer_units))
        bound = bilinear_bound(*extents, self._self_weight)
        self.rounding = rounding_of_walks(rounded, self._answer_units, steps=1)
        self.sensitivity = bound * (1 + ALLOWANCE) + 2 * self.rounding if bound > 0 else 0.0

    def precisely(self, edges: Edges) -> Precise:
        check_nodes(edges, self._features)
        work = partial(_products, walk=Walk(self_weight=self._self_weight))
        products = edges.map_blocks(work, self._features.to(self._device), self._answers.to(self._device))
        return exact_total(products, self._feature_units, self._answer_units)


def _products(block: RowBlock, features: Tensor, answers: Tensor, *, walk: Walk) -> list[Tensor]:
    """What the nodes of a block add to X' T_w P."""
    means = torch.empty_like(answers[block.nodes])
    walk_step(block, answers, answers, walk=walk, out=means)
    return exact_products(features[block.nodes], means, right_bits=STATE_BITS)


def check_same_nodes(first: Tensor, second: Tensor) -> None:
    """Two public matrices must have one row per node each."""
    check_number(
        "rows of both matrices",
        len(second),
        allowed=lambda number: number == len(first),
        rule=f"must be as many as nodes ({len(first)})",
        fix="Give both matrices one row per node, in the same order.",
    )


def rounding_of_walks(weights: Tensor, units: Tensor, *, steps: float) -> float:
    """What rounding can change in weights' W, in Frobenius norm, for a walk W in whole numbers.

    A step rounds an entry by at most 4 units of its column; errors of earlier steps are averaged with the rest. The sum over the
    nodes is exact.

    Args:
        weights: n x d, public.
        units: of the columns of the walk.
        steps: so many steps' worth of rounding.
    """
    if not weights.numel():
        return 0.0
    sums = torch.linalg.vector_norm(weights.abs().sum(dim=0))
    return 1.01 * STEP_ERROR * steps * float(sums * torch.linalg.vector_norm(units))
