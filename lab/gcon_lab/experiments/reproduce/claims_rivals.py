"""The claims about competitors, controls and budgets: Figure 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gcon_lab.experiments.reproduce.claim_terms import (
    CLOSE,
    COMPETITORS,
    CONTROLS,
    EPSILONS,
    GCON,
    MLP,
    UPPER,
    Lookup,
    Panel,
    at,
    listed,
    path,
    spread,
    step,
)
from gcon_lab.experiments.reproduce.comparisons import above, weigh
from gcon_lab.experiments.reproduce.points import Point
from gcon_lab.experiments.reproduce.verdicts import Draft
from gcon_lab.experiments.sweep.grid import HOMOPHILOUS, PAPER_GRAPHS


def competitors(all_: Lookup) -> Iterator[Draft]:
    """Claim 5."""
    for graph, panel, epsilon in _places(all_):
        rivals = _lines(panel.kind("competitor", epsilon), COMPETITORS)
        controls = _lines(panel.kind("control", epsilon), CONTROLS)
        yield _against(panel, epsilon, graph=graph, rivals=rivals, controls=controls)


def above_mlp(all_: Lookup) -> Iterator[Draft]:
    """Claim 7."""
    for graph, panel, epsilon in _places(all_):
        controls = [each for each in _lines(panel.kind("control", epsilon), CONTROLS) if each != MLP]
        yield _against(panel, epsilon, graph=graph, rivals=[MLP], controls=controls)


def close(all_: Lookup) -> Iterator[Draft]:
    """Claim 6."""
    for graph, panel, epsilon in _places(all_):
        method, upper = panel.find(GCON, epsilon), panel.find(UPPER, epsilon)
        yield _within(at(graph, epsilon), {GCON: method, UPPER: upper}, method, upper, what="gap")


def withstands(all_: Lookup) -> Iterator[Draft]:
    """Claim 9b."""
    for graph in PAPER_GRAPHS:
        panel = all_.panel("fig1", graph)
        small, large = panel.find(GCON, "0.5"), panel.find(GCON, "4")
        yield _within(graph, {f"{GCON} at 0.5": small, f"{GCON} at 4": large}, small, large, what="loss")


def gain(all_: Lookup) -> Iterator[Draft]:
    """Claim 8: over the mean of the competitors, since a gain over the best one would compare two selections."""

    def terms(graph: str) -> tuple[list[tuple[float, Point]], list[str]]:
        panel = all_.panel("fig1", graph)
        weights = {GCON: 1 / len(EPSILONS), **dict.fromkeys(COMPETITORS, -1 / len(EPSILONS) / len(COMPETITORS))}
        curves = {name: panel.curve(name, EPSILONS) for name in weights}
        missing = [f"{each} on {graph}" for _, names in curves.values() for each in names]
        return [(weights[name], point) for name, (points, _) in curves.items() for point in points], missing

    actor, actor_missing = terms("actor")
    for graph in HOMOPHILOUS:
        where, (mine, missing) = f"{graph} against actor", terms(graph)
        if missing or actor_missing:
            yield Draft(where=where, numbers="", missing=missing + actor_missing)
            continue
        gains = f"gain {weigh('', mine).difference:+.4f}, on actor {weigh('', actor).difference:+.4f}"
        difference = weigh(f"gain on {graph} > gain on actor", [*mine, *((-weight, point) for weight, point in actor)])
        yield Draft(where=where, numbers=gains, deciding=[difference])


def competitors_fall(all_: Lookup) -> Iterator[Draft]:
    """Claim 9a: the paper explains the fall by homophily, so Actor is left out."""
    for graph in HOMOPHILOUS:
        for name in COMPETITORS:
            points, missing = all_.panel("fig1", graph).curve(name, ("0.5", "4"))
            falls = [] if missing else [step(points[1], points[0])]
            yield Draft(where=f"{graph}, {name}", numbers=path(points), deciding=falls, missing=missing)


def _places(all_: Lookup) -> Iterator[tuple[str, Panel, str]]:
    """Every graph, its panel and every budget."""
    for graph in PAPER_GRAPHS:
        panel = all_.panel("fig1", graph)
        yield from ((graph, panel, epsilon) for epsilon in EPSILONS)


def _against(panel: Panel, epsilon: str, *, graph: str, rivals: Sequence[str], controls: Sequence[str]) -> Draft:
    named = {name: panel.find(name, epsilon) for name in (GCON, *rivals, *controls)}
    missing = [name for name, point in named.items() if point is None]
    method = named[GCON]
    rival_points, control_points = (
        [point for name in names if (point := named[name]) is not None] for names in (rivals, controls)
    )
    best_control = max(control_points, key=lambda point: point.mean, default=None)
    parts = {"": method, "best rival: ": max(rival_points, key=lambda point: point.mean, default=None)}
    parts["best control: "] = best_control
    numbers = "; ".join(f"{word}{listed([point])}" for word, point in parts.items() if point)
    if method is None:
        return Draft(where=at(graph, epsilon), numbers=numbers, missing=missing)
    lead = None
    if best_control is not None:
        lead = weigh(f"{GCON} > {best_control.line} (control)", [(1.0, method), (-1.0, best_control)])
    return Draft(
        where=at(graph, epsilon),
        numbers=numbers,
        deciding=[above(method, rival) for rival in rival_points],
        shown=[lead] if lead else [],
        control_as_good=lead is not None and lead.difference <= 0,
        missing=missing,
    )


def _within(
    where: str, named: dict[str, Point | None], lower: Point | None, upper: Point | None, *, what: str
) -> Draft:
    numbers = ", ".join(f"{name} {spread(point)}" for name, point in named.items() if point)
    if lower is None or upper is None:
        return Draft(where=where, numbers=numbers, missing=[name for name, point in named.items() if point is None])
    gap = step(upper, lower) if lower.line == upper.line else above(upper, lower)
    numbers = f"{numbers}, {what} {gap.difference:+.4f}"
    return Draft(where=where, numbers=numbers, fits=gap.difference <= CLOSE, shown=[gap])


def _lines(points: Sequence[Point], expected: Sequence[str]) -> list[str]:
    """The lines the paper draws, and whatever else of their kind we have."""
    return list(dict.fromkeys([*expected, *(point.line for point in points)]))
