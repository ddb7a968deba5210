"""Advice in words."""

from __future__ import annotations

import math
from itertools import groupby
from operator import attrgetter

from gcon.choose.advice import Advice, Verdict
from gcon.choose.expectations import Expectation, intervals, measured_epsilons
from gcon.choose.noise_levels import NoiseFacts
from gcon.choose.paid_look import Look
from gcon.choose.public_facts import PublicFacts
from gcon.choose.run_time import RunTime

_FAR = 0.3  # from here the nearest measured graph is another kind of graph
_SAID = {
    "spend": "spend",
    "little": "little to gain",
    "risky": "risky",
    "nothing": "do not spend",
    "look first": "look first",
    "not measured": "not measured",
}


def in_words(advice: Advice) -> str:
    """The advice, line by line."""
    looked = _look_words(advice.look) if advice.look is not None else _no_look_words(advice)
    return "\n".join(
        [
            *_fact_words(advice.facts),
            *(line for noise in advice.noise for line in _noise_words(noise, advice.facts.num_nodes)),
            *looked,
            *(
                line
                for _, same in groupby(advice.verdicts, attrgetter("access"))
                for line in _verdict_words(list(same), advice)
            ),
            *_interval_words(advice),
            *advice.remarks,
            _time_words(advice.run_time, advice.facts.num_nodes),
        ]
    )


def _fact_words(facts: PublicFacts) -> list[str]:
    fewest, most = min(facts.labels_a_class), max(facts.labels_a_class)
    labels = str(fewest) if fewest == most else f"{fewest} to {most}"
    judged = "validation nodes" if facts.num_validation else "labelled nodes, each without what its own label taught,"
    return [
        f"Public: {facts.num_nodes} nodes, {facts.num_features} features, {facts.num_classes} classes, {labels} training "
        f"labels per class, {facts.num_validation} validation nodes.",
        f"Nodes with the nearest features share their label {facts.neighbours_agree:.2f} above chance (1: always).",
        f"Without any edge {facts.edge_free_accuracy:.3f} of the {judged} are answered correctly (strength "
        f"{facts.edge_free_strength:.2f}; 0: the largest class for everybody, 1: all correct). That costs nothing.",
    ]


def _noise_words(noise: NoiseFacts, num_nodes: int) -> list[str]:
    edges = "no number of edges is enough: nodes do not differ"
    if math.isfinite(noise.heard_edges):
        edges = (
            f"the leading feature direction needs at least {math.ceil(noise.heard_edges)} edges (mean degree "
            f"{2 * noise.heard_edges / num_nodes:.2g}) to exceed it"
        )
    several = ""
    if noise.protect_edges > 1:
        several = f" for any {noise.protect_edges} edges together (epsilon {noise.one_edge:.3g} for one)"
    return [
        f"Noise at epsilon {noise.epsilon:g}, delta {noise.delta:g}{several}: moments {noise.moments:.1f} per direction, "
        f"and {edges}; "
        f"neighbour counts {noise.counts:.1f} per count, heard from a mean degree of {noise.heard_degree:.1f}."
    ]


def _look_words(look: Look) -> list[str]:
    paid, kept = look.receipt.budget, look.receipt.keeps_promise
    bill = f"epsilon {paid.epsilon:g}, delta {paid.delta:g}" if kept else "noise from a seed: no promise"
    return [
        f"The look ({bill}): homophily {look.homophily:.2f} +- {look.homophily_error:.2f}, which is "
        f"{look.above_chance:.2f} +- {look.above_chance_error:.2f} above chance (1: perfect); mean degree "
        f"{look.mean_degree:.1f} +- {look.mean_degree_error:.1f}. Training pays delta once more."
    ]


def _no_look_words(advice: Advice) -> list[str]:
    errors = ", ".join(f"+- {error:.2g} for epsilon {epsilon:g}" for epsilon, error in advice.look_errors)
    said = "" if advice.mean_degree is None else f" A mean degree of {advice.mean_degree:g} was guessed."
    return [f"No edge was read.{said} A look would tell homophily, and the mean degree to {errors}."]


def _verdict_words(verdicts: list[Verdict], advice: Advice) -> list[str]:
    access = verdicts[0].access
    lines = [f"{access} ({verdicts[0].use}):"]
    for verdict in verdicts:
        expected = "" if verdict.expectation is None else f" {_gain_words(verdict.expectation)}"
        method = verdict.method
        if verdict.stage is not None:
            method += " with neighbour counts" if verdict.stage == "counts" else " with edge moments alone"
        lines.append(f"  epsilon {verdict.epsilon:g}: {_SAID[verdict.spend]}; {method}. {verdict.why}{expected}")
    enough, largest = advice.enough.get(access), measured_epsilons()[-1]
    if enough == largest:
        lines.append(f"  Smaller measured budgets bring less than three quarters of what epsilon {largest:g} brings.")
    elif enough is not None:
        lines.append(f"  Epsilon {enough:g} already brings three quarters of what epsilon {largest:g} brings.")
    return lines


def _gain_words(found: Expectation) -> str:
    near = ""
    if found.distance is not None:
        far = "" if found.distance < _FAR else ", too far to rely on"
        near = f" Nearest measured graph at distance {found.distance:.2f}{far}."
    return (
        f"Expect {found.accuracy:.2f} right ({found.accuracy_least:.2f} to {found.accuracy_most:.2f}), "
        f"{100 * found.gain:+.1f} points over what is free ({100 * found.least:+.1f} to {100 * found.most:+.1f}).{near}"
    )


def _interval_words(advice: Advice) -> list[str]:
    """What the intervals are worth: how often they held where it was checked."""
    known = "look" if advice.look is not None else "nothing" if advice.mean_degree is None else "degree"
    asked = dict.fromkeys(verdict.access for verdict in advice.verdicts if verdict.expectation is not None)
    held = ", ".join(f"{100 * intervals()[known, access, 'accuracy'].covered:.0f} % ({access})" for access in asked)
    if not held:
        return []
    return [
        f"Intervals are meant for nine trainings in ten. On real graphs that the table had not seen they held {held}."
    ]


def _time_words(found: RunTime, num_nodes: int) -> str:
    beyond = "" if num_nodes <= found.largest else f"; nothing beyond {found.largest:,} nodes was measured"
    return (
        f"A training takes about {_duration(found.seconds)} of one core ({_duration(found.least)} to "
        f"{_duration(found.most)}{beyond}), after some seconds in which Python loads what it needs."
    )


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.2g} min" if seconds < 6000 else f"{seconds / 3600:.2g} h"
