"""Steps for releases of noisy statistics (method `moments`): docs/proofs/neighbour-counts.md, with other code.

First the plan, branch by branch; then what was released, in the order in which it was. Gaussian releases have one distance mu:
every statistic has noise of deviation sigma and can be moved by one edge by at most its sensitivity; the squares of
sensitivity/sigma add to at most mu^2, or to its first share where tables of counts follow. That sum is computed in fractions,
without any rounding (docs/proofs/gaussian-release.md). Which sensitivities these statistics can have, whatever the features are:

| statistic                     | its rows                                                    | lengths of the longest         |
|-------------------------------|-------------------------------------------------------------|--------------------------------|
| 0, edge moments of directions | of length 1 (or 0)                                          | 1                              |
| 1, edge moments of answers    | c probabilities that sum to 1, and a constant column of 0.3 | sqrt(1/c + 0.09) to sqrt(1.09) |
| 2, the same as 0              | of length 1 (or 0)                                          | 1                              |

One edge moves edge moments by 2 r_1 r_2, with r_1 and r_2 the lengths of the two longest rows (docs/proofs/edge-moments.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from torch import Tensor

from gcon.verify.arithmetic import (
    agrees,
    digits,
    finite,
    is_lattice_of,
    lattice_of,
    on_lattice,
    shown,
    whole,
)
from gcon.verify.branch_steps import Branches, check_branches
from gcon.verify.count_steps import COUNTS, check_branch, check_right_answers, check_tables
from gcon.verify.folder import Folder
from gcon.verify.noise import check_normal, check_repeated
from gcon.verify.several_edges import check_stated
from gcon.verify.steps import Steps, UnfitError

NOT_CHECKED_MOMENTS = (
    "that the rows under the statistics (features, answers) had the lengths that the sensitivities say: these are held against "
    "what the method can have, but the features are not in the folder",
    "that neighbours were counted once each and by the codes that are named, and that right answers were counted as the method "
    "says: a table and a count have the noise of any whole numbers; of one-way counts the rows of nodes without a label are "
    "shown once, so that nothing shows their noise",
    "that answers, student, homophily, 'gain' and what owners ask (regressions, starts, proportions, shares of edges) were "
    "computed from the released numbers and public data alone; nor, of two tables, the codes of the first",
    "that 'labels' are the labels of the labelled nodes, and 'asked' the number of nodes that were marked for validation",
    "that 'training_nodes' is the checksum of the table that was trained on",
)
_LAST_ROUNDING = -105  # the power of two by which the two numbers of a sum are rounded
_RECORD = {"bits", "columns", "rounding", "sensitivity", "share", "spacing", "standard_deviation", "statistic"}
_MOMENTS = "edge moments"
_BITS = 22  # in fixed point, of an entry
_CONSTANT = 0.3  # the column of the answers that counts edges
_FIRST, _AGAIN = 2, 3  # statistics with tables, and without
_SINGLE = 1e-6  # rows were scaled to length 1 in single precision
_ANSWERS = 1e-4  # probabilities sum to 1 up to this
_COUNT = digits.mpf("0.3")  # the column of the answers that counts edges


@dataclass(frozen=True, kw_only=True)
class _Released:
    """One released statistic: its words and numbers in the settings, its record in the plan, its values."""

    place: int
    settings: dict[str, Any]
    record: dict[str, Any]
    value: Tensor

    @property
    def name(self) -> str:
        return f"Statistic {self.place} ({self.settings['name']}, {' x '.join(map(str, self.value.shape))})"

    @property
    def deviation(self) -> Any:
        return finite(self.settings, "standard_deviation", above=False)

    @property
    def sensitivity(self) -> Any:
        return finite(self.settings, "sensitivity", above=False)

    @property
    def share(self) -> Any:
        return finite(self.settings, "share", above=False)

    @property
    def smallest_deviation(self) -> Any:
        """Off the diagonal of a symmetric statistic the noise is sigma/sqrt 2."""
        return self.deviation / digits.sqrt(2) if self.settings["symmetric"] else self.deviation


def check_moments(folder: Folder, steps: Steps) -> None:
    """From (epsilon, delta) to the noise of every branch, and from the noise of every release back to (epsilon, delta)."""
    branches = check_branches(folder, steps)
    statistics, tables, counts = _check_order(folder, steps)
    released = _check_statistics(folder, statistics, steps)
    for one in released:
        _check_deviation(one, branches.distance, steps)
        _check_lattice(one, steps)
        low, high = sensitivity_range(one.place, one.value, classes=_classes(folder))
        steps.check(
            f"{one.name}: a sensitivity of {shown(one.sensitivity)} is one that the method's rows can have, {shown(low)} to "
            f"{shown(high)}" + (", or 0 with all values 0" if one.place != 1 else ""),
            bool(low <= one.sensitivity <= high)
            or (one.place != 1 and one.sensitivity == 0 and not bool(one.value.any())),
        )
    _check_sum(released, folder.plan, branches, before_tables=bool(tables), steps=steps)
    if len(released) == _AGAIN:
        first, last = released[0], released[-1]
        steps.check(
            f"Statistic {last.place} repeats statistic 0, so it has its sensitivity",
            last.sensitivity == first.sensitivity,
        )
        if first.deviation > 0 and last.deviation > 0:
            check_repeated(first.value, last.value, first.deviation, last.deviation, steps)
    _check_answers_noise(released[1], steps)
    check_branch(folder, branches, released[1].value, steps)
    check_tables(folder, tables, branches, steps)
    check_right_answers(folder, counts, branches, steps)
    check_stated(folder, branches, steps)


def _classes(folder: Folder) -> int:
    return len(folder.model.class_names)


def _check_order(folder: Folder, steps: Steps) -> tuple[list[dict[str, Any]], ...]:
    """The records of statistics, tables and counts of answers: released in this order, as many as the settings name."""
    records, settings = folder.plan.get("releases"), folder.settings
    if not (isinstance(records, list) and all(isinstance(record, dict) for record in records)):
        raise UnfitError("'releases' must be a list of records")
    kinds: tuple[list[dict[str, Any]], ...] = ([], [], [])
    for record in records:
        kinds[2 if "statistic" not in record else 1 if record["statistic"] == COUNTS else 0].append(record)
    statistics, tables, counts = kinds
    named = len(settings["statistics"]), len(settings["tables"])
    if (len(statistics), len(tables)) != named or named[0] != (_FIRST if named[1] else _AGAIN):
        raise UnfitError("two statistics and tables must be named and released, or three statistics")
    steps.check(
        f"The order is one that the proof covers: {len(statistics)} statistics"
        + (f", then {len(tables)} of the tables of neighbour counts" if tables else "")
        + (", then the count of right answers" if counts else ""),
        records == [*statistics, *tables, *counts] and len(counts) <= 1,
    )
    return kinds


def _check_statistics(folder: Folder, records: list[dict[str, Any]], steps: Steps) -> list[_Released]:
    """The statistics in the folder are those that the plan names, release by release."""
    settings, tensors = folder.settings, folder.model.tensors()
    released = [
        _Released(place=place, settings=entry, record=record, value=tensors[f"statistic.{place}"])
        for place, (entry, record) in enumerate(zip(settings["statistics"], records, strict=True))
    ]
    for one in released:
        _check_record(one, nodes=whole(settings, "nodes"), steps=steps)
    classes, width = _classes(folder), released[0].value.shape[0]
    tables = bool(settings["tables"])
    steps.check(
        f"What was released fits the method: moments of {width} directions, moments of {classes} answers and a "
        f"constant, then {'neighbour counts, one row per node' if tables else 'the first moments again'}",
        all(one.settings["name"] == _MOMENTS and one.settings["symmetric"] is True for one in released)
        and released[1].value.shape == (classes + 1, classes + 1)
        and released[-1].value.shape[0] == (classes + 1 if tables else width),
    )
    return released


def _check_record(one: _Released, *, nodes: int, steps: Steps) -> None:
    """The plan's record of a statistic, and the settings."""
    record, settings = one.record, one.settings
    kind = record.get("statistic")
    same = ("sensitivity", "share", "standard_deviation")
    steps.check(
        f"{one.name}: plan and settings name the same statistic, size, sensitivity, share and noise",
        set(record) == _RECORD
        and kind == settings["name"] == _MOMENTS
        and record["columns"] == one.value.shape[1]
        and record["bits"] == _BITS
        and all(record[name] == settings[name] for name in same),
    )
    rounding = finite(record, "rounding", above=False)
    # Sums of at most n (n - 1) r_1 r_2 become float64 numbers at the end; 2 r_1 r_2 is the sensitivity without rounding.
    most = digits.mpf("1.02") * digits.mpf(2) ** _LAST_ROUNDING * nodes * (nodes - 1) * one.sensitivity / 2
    steps.check(
        f"{one.name}: the rounding of its sums, {shown(rounding)} on both sides, is inside the sensitivity and no more than "
        f"{nodes} nodes allow, {shown(most)}, nor than a tenth",
        bool(rounding <= most and 20 * rounding <= one.sensitivity),
    )
    if one.deviation > 0:
        steps.check(
            f"{one.name}: the spacing {shown(finite(record, 'spacing'))} is the power of two below 1/4096 of the smallest "
            f"deviation of an entry, {shown(one.smallest_deviation)}",
            is_lattice_of(finite(record, "spacing"), one.smallest_deviation),
        )
    else:
        steps.check(f"{one.name}: without noise there is no spacing", record["spacing"] == 0)


def _check_deviation(one: _Released, distance: Any, steps: Steps) -> None:
    """Sigma = sensitivity/(mu sqrt(share)): not less for the promise, not more because the plan says so."""
    if one.sensitivity == 0:
        steps.check(f"{one.name}: sensitivity 0, so no noise", one.deviation == 0)
        return
    if not one.share > 0:
        raise UnfitError("a statistic that depends on edges has no 'share'")
    needed = one.sensitivity / (distance * digits.sqrt(one.share))
    steps.check(
        f"{one.name}: noise sigma = {shown(one.deviation)} is at least sensitivity/(mu sqrt(share)) = "
        f"{shown(one.sensitivity)}/({shown(distance)} sqrt({shown(one.share)})) = {shown(needed)}, and no other number",
        bool(one.deviation >= needed) and agrees(one.deviation, needed),
    )


def _check_answers_noise(answers: _Released, steps: Steps) -> None:
    """Answers sum to 1 and a constant stands beside them: 0.3 times their sum less the constant is 0 for every node."""
    if not answers.deviation > 0:
        return
    classes, deviation = answers.value.shape[0] - 1, float(answers.deviation)
    normal = answers.value.new_full((classes + 1,), _CONSTANT)
    normal[-1] = -1.0
    # In fixed point (22 bits) and single precision a row may be off its plane by this, and every end of an edge adds such a row
    # times one of length sqrt 1.09. The moments count the ends of edges too, with noise.
    off = _CONSTANT * classes * 2.0**-21 + 2.0**-22
    ends = max(float(answers.value[-1, -1]), 0.0) + 7 * deviation
    rounding = off * ends / _CONSTANT**2 * 1.05
    check_normal(answers.value, normal, answers.deviation, rounding=rounding, steps=steps)


def _check_lattice(one: _Released, steps: Steps) -> None:
    """The released numbers themselves."""
    if one.deviation > 0:
        spacing = lattice_of(one.smallest_deviation)
        steps.check(
            f"{one.name}: all {one.value.numel()} numbers are multiples of {shown(spacing)}",
            on_lattice(one.value, spacing),
        )
    if one.settings["symmetric"]:
        steps.check(f"{one.name}: it is symmetric", bool((one.value == one.value.T).all()))


def _check_sum(
    released: list[_Released], plan: dict[str, Any], branches: Branches, *, before_tables: bool, steps: Steps
) -> None:
    """The theorem: all statistics together are at most one Gaussian release at distance mu, or at the part before tables."""
    shares = math.fsum(float(one.share) for one in released)
    most = Fraction(plan["first_share"]) if before_tables else Fraction(1)
    steps.check(
        f"The shares add to {shares!r}, at most {shown(float(most))} (and 1e-12 for decimal fractions)",
        shares <= float(most) + 1e-12,
    )
    moved = Fraction(0)
    for one in released:
        if one.settings["sensitivity"] != 0:
            if one.settings["standard_deviation"] == 0:
                steps.check(f"{one.name}: what depends on edges has noise", False)
                return
            moved += (Fraction(one.settings["sensitivity"]) / Fraction(one.settings["standard_deviation"])) ** 2
    whole_distance = most * Fraction(plan["distance"]) ** 2
    words = f"mu sqrt({shown(branches.first_share)})" if before_tables else "mu"
    steps.check(
        f"Together one edge moves the statistics by at most sqrt(sum of (sensitivity/sigma)^2) = {shown(math.sqrt(moved))} "
        f"standard deviations, at most {words} = {shown(math.sqrt(whole_distance))} (computed in fractions)",
        moved <= whole_distance,
    )


def sensitivity_range(place: int, value: Tensor, *, classes: int) -> tuple[Any, Any]:
    """The smallest and the largest sensitivity, with room for fixed point and single precision."""
    # Fixed point with 22 bits per entry (at most 1, which needs a unit of 2^-21) moves it by at most 2^-22.
    fixed = digits.sqrt(value.shape[1]) * digits.mpf(2) ** -22
    if place == 1:
        slack = _ANSWERS + 4 * fixed
        shortest, longest = digits.mpf(1) / classes + _COUNT**2, 1 + _COUNT**2
        return 2 * shortest * (1 - slack), 2 * longest * (1 + slack)
    slack = _SINGLE + fixed
    return 2 * max(0, 1 - slack) ** 2, 2 * (1 + slack) ** 2
