"""What the measured attacks amount to: gains over the edge-free reference, canary tests, and what was to be shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from gcon_lab.attacks.canaries import Guesses
from gcon_lab.experiments.attacks.attacked import CANARY_DELTA, reads_edges, reference_of
from gcon_lab.experiments.beyond.targets import Target

FALSE_ALARM = 0.01  # of all canary tests together
_PURE = ("lpgnet", "dpgcn")  # their delta is 0
_Key = tuple[str, str, str, str, str]
FAMILIES = ("influence", "similarity", "supervised", "replay")


@dataclass(frozen=True)
class Line:
    """One kind of attack on one method: the best of its variants.

    Attributes:
        some: true positives at 1 % false ones.
        gain: in area, over the same on the edge-free reference; None where there is none.
    """

    graph: str
    method: str
    epsilon: str
    access: str
    family: str
    attack: str
    auc: float
    some: float
    gain: float | None


def lines(found: pl.DataFrame) -> list[Line]:
    """One line per graph, method, budget, access and kind of attack."""
    best: dict[_Key, dict[str, Any]] = {}
    for row in found.iter_rows(named=True):
        family = next(name for name in FAMILIES if row["attack"].startswith(name))
        key = (row["graph"], row["method"], row["epsilon"], row["access"], family)
        if key not in best or row["auc"] > best[key]["auc"]:
            best[key] = row
    return [_line(key, row, best) for key, row in best.items()]


def _line(key: _Key, row: dict[str, Any], best: dict[_Key, dict[str, Any]]) -> Line:
    graph, method, _, access, family = key
    compared = reference_of(method, access)
    other = None if compared is None else best.get((graph, compared[0], "any", compared[1], family))
    gain = None if other is None else row["auc"] - other["auc"]
    return Line(*key, attack=row["attack"], auc=row["auc"], some=row["tpr at 1 %"], gain=gain)


@dataclass(frozen=True)
class Judged:
    """All canary runs of one attack on one method, against its promise."""

    graph: str
    method: str
    epsilon: str
    access: str
    attack: str
    covered: bool
    guesses: Guesses
    p: float
    at_least: float
    auc: float

    @property
    def names(self) -> tuple[str, ...]:
        return self.graph, self.method, self.epsilon, self.access, self.attack

    def verdict(self, level: float) -> str:
        """In words; `level` is what one test may err with."""
        if self.p >= level:
            return "holds" if self.covered else "not told apart"
        return "BROKEN" if self.covered else "beyond it, and not promised"


def judged(found: pl.DataFrame) -> tuple[list[Judged], float]:
    """All tests, and the false-alarm rate of each that keeps all of them together below `FALSE_ALARM`."""
    keys = ["graph", "method", "epsilon", "access", "attack", "covered"]
    grouped = found.group_by(keys, maintain_order=True).agg(
        pl.col("coins", "made", "right").sum(), pl.col("auc").mean()
    )
    level = FALSE_ALARM / max(grouped.height, 1)
    rows = []
    for row in grouped.iter_rows(named=True):
        guesses = Guesses(row["coins"], row["made"], row["right"])
        delta = 0.0 if row["method"] in _PURE else CANARY_DELTA
        p = guesses.p_value(float(row["epsilon"]), delta)
        at_least = guesses.epsilon_at_least(delta, false_alarm=level)
        names = row["graph"], row["method"], row["epsilon"], row["access"], row["attack"]
        rows.append(Judged(*names, covered=row["covered"], guesses=guesses, p=p, at_least=at_least, auc=row["auc"]))
    return rows, level


def shown(rows: Sequence[Line], tests: Sequence[Judged], level: float) -> Iterator[Target]:
    """Every one in turn, whatever the numbers say."""
    for row in rows:
        if (row.method, row.access, row.family) == ("gcn", "full", "influence"):
            asked = "the influence attack on the non-private GCN: AUC above 0.95"
            numbers = f"{row.auc:.3f}; edge-free reference {'' if row.gain is None else f'{row.auc - row.gain:.3f}'}"
            yield Target(asked, row.graph, "yes" if row.auc > 0.95 else "no", numbers)
    covered = [test for test in tests if test.covered]
    if covered:
        worst = min(covered, key=lambda test: test.p)
        words = f"{worst.method}, epsilon {worst.epsilon}, {worst.access}, {worst.attack}: p = {worst.p:.2g}"
        asked = f"canaries: no promise is broken ({len(covered)} tests, each at {level:.1g})"
        yield Target(asked, "canary runs", "yes" if worst.p >= level else "no", f"smallest p: {words}")
    for test in tests:
        if (test.method, test.attack) == ("gcn", "influence"):
            asked = f"canaries: the non-private GCN, passed off with epsilon {test.epsilon}, is caught"
            numbers = f"{test.guesses.right} of {test.guesses.made} right, p = {test.p:.2g}"
            yield Target(asked, test.graph, "yes" if test.p < level else "no", numbers)
    open_ones = [row for row in rows if row.access == "own-edges" and row.family == "replay"]
    if open_ones:
        least = min(open_ones, key=lambda row: row.auc)
        asked = "own-edges answers that a third party sees give the edge away (a documented limit)"
        numbers = f"least AUC of the replay attack: {least.auc:.3f} ({least.method}, {least.graph})"
        yield Target(asked, "all", "yes" if least.auc > 0.95 else "no", numbers)
    closed = [row for row in rows if row.access in ("none", "cached") and row.gain is not None]
    closed = [row for row in closed if reads_edges(row.method)]
    if closed:
        most = max(closed, key=lambda row: row.gain or 0.0)
        asked = "publishable answers (none, cached): the largest gain over the edge-free reference"
        numbers = f"{most.gain:+.3f} ({most.method}, epsilon {most.epsilon}, {most.attack}, {most.graph})"
        yield Target(asked, "all", "told", numbers)
