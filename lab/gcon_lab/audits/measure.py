"""Run audit cases and say what was found: one line per case, and one per broken variant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from gcon.errors import NoCertificateError
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.audits.cases.case import AuditCase, Broken
from gcon_lab.audits.cases.many_canaries import OneRunCase, Release
from gcon_lab.audits.cases.registry import AnyCase
from gcon_lab.audits.cases.searches import SearchCase
from gcon_lab.audits.empirical import epsilon_bound, gaussian_epsilon_bound
from gcon_lab.audits.one_run import one_run_bound, place_canaries, right_guesses
from gcon_lab.audits.pairs import search_pairs

HONEST = "as it is"
_ROUNDING = 1e-6  # of epsilons that are computed exactly


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What an audit found about one case or broken variant.

    Attributes:
        mechanism: its name.
        options: in words.
        variant: `as it is`, or what was broken.
        epsilon, delta: what is claimed; None for a search.
        runs: per graph; canaries of a one-run audit; pairs of a search.
        bound: lower bound on epsilon from two rates, or from guesses; None for a search.
        gaussian_bound: lower bound on epsilon from the Gaussian curve, where one is claimed.
        pair_epsilon: epsilon of the planned noise on this pair, where it is known exactly.
        change: largest change over claimed sensitivity, of a search.
        tight: whether at least half of epsilon must be found.
        outcome: in words.
        good: whether an honest case holds, or a broken one is caught.
    """

    mechanism: str
    options: str
    variant: str = HONEST
    epsilon: float | None = None
    delta: float | None = None
    runs: int
    bound: float | None = None
    gaussian_bound: float | None = None
    pair_epsilon: float | None = None
    change: float | None = None
    tight: bool = False
    outcome: str = ""
    good: bool = True

    @property
    def best(self) -> float:
        """The larger of the two bounds."""
        return max(self.bound or 0.0, self.gaussian_bound or 0.0)


@dataclass(frozen=True, eq=False)
class AuditUnit:
    """One line of the audit, still to be measured: `measure(error=...)`, the probability of a wrong bound."""

    name: str
    measure: Callable[..., Finding]
    num_bounds: int


def units_of(cases: Sequence[AnyCase], *, broken: bool, runs: int | None) -> list[AuditUnit]:
    """What is to be measured for these cases.

    Args:
        cases: any kind.
        broken: whether to add the broken variants.
        runs: per graph; None for every case's own number.
    """
    units = []
    for case in cases:
        if isinstance(case, AuditCase):
            for variant in (None, *(case.broken if broken else ())):
                name = f"{case.name}: {variant.kind if variant else HONEST}"
                units.append(AuditUnit(name, partial(measure, case, variant, runs=runs), 1 + case.gaussian))
        elif isinstance(case, OneRunCase):
            for kind, release in {HONEST: case.release, **(case.broken if broken else {})}.items():
                name = f"{case.mechanism}, {case.options}: {kind}"
                units.append(AuditUnit(name, partial(measure_one_run, case, kind, release), 1))
        else:
            units.append(AuditUnit(f"{case.mechanism}, {case.options}", partial(measure_search, case), 0))
    return units


def wrong_bound_probability(units: Sequence[AuditUnit], confidence: float) -> float:
    """The error of a single bound so that all bounds hold together with this confidence (Bonferroni)."""
    return (1 - confidence) / max(1, sum(unit.num_bounds for unit in units))


def measure(case: AuditCase, variant: Broken | None = None, *, runs: int | None = None, error: float) -> Finding:
    """Many releases on both graphs, and what they say about epsilon.

    Args:
        case: the mechanism.
        variant: a broken one; None for the mechanism as it is.
        runs: per graph; None for the case's own number. A variant's own number stays.
        error: the probability of a bound above the true epsilon, for each bound.
    """
    pair, run, score = case.pair, case.run, case.score
    count = runs or case.runs
    if variant is not None:
        pair, run, score = variant.pair or pair, variant.run, variant.score or score
        count = variant.runs or count
    finding = Finding(
        mechanism=case.mechanism,
        options=case.options,
        variant=variant.kind if variant else HONEST,
        epsilon=case.claimed.epsilon,
        delta=case.claimed.delta,
        runs=count,
        pair_epsilon=case.pair_epsilon if pair is case.pair else None,
        tight=case.tight,
    )
    randomness = SystemRandomness()
    try:
        joined, apart = (score(run(edges, count, randomness)) for edges in (pair.joined, pair.apart))
    except NoCertificateError:
        return replace(finding, runs=1, outcome="caught by the certificate", good=variant is not None)
    delta = case.claimed.delta
    finding = replace(
        finding,
        bound=epsilon_bound(joined, apart, delta=delta, error=error),
        gaussian_bound=gaussian_epsilon_bound(joined, apart, delta=delta, error=error) if case.gaussian else None,
    )
    return _judged(finding)


def _judged(finding: Finding) -> Finding:
    claimed, planned = finding.epsilon or 0.0, finding.pair_epsilon
    above = finding.best > claimed * (1 + _ROUNDING)
    less_noise = planned is not None and finding.best > planned * (1 + _ROUNDING)
    if finding.variant != HONEST:
        words = "caught" if above else "caught: above this pair's own epsilon" if less_noise else "MISSED"
        return replace(finding, outcome=words, good=above or less_noise)
    if above or less_noise:
        return replace(finding, outcome="ABOVE THE CLAIM" if above else "LESS NOISE THAN PLANNED", good=False)
    weak = finding.tight and finding.best < claimed / 2
    return replace(finding, outcome="holds; too few runs to find half of epsilon" if weak else "holds")


def measure_one_run(case: OneRunCase, kind: str, release: Release, *, error: float) -> Finding:
    """One release with many canaries, and what the right guesses say about epsilon."""
    randomness = SystemRandomness()
    canaries = place_canaries(case.graph.edges, min(case.canaries, case.graph.edges.num_nodes // 2), randomness)
    scores = case.score(release(canaries.graph, randomness), canaries)
    count = len(canaries.pairs)
    guesses = int(count * case.guessed) // 2 * 2
    right = right_guesses(scores, canaries.included, guesses=guesses)
    return _judged(
        Finding(
            mechanism=case.mechanism,
            options=case.options,
            variant=kind,
            epsilon=case.claimed.epsilon,
            delta=case.claimed.delta,
            runs=count,
            bound=one_run_bound(canaries=count, guesses=guesses, right=right, delta=case.claimed.delta, error=error),
        )
    )


def measure_search(case: SearchCase, *, error: float = 0.0) -> Finding:
    """The largest change that a search finds, over the claimed sensitivity: exact, so the error does not matter."""
    change = search_pairs(case.make, num_nodes=case.num_nodes, tries=case.tries)
    exceeds = change > 1 + _ROUNDING
    return Finding(
        mechanism=case.mechanism,
        options=case.options,
        runs=case.tries,
        change=change,
        outcome="ABOVE THE CLAIM" if exceeds else "holds",
        good=not exceeds,
    )
