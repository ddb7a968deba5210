"""What one edge can change in Y' R_m X, for public matrices X and Y with one row per node (docs/proofs/class-sums.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gcon.edges.fixed_point import STATE_BITS, WholeRows, column_units
from gcon.edges.schemes import Schemes, walks
from gcon.edges.source import Edges
from gcon.errors import InputError
from gcon.mechanisms.influence import edge_influence, fixed_point_extent
from gcon.mechanisms.statistic import (
    ALLOWANCE,
    ROWS_AT_ONCE,
    Precise,
    Statistic,
    exact_products,
    exact_total,
    longest_rows,
)
from gcon_lab.mechanisms.bilinear_sums import bilinear_bound, extent_of, rounding_of_walks
from gcon_lab.mechanisms.class_sum_bounds import class_sum_influence

_SMALLEST = 1e-200  # a bound below would approach the end of float64


class WalkStatistic(Statistic):
    """What statistics of walks share: their bounds and rounding, and which blocks no edge can change."""

    def _bound(self, features: Tensor, weights: Tensor, schemes: Schemes) -> Tensor | None:
        """Set sensitivity and rounding; returns a mask of the block columns that no edge can change, if there are any.

        Bounds hold for the rounded weights, which are what is multiplied.
        """
        self._schemes, self._bounds = schemes, walk_bounds(features, weights, schemes)
        self.rounding = walk_rounding(column_units(features), weights, schemes, num_nodes=len(features))
        bound = joint_bound(self._bounds)
        self.sensitivity = bound + 2 * self.rounding if bound > 0 else 0.0
        free = torch.tensor([bound.free for bound in self._bounds])
        return free.repeat_interleave(features.shape[1]) if free.any() else None

    def _settings(self, *, rows: int, columns: int) -> dict[str, object]:
        return {
            "rows": rows,
            "columns": columns,
            "restart": self._schemes.restart,
            "steps": list(self._schemes.steps),
            "clip": self._schemes.clip,
            "bounds": [bound.reason for bound in self._bounds],
        }


@dataclass(frozen=True)
class WalkBound:
    """The bound of one scheme's block, and the argument that it comes from; 0 only where the block is the same on all graphs."""

    value: float
    reason: str

    @property
    def free(self) -> bool:
        return self.value == 0


def walk_bounds(features: Tensor, weights: Tensor, schemes: Schemes) -> tuple[WalkBound, ...]:
    """For every scheme a bound on the Frobenius change of weights' (R_m features) by one edge; without the factor 1/s.

    The features as rounded to fixed point, the weights as they are.

    The smallest of what is proven:

    - any weights: longest row of the weights times the edge influence;
    - weights without a negative entry: largest row sum times the class-sum constant, in its proven cells;
    - one step without clipping: Theorem G.

    Privacy:
        Reads public matrices only.
    """
    extent, num_nodes = fixed_point_extent(features, column_units(features)), len(features)
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


def walk_rounding(units: Tensor, weights: Tensor, schemes: Schemes, *, num_nodes: int) -> float:
    """What rounding can change in weights' (1/s) [R_m1 features, ...], in Frobenius norm.

    Errors of earlier steps shrink by the restart: together at most as much as min(steps, 1/restart) steps.
    """
    return rounding_of_walks(weights, units, steps=schemes.roundings(num_nodes)) / math.sqrt(schemes.num_blocks)


def weighted_walks(edges: Edges, features: Tensor, used: Tensor, weights: WholeRows, schemes: Schemes) -> Precise:
    """Weights' (1/s) [R_m1 features, ...], as s blocks of columns side by side, where the features are.

    Args:
        edges: the graph.
        features: one row per node.
        used: the nodes that have a weight.
        weights: one row for each of these.
        schemes: how far to walk; one pass over the edges per step.
    """
    left, used = weights.numbers.to(features.device), used.to(features.device)
    width = features.shape[1]
    value = torch.empty(len(weights.units), width * schemes.num_blocks, dtype=torch.float64)
    rest = torch.empty_like(value)
    for block, columns, state, units in walks(edges, features, schemes):
        stretches = [slice(start, start + ROWS_AT_ONCE) for start in range(0, len(used), ROWS_AT_ONCE)]
        products = (exact_products(left[rows], state[used[rows]], right_bits=STATE_BITS) for rows in stretches)
        found = exact_total(products, weights.units, units, parts=schemes.num_blocks)
        place = slice(block * width + columns.start, block * width + columns.stop)
        value[:, place], rest[:, place] = found.value, found.rest
    return Precise(value, rest)


def joint_bound(bounds: tuple[WalkBound, ...]) -> float:
    """Of the blocks side by side, each divided by their number: (1/s) sqrt(sum of squares)."""
    return math.hypot(*(bound.value for bound in bounds)) / len(bounds) * (1 + 1e-14)
