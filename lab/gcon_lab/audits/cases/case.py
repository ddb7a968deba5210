"""What an audit case is: a mechanism on a pair of graphs, a claim, an attacker's score, and ways to break it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from gcon.edges.edge_list import EdgeList
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import Randomness
from gcon_lab.audits.pairs import EdgePair

Scores = NDArray[np.float64]
Run = Callable[[EdgeList, int, Randomness], Any]
Score = Callable[[Any], Scores]
T = TypeVar("T")

HALVED = "halved noise"
ROOT_TWO = "sensitivity too small by sqrt 2"
REUSED = "seeded noise reused"
DIRECTED = "un-symmetrised input"
ONE_ENTRY = "one directed entry taken for one edge"
EARLY = "early-stopped solver"
UNCERTIFIED = "early-stopped solver, certificate left out"
OTHER_OPTION = "bound of another option"
REUSED_RUNS = 4_000


@dataclass(frozen=True, eq=False, kw_only=True)
class Broken:
    """The mechanism of a case, broken on purpose.

    Attributes:
        kind: what is wrong with it.
        run: replaces the run of the case.
        pair: replaces its pair; None keeps it.
        score: replaces its score; None keeps it.
        runs: enough to catch it; None: as many as the case.
    """

    kind: str
    run: Run
    pair: EdgePair | None = None
    score: Score | None = None
    runs: int | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class AuditCase:
    """One mechanism with one choice of options.

    Attributes:
        mechanism: its name, as `gcon audit` takes it.
        options: in words.
        claimed: what it promises.
        pair: two neighbouring graphs.
        run: (graph, how many, randomness) -> so many independent releases.
        score: releases -> one number each, larger where a release looks like the graph with the edge.
        runs: a graph, by default.
        gaussian: whether it claims a Gaussian curve.
        tight: whether this pair attains the calibration, so that an audit must find at least half of epsilon.
        pair_epsilon: epsilon of the planned noise on this very pair, at the claimed delta: exact, where it is known. A
            bound above it shows less noise than planned, even where the promise has room to spare.
        broken: ways to break it.
    """

    mechanism: str
    options: str
    claimed: Budget
    pair: EdgePair
    run: Run
    score: Score
    runs: int = 200_000
    gaussian: bool = False
    tight: bool = True
    pair_epsilon: float | None = None
    broken: tuple[Broken, ...] = ()

    @property
    def name(self) -> str:
        """Mechanism and options."""
        return f"{self.mechanism}, {self.options}"


def changed(record: T, **fields: object) -> T:
    """A copy of a frozen record with other fields, around its checks: how a plan is broken here."""
    result = copy.copy(record)
    for name, value in fields.items():
        object.__setattr__(result, name, value)
    return result


@final
class RepeatedRandomness:
    """The same bytes in every run: noise from a seed that somebody forgot to change."""

    source: Final = "seeded: no promise"
    keeps_promise: Final = False

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Generator(np.random.Philox(seed))

    def take(self, count: int) -> bytes:
        """The next `count` bytes of the one sequence."""
        return self._generator.bytes(count)


def reused(run: Run, join: Callable[[list[Any]], Any], *, seed: int = 0, score: Score | None = None) -> Broken:
    """Every run of the case starts from the same seed, so all releases on one graph are the same: it is made once.

    Args:
        run: of the case.
        join: a list of single releases -> what `run` would have returned for all of them.
        seed: the one seed.
        score: replaces the score of the case, where that one cannot tell outcomes of the same noise apart.
    """

    def seeded(edges: EdgeList, count: int, _: Randomness) -> Any:
        return join([run(edges, 1, RepeatedRandomness(seed))] * count)

    return Broken(kind=REUSED, run=seeded, score=score, runs=REUSED_RUNS)


def too_little_noise(
    run: Callable[[float], Run], join: Callable[[list[Any]], Any], *, seed: int = 0, score: Score | None = None
) -> tuple[Broken, ...]:
    """Half of the noise, noise for a smaller sensitivity, and the same noise again and again (`reused`).

    `run` takes a factor on the noise and gives runs with that noise.
    """
    return (
        Broken(kind=HALVED, run=run(0.5)),
        Broken(kind=ROOT_TWO, run=run(math.sqrt(0.5))),
        reused(run(1.0), join, seed=seed, score=score),
    )
