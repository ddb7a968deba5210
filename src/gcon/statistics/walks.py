"""What one edge can change in Y' R_m X, for public matrices X and Y with one row a node (docs/proofs/class-sums.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from gcon.errors import InputError
from gcon.propagate.influence import class_sum_influence, edge_influence
from gcon.propagate.schemes import Schemes
from gcon.statistics.bilinear_sums import bilinear_bound, extent_of
from gcon.statistics.rows import ALLOWANCE, longest_rows, rounding_of_sums

_SMALLEST = 1e-200  # a bound below would approach the end of float64


@dataclass(frozen=True)
class WalkBound:
    """The bound of one scheme's block, and the argument that it comes from; 0 only where the block is the same on all graphs."""

    value: float
    reason: str

    @property
    def free(self) -> bool:
        """Whether no edge can change the block."""
        return self.value == 0


def walk_bounds(features: Tensor, weights: Tensor, schemes: Schemes) -> tuple[WalkBound, ...]:
    """For every scheme a bound on the Frobenius change of weights' (R_m features) by one edge; without the factor 1/s.

    The smallest of what is proven:

    - any weights: longest row of the weights times the edge influence;
    - weights without a negative entry: largest row sum times the class-sum constant, in its proven cells;
    - one step without clipping: Theorem G.

    Privacy:
        Reads public matrices only.
    """
    extent, num_nodes = extent_of(features), len(features)
    longest, _ = longest_rows(weights)
    positive = bool((weights >= 0).all())
    largest_sum = float(weights.sum(dim=1).max()) * (1 + ALLOWANCE) if weights.numel() else 0.0
    bounds = []
    for steps in schemes.steps:
        one = Schemes(restart=schemes.restart, steps=(steps,), clip=schemes.clip)
        if not one.reads_edges or num_nodes < 2:
            bounds.append(WalkBound(0.0, "no edge is read"))
            continue
        if extent.longest_row == 0 or longest == 0:
            bounds.append(WalkBound(0.0, "rows of zeros"))
            continue
        influence = edge_influence(one, extent, num_nodes=num_nodes)
        options = [(longest * influence.value, f"influence, {influence.bounds[0]}")]
        if positive:
            per_sum = class_sum_influence(one, extent, num_nodes=num_nodes)[0]
            options.append((largest_sum * per_sum.value, f"class sums, {per_sum.bounds[0]}"))
        if steps == 1 and schemes.clip == 0.5:
            options.append(((1 - schemes.restart) * bilinear_bound(extent_of(weights), extent), "one step"))
        value, reason = min(options)
        if not value >= _SMALLEST:
            raise InputError(
                "clip",
                rule="must leave a sensitivity that float64 can hold",
                got=schemes.clip,
                fix="Raise clip, or scale the rows.",
            )
        bounds.append(WalkBound(value * (1 + ALLOWANCE), reason))
    return tuple(bounds)


def walk_rounding(features: Tensor, weights: Tensor, schemes: Schemes) -> float:
    """What float64 can change in weights' (1/s) [R_m1 features, ...], in Frobenius norm.

    A step rounds every entry by at most (n + 16) 2^-53 of the largest of its column, and shrinks earlier errors by the
    restart: together at most as much as min(steps, 1/restart) steps. The sum over n nodes comes on top.
    """
    num_nodes = len(features)
    steps = [schemes.limit_iterations(max(num_nodes, 1)) if math.isinf(count) else count for count in schemes.steps]
    passes = min(max(steps), 1 / schemes.restart if schemes.restart > 0 else math.inf)
    operations = num_nodes + (num_nodes + 16) * passes + 4
    return rounding_of_sums(weights, features, operations=operations) / math.sqrt(schemes.num_blocks)


def joint_bound(bounds: tuple[WalkBound, ...]) -> float:
    """Of the blocks side by side, each divided by their number: (1/s) sqrt(sum of squares)."""
    return math.hypot(*(bound.value for bound in bounds)) / len(bounds) * (1 + 1e-14)
