"""How far features travel: no step, m steps, or the limit; several schemes side by side.

R_0 = I,  R_m = (1 - restart) T R_(m-1) + restart I,  R_inf = restart (I - (1 - restart) T)^-1 with the row-stochastic
transition T. Aggregates are (1/s) [R_m1 X, ..., R_ms X] (the paper's equations for R_m, Z_m and Z).
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gcon.errors import InputError, check_number
from gcon.graphs.edges import EdgeList
from gcon.propagate.multiply import Multiplier
from gcon.propagate.transition import transition_weights

MOST_STEPS = 1000
MOST_LIMIT_ITERATIONS = 10_000


@dataclass(frozen=True)
class Schemes:
    """The public description of a propagation.

    Attributes:
        restart: alpha in [0, 1]; 0 only with finite steps.
        steps: one entry a scheme: a whole number from 0 to 1000, or infinity.
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
        check_number(
            "restart",
            self.restart,
            allowed=lambda number: 0 <= number <= 1,
            rule="must lie in [0, 1]",
            fix="The paper uses 0.2 to 0.8.",
        )
        check_number(
            "clip",
            self.clip,
            allowed=lambda number: 0 < number <= 0.5,
            rule="must lie in (0, 1/2]",
            fix="1/2 clips nothing.",
        )
        # Python's own numbers: half precision from elsewhere would calibrate the noise in half precision.
        object.__setattr__(self, "restart", float(self.restart))
        object.__setattr__(self, "clip", float(self.clip))
        if math.inf in self.steps:
            if self.restart == 0:
                raise InputError(
                    "restart",
                    rule="must be positive with infinite steps (one edge could change everything)",
                    got=self.restart,
                    fix="Raise restart, or use finite steps.",
                )
            if self.limit_iterations(num_nodes=1) > MOST_LIMIT_ITERATIONS:
                raise InputError(
                    "restart",
                    rule="is too small for infinite steps (more than 10,000 iterations)",
                    got=self.restart,
                    fix="Raise restart, or use finite steps.",
                )

    @property
    def num_blocks(self) -> int:
        """s, the number of schemes."""
        return len(self.steps)

    @property
    def reads_edges(self) -> bool:
        """False if the aggregates cannot depend on any edge."""
        return self.restart < 1 and any(count > 0 for count in self.steps)

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


def propagate(edges: EdgeList, features: Tensor, schemes: Schemes) -> Tensor:
    """Aggregates of all nodes: (1/s) [R_m1 X, ..., R_ms X], as float64.

    One pass over the edges a step; all schemes share the steps of the longest one.

    Args:
        edges: a simple undirected graph.
        features: n x d encoded features; they say on which device to compute.
        schemes: what to compute.

    Privacy:
        Reads every edge. The result is as private as the edges: the private entry is `aggregates.py`.
    """
    features = features.to(torch.float64)
    wanted = [schemes.limit_iterations(edges.num_nodes) if math.isinf(count) else int(count) for count in schemes.steps]
    width, scale = features.shape[1], 1 / schemes.num_blocks
    aggregates = features.new_empty(features.shape[0], width * schemes.num_blocks)

    def keep(step: int, current: Tensor) -> None:
        for block, count in enumerate(wanted):
            if count == step:
                torch.mul(current, scale, out=aggregates[:, block * width : (block + 1) * width])

    keep(0, features)
    last = max(wanted) if schemes.restart < 1 else 0
    if last == 0:
        for block in range(schemes.num_blocks):
            torch.mul(features, scale, out=aggregates[:, block * width : (block + 1) * width])
        return aggregates
    multiplier = Multiplier(edges, transition_weights(edges, schemes.clip), features.device)
    current = features
    for step in range(1, last + 1):
        current = multiplier.step(current, features, restart=schemes.restart)
        keep(step, current)
    return aggregates
