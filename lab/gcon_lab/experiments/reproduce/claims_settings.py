"""The claims about restart and steps: Figures 2, 3 and 4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product

from gcon_lab.experiments.reproduce.claim_terms import (
    EPSILONS,
    LITTLE,
    RAPID,
    RESTARTS,
    STEPS,
    Lookup,
    Panel,
    at,
    listed,
    path,
    step,
)
from gcon_lab.experiments.reproduce.comparisons import above, weigh
from gcon_lab.experiments.reproduce.points import Point
from gcon_lab.experiments.reproduce.verdicts import Draft
from gcon_lab.experiments.sweep.grid import HOMOPHILOUS

Curves = dict[str, tuple[list[Point], list[str]]]  # points and missing ones, by restart


def best_restart(all_: Lookup) -> Iterator[Draft]:
    """Claim 1: decided on the mean over the budgets, the best of each budget beside it."""
    for graph, restart in (("cora-ml", "0.8"), ("citeseer", "0.8"), ("pubmed", "0.4")):
        panel = all_.panel("fig4", graph)
        winners = []
        for epsilon in EPSILONS:
            points, missing = _restarts(panel, epsilon)
            if not missing:
                winners.append(f"{max(points, key=lambda point: point.mean).line} at {epsilon}")
        note = f"; best: {', '.join(winners)}" if winners else ""
        yield _extreme(panel, restart, EPSILONS, where=graph, highest=True, note=note)


def worst_restart(all_: Lookup) -> Iterator[Draft]:
    """Claim 2a."""
    for graph, epsilon in product(HOMOPHILOUS, ("0.5", "1")):
        yield _extreme(all_.panel("fig4", graph), "0.2", [epsilon], where=at(graph, epsilon), highest=False)


def little_from_small_restart(all_: Lookup) -> Iterator[Draft]:
    """Claim 2b."""
    for graph, epsilon in product(HOMOPHILOUS, ("3", "4")):
        points, missing = _restarts(all_.panel("fig4", graph), epsilon)
        where, numbers = at(graph, epsilon), listed(points)
        if missing:  # a missing restart may be the one that 0.2 does not exceed
            yield Draft(where=where, numbers=numbers, missing=missing)
            continue
        (small,) = (point for point in points if point.line == "restart 0.2")
        gain = above(small, max((point for point in points if point is not small), key=lambda point: point.mean))
        yield Draft(where=where, numbers=numbers, fits=gain.difference <= LITTLE, shown=[gain])


def curves_over_steps(all_: Lookup) -> Iterator[Draft]:
    """Claim 3: one step against the limit."""
    for graph, restart in product(HOMOPHILOUS, RESTARTS):
        points, missing = all_.panel("fig2", graph).curve(f"restart {restart}", ("1", "inf"))
        where, numbers = f"{graph}, restart {restart}", path(points)
        if missing:
            yield Draft(where=where, numbers=numbers, missing=missing)
            continue
        fall = step(*points)
        fits = {"0.2": fall.difference > RAPID, "0.4": 0 < fall.difference <= RAPID}
        yield Draft(
            where=where,
            numbers=f"{numbers}, change {-fall.difference:+.4f}",
            fits=fits.get(restart, fall.difference <= LITTLE),
            deciding=[fall] if restart == "0.2" else [],
            shown=[fall] if restart != "0.2" else [],
        )


def no_help_after_ten(all_: Lookup) -> Iterator[Draft]:
    """Claim 4a: the limit against ten steps, with private and with public inference."""
    for figure, reading, graph in [*(("fig2", "", graph) for graph in HOMOPHILOUS), *_public_panels(all_)]:
        curves = _curves(all_.panel(figure, graph, reading), ("10", "inf"))
        gains = [step(last, ten) for ten, last in (points for points, missing in curves.values() if not missing)]
        yield Draft(
            where=_public(figure, reading, graph),
            numbers=_paths(curves),
            fits=all(gain.difference <= LITTLE for gain in gains),
            shown=gains,
            missing=_missing(curves),
        )


def help_until_ten(all_: Lookup) -> Iterator[Draft]:
    """Claim 4b: each reading of Figure 3 by itself."""
    for figure, reading, graph in _public_panels(all_):
        curves = _curves(all_.panel(figure, graph, reading), STEPS[:-1])
        whole = [points for points, missing in curves.values() if not missing]
        steps = [step(before, after) for points in whole for before, after in pairwise(points)]
        yield Draft(
            where=_public(figure, reading, graph),
            numbers=_paths(curves),
            fits=all(step.difference <= LITTLE for step in steps),
            deciding=[step(points[-1], points[0]) for points in whole],
            missing=_missing(curves),
        )


def _extreme(panel: Panel, restart: str, places: Sequence[str], *, where: str, highest: bool, note: str = "") -> Draft:
    curves = _curves(panel, places)
    missing = _missing(curves)
    whole = {each: points for each, (points, names) in curves.items() if not names}
    means = {each: sum(point.mean for point in points) / len(points) for each, points in whole.items()}
    numbers = ", ".join(f"restart {each} {mean:.4f}" for each, mean in means.items()) + note
    others = [each for each in means if each != restart]
    if restart not in means or not others:
        return Draft(where=where, numbers=numbers, missing=missing)
    rival = (max if highest else min)(others, key=means.__getitem__)
    upper, lower = (restart, rival) if highest else (rival, restart)
    terms = [(1 / len(places), point) for point in whole[upper]] + [(-1 / len(places), point) for point in whole[lower]]
    lead = weigh(f"restart {upper} > restart {lower}", terms)
    return Draft(where=where, numbers=numbers, fits=lead.difference > 0, shown=[lead], missing=missing)


def _restarts(panel: Panel, epsilon: str) -> tuple[list[Point], list[str]]:
    curves = _curves(panel, [epsilon])
    return [point for points, _ in curves.values() for point in points], _missing(curves)


def _public_panels(all_: Lookup) -> list[tuple[str, str, str]]:
    return [("fig3", reading, graph) for reading in all_.readings("fig3") for graph in HOMOPHILOUS]


def _public(figure: str, reading: str, graph: str) -> str:
    return ", ".join(word for word in (graph, figure, reading) if word)


def _curves(panel: Panel, places: Iterable[str]) -> Curves:
    return {restart: panel.curve(f"restart {restart}", places) for restart in RESTARTS}


def _missing(curves: Curves) -> list[str]:
    return [name for _, names in curves.values() for name in names]


def _paths(curves: Curves) -> str:
    return "; ".join(path(points, f"restart {restart} ") for restart, (points, _) in curves.items() if points)
