"""How far features travel: no step, m steps, or the limit; several schemes side by side.

R_0 = I,  R_m = (1 - restart) T R_(m-1) + restart I,  R_inf = restart (I - (1 - restart) T)^-1 with the row-stochastic
transition T. Aggregates are (1/s) [R_m1 X, ..., R_ms X] (the paper's equations for R_m, Z_m and Z).
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from gcon.edges.fixed_point import (
    Walk,
    column_units,
    real_numbers,
    real_numbers_in_place,
    whole_numbers,
)
from gcon.edges.kernels.multiply import walk_step
from gcon.edges.source import Edges
from gcon.errors import InputError, PlanMismatchError, check_number

MOST_STEPS = 1000
MOST_LIMIT_ITERATIONS = 10_000
_COLUMNS_AT_ONCE = {"cpu": 32, "cuda": 16}  # 16 columns of a row are 128 bytes


@dataclass(frozen=True)
class Schemes:
    """The public description of a propagation.

    Attributes:
        restart: alpha in [0, 1]; 0 only with finite steps.
        steps: one entry per scheme: a whole number from 0 to 1000, or infinity.
        clip: p in (0, 1/2], the largest off-diagonal entry of the transition (the paper's Lemma 1); 1/2 clips nothing.

    Example:
        >>> Schemes(restart=0.8, steps=(0, 2, math.inf)).num_blocks
        3
    """

    restart: float
    steps: tuple[float, ...]
    clip: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", tuple(_checked_steps(count) for count in self.steps))
        if not self.steps:
            raise InputError("steps", rule="needs at least one scheme", got="none", fix="For example steps=(2,).")
        rule, fix = "must lie in [0, 1]", "The paper uses 0.2 to 0.8."
        check_number("restart", self.restart, allowed=lambda number: 0 <= number <= 1, rule=rule, fix=fix)
        rule, fix = "must lie in (0, 1/2]", "1/2 clips nothing."
        check_number("clip", self.clip, allowed=lambda number: 0 < number <= 0.5, rule=rule, fix=fix)
        # Python's own numbers: half precision from elsewhere would calibrate the noise in half precision.
        object.__setattr__(self, "restart", float(self.restart))
        object.__setattr__(self, "clip", float(self.clip))
        if math.inf in self.steps:
            fix = "Raise restart, or use finite steps."
            if self.restart == 0:
                rule = "must be positive with infinite steps (one edge could change everything)"
                raise InputError("restart", rule=rule, got=self.restart, fix=fix)
            if self.limit_iterations(num_nodes=1) > MOST_LIMIT_ITERATIONS:
                rule = "is too small for infinite steps (more than 10,000 iterations)"
                raise InputError("restart", rule=rule, got=self.restart, fix=fix)

    @property
    def num_blocks(self) -> int:
        """s, the number of schemes."""
        return len(self.steps)

    @property
    def reads_edges(self) -> bool:
        """False if the aggregates cannot depend on any edge."""
        return self.restart < 1 and any(count > 0 for count in self.steps)

    def counts(self, num_nodes: int) -> list[int]:
        """How many steps each scheme takes; none where the restart is 1."""
        if self.restart == 1:
            return [0] * self.num_blocks
        return [self.limit_iterations(num_nodes) if math.isinf(count) else int(count) for count in self.steps]

    def roundings(self, num_nodes: int) -> float:
        """So many steps' worth of rounding are in the aggregates, at most: the restart shrinks what is old."""
        return min(max(self.counts(num_nodes)), 1 / self.restart if self.restart > 0 else math.inf)

    def limit_iterations(self, num_nodes: int) -> int:
        """T: how many steps stand for infinitely many, so that n (1 - restart)^T is at most 1e-10."""
        if self.restart == 1:
            return 0
        return math.ceil(min(math.log(1e-10 / num_nodes) / math.log1p(-self.restart), 1e9))

    def truncation(self, num_nodes: int) -> float:
        """2 n (1 - restart)^T: what stopping after T steps can add to the influence, per unit of diameter."""
        return 2 * num_nodes * (1 - self.restart) ** self.limit_iterations(num_nodes)


def _checked_steps(count: object) -> float:
    if isinstance(count, str):
        number = math.inf if count == "inf" else math.nan
    else:
        number = float(count) if isinstance(count, numbers.Real) and not isinstance(count, bool) else math.nan
    if number == math.inf:
        return math.inf
    if number.is_integer() and 0 <= number <= MOST_STEPS:
        return int(number)
    raise InputError(
        "steps",
        rule=f"must be whole numbers from 0 to {MOST_STEPS}, or infinity",
        got=repr(count),
        fix="More steps than that equal math.inf in effect; use it instead.",
    )


def as_steps(steps: float | str | Sequence[float | str]) -> tuple[float, ...]:
    """One number, 'inf', or a sequence of them, as the tuple of a `Schemes`."""
    entries = tuple(steps) if isinstance(steps, Iterable) and not isinstance(steps, str) else (steps,)
    return tuple(_checked_steps(entry) for entry in entries)


def propagate(edges: Edges, features: Tensor, schemes: Schemes, *, rows: Tensor | None = None) -> Tensor:
    """Aggregates of all nodes: (1/s) [R_m1 X, ..., R_ms X], as float64.

    One pass over the edges per step; all schemes share the steps of the longest one. Computed in whole numbers, a few columns
    at a time, with the same result on every device and for every kind of edges (fixed_point.py).

    Args:
        edges: a simple undirected graph.
        features: n x d encoded features; they say on which device to compute.
        schemes: what to compute.
        rows: a mask: whose aggregates to keep; by default those of all nodes.

    Privacy:
        Reads every edge. The result is as private as the edges: the private entry is `aggregates.py`.
    """
    width = features.shape[1]
    kept = slice(None) if rows is None or bool(rows.all()) else rows.to(features.device).nonzero()[:, 0]
    height = len(features) if rows is None else int(rows.sum())
    pieces = walks(edges, features, schemes)
    if schemes.num_blocks == 1 and 0 < width <= _COLUMNS_AT_ONCE[features.device.type]:
        _, _, state, units = next(pieces)  # all there is, so it may be changed: no second copy
        return real_numbers_in_place(state[kept], units)
    aggregates = torch.empty(height, width * schemes.num_blocks, dtype=torch.float64, device=features.device)
    # A tensor: by a plain number a GPU would not divide, but multiply with its rounded inverse, which gives other bits.
    parts = torch.tensor(float(schemes.num_blocks), dtype=torch.float64, device=features.device)
    for block, columns, state, units in pieces:
        place = slice(block * width + columns.start, block * width + columns.stop)
        part = real_numbers(state[kept], units)
        aggregates[:, place] = part.div_(parts)
    return aggregates


def walks(edges: Edges, features: Tensor, schemes: Schemes) -> Iterator[tuple[int, slice, Tensor, Tensor]]:
    """The same aggregates piece by piece, without the factor 1/s.

    Returns:
        The place of the scheme, the columns of the features, their walk in whole numbers (valid until the next is asked for), and
        the units of these columns.

    Privacy:
        As private as the edges.
    """
    if len(features) != edges.num_nodes:  # kernels do not look
        raise PlanMismatchError("A walk needs one row of features for every node of the graph.")
    units, counts = column_units(features), schemes.counts(len(features))
    if features.dtype not in (torch.float32, torch.float64):
        features = features.to(torch.float64)  # kernels know no others
    for columns in column_blocks(features.shape[1], features.device.type):
        origin = features[:, columns].contiguous()
        for step, state in enumerate_steps(edges, origin, units[columns], schemes):
            for block in (block for block, count in enumerate(counts) if count == step):
                yield block, columns, state, units[columns]


def enumerate_steps(edges: Edges, features: Tensor, units: Tensor, schemes: Schemes) -> Iterator[tuple[int, Tensor]]:
    """The walk after 0, 1, ... steps, up to the last that a scheme wants; each is valid until the next is asked for."""
    walk, scale = Walk(restart=schemes.restart, clip=schemes.clip), (1 / units).to(features.device)
    begin, work = partial(whole_numbers, units=units), partial(walk_step, scale=scale, walk=walk)
    return enumerate(edges.steps(features, begin, work, max(schemes.counts(len(features)))))


def column_blocks(width: int, device: str) -> Iterator[slice]:
    """So many columns at a time: fewer need less memory, more need fewer passes over the edges."""
    most = _COLUMNS_AT_ONCE[torch.device(device).type]
    blocks = max(1, -(-width // most))
    size = -(-width // blocks)
    return (slice(start, min(start + size, width)) for start in range(0, width, max(size, 1)))
