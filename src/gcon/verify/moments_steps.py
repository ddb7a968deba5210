"""Steps for releases of noisy statistics (method `moments`): docs/proofs/gaussian-release.md, with other code.

The budget is one Gaussian distance mu; every statistic has noise of deviation sigma and can be moved by one edge by at most its
sensitivity; the squares of sensitivity/sigma add to at most mu^2. That sum is computed in fractions, without any rounding.
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
    gaussian_delta,
    is_lattice_of,
    lattice_of,
    on_lattice,
    shown,
    whole,
)
from gcon.verify.folder import Folder
from gcon.verify.noise import check_repeated
from gcon.verify.sensitivities import sensitivity_range
from gcon.verify.steps import Steps, UnfitError

NOT_CHECKED_MOMENTS = (
    "that the rows under the statistics (features, answers, messages) had the lengths that the sensitivities say: these are "
    "held against what the method can have, but the features are not in the folder",
    "that answers, student and homophily were computed from the noisy statistics and public data alone",
    "that 'training_nodes' is the checksum of the table that was trained on",
)
_PLAN = {"epsilon", "delta", "distance", "noise", "releases"}
_LAST_ROUNDING = -105  # the power of two by which the two numbers of a sum are rounded
_RECORD = {"bits", "columns", "rounding", "sensitivity", "share", "spacing", "standard_deviation", "statistic"}
_EXACT = "real Gaussian noise, rounded exactly to multiples of the public spacing"
_MOMENTS, _SUMS = "edge moments", "neighbour rows"
_BITS = {_MOMENTS: 22, _SUMS: 52}  # in fixed point: of an entry, and of a column's sum
_RELEASES = 3


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
    """From (epsilon, delta) to mu, from mu to every sigma, and from every sigma back to (epsilon, delta)."""
    plan, budget = folder.plan, folder.model.receipt.budget
    steps.check(
        f"The plan is for the budget of the receipt: epsilon {plan.get('epsilon')!r}, delta {plan.get('delta')!r}",
        set(plan) == _PLAN and plan["epsilon"] == budget.epsilon and plan["delta"] == budget.delta,
    )
    steps.check(
        f"The kind of noise is the one that the proof is about: '{plan.get('noise')}'", plan.get("noise") == _EXACT
    )
    distance = _check_distance(plan, steps)
    released = _check_releases(folder, steps)
    for one in released:
        _check_deviation(one, distance, steps)
        _check_lattice(one, steps)
        low, high = sensitivity_range(
            one.place, one.settings["name"], one.value, nodes=whole(folder.settings, "nodes"), classes=_classes(folder)
        )
        steps.check(
            f"{one.name}: a sensitivity of {shown(one.sensitivity)} is one that the method's rows can have, {shown(low)} to "
            f"{shown(high)}" + (", or 0 with all values 0" if one.place != 1 else ""),
            bool(low <= one.sensitivity <= high)
            or (one.place != 1 and one.sensitivity == 0 and not bool(one.value.any())),
        )
    _check_sum(released, plan, steps)
    if released[-1].settings["name"] == _MOMENTS:
        first, last = released[0], released[-1]
        steps.check(
            f"Statistic {last.place} repeats statistic 0, so it has its sensitivity",
            last.sensitivity == first.sensitivity,
        )
        if first.deviation > 0 and last.deviation > 0:
            check_repeated(first.value, last.value, first.deviation, last.deviation, steps)


def _classes(folder: Folder) -> int:
    return len(folder.model.class_names)


def _check_distance(plan: dict[str, Any], steps: Steps) -> Any:
    """Mu is on the private side of the exact curve, and hardly smaller than it must be."""
    epsilon, delta, distance = (finite(plan, name) for name in ("epsilon", "delta", "distance"))
    cost = gaussian_delta(epsilon, distance)
    steps.check(
        f"Two unit Gaussians at distance mu = {shown(distance)} cost, at this epsilon, delta(eps, mu) = Phi(mu/2 - eps/mu) - "
        f"e^eps Phi(-mu/2 - eps/mu) = {shown(cost)}, at most the delta that is claimed, {shown(delta)}",
        bool(cost <= delta),
    )
    room = 1e-5 + 1e-12 / float(distance)
    steps.check(
        "That mu is the largest one, up to rounding: the plan was made for this budget",
        bool(gaussian_delta(epsilon, distance * (1 + room)) > delta),
    )
    return distance


def _check_releases(folder: Folder, steps: Steps) -> list[_Released]:
    """The statistics in the folder are those that the plan names, release by release."""
    records, settings = folder.plan.get("releases"), folder.settings["statistics"]
    if not (isinstance(records, list) and all(isinstance(record, dict) for record in records)):
        raise UnfitError("'releases' must be a list of records")
    if not len(records) == len(settings) == _RELEASES:
        raise UnfitError("three statistics must be named, and three released")
    values = [folder.model.tensors()[f"statistic.{place}"] for place in range(_RELEASES)]
    released = [
        _Released(place=place, settings=entry, record=record, value=value)
        for place, (entry, record, value) in enumerate(zip(settings, records, values, strict=True))
    ]
    for one in released:
        _check_record(one, nodes=whole(folder.settings, "nodes"), steps=steps)
    nodes, classes, width = whole(folder.settings, "nodes"), _classes(folder), released[0].value.shape[0]
    last, cached = released[2], folder.settings["cached"]
    repeated = last.settings["name"] == _MOMENTS and last.settings["symmetric"] and last.value.shape == (width, width)
    sums = last.settings["name"] == _SUMS and not last.settings["symmetric"] and last.value.shape == (nodes, classes)
    steps.check(
        f"What was released fits the method: moments of {width} directions, moments of {classes} answers and a "
        f"constant, then {'sums over neighbours, one row per node' if cached else 'the first moments again'}",
        all(one.settings["name"] == _MOMENTS and one.settings["symmetric"] is True for one in released[:2])
        and released[1].value.shape == (classes + 1, classes + 1)
        and (sums if cached else repeated),
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
        and kind in _BITS
        and kind == settings["name"]
        and settings["symmetric"] is (kind == _MOMENTS)
        and record["columns"] == one.value.shape[1]
        and record["bits"] == _BITS.get(kind)
        and all(record[name] == settings[name] for name in same),
    )
    rounding = finite(record, "rounding", above=False)
    # Sums of at most n (n - 1) r_1 r_2 become float64 numbers at the end; 2 r_1 r_2 is the sensitivity without rounding.
    most = digits.mpf("1.02") * digits.mpf(2) ** _LAST_ROUNDING * nodes * (nodes - 1) * one.sensitivity / 2
    if kind == _SUMS:
        most = digits.mpf(0)  # their sums are exact
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


def _check_sum(released: list[_Released], plan: dict[str, Any], steps: Steps) -> None:
    """The theorem: everything together is at most one Gaussian release at distance mu."""
    shares = math.fsum(float(one.share) for one in released)
    steps.check(f"The shares add to {shares!r}, at most 1 (and 1e-12 for decimal fractions)", shares <= 1 + 1e-12)
    moved = Fraction(0)
    for one in released:
        if one.settings["sensitivity"] != 0:
            if one.settings["standard_deviation"] == 0:
                steps.check(f"{one.name}: what depends on edges has noise", False)
                return
            moved += (Fraction(one.settings["sensitivity"]) / Fraction(one.settings["standard_deviation"])) ** 2
    whole_distance = Fraction(plan["distance"]) ** 2
    steps.check(
        f"Together one edge moves the release by at most sqrt(sum of (sensitivity/sigma)^2) = {shown(math.sqrt(moved))} standard "
        f"deviations, at most mu = {shown(plan['distance'])} (computed in fractions)",
        moved <= whole_distance,
    )
