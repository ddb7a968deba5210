"""The rules of the advice, each with its reason (docs/choosing.md).

| rule                                                          | what follows                                              |
|---------------------------------------------------------------|-----------------------------------------------------------|
| a look says: homophily within 0.1 of chance (1 is perfect)     | edges tell nothing: do not spend                          |
| expected gain below half a point                              | nothing to expect: do not spend                           |
| expected gain of a point or less                              | little                                                    |
| own-edges, a look that cannot tell homophily, points to lose   | risky: only where it is known that friends are alike       |
| no look, and the interval of gains does not decide            | take a look first                                         |
| mean degree from which neighbour counts are heard             | `moments` with counts; publish with `cached`, not `none`    |
| public-graph: other nodes, other edges                        | moments; its gains there are not in the table             |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from gcon.choose.expectations import Expectation, Place, expected, measured_epsilons
from gcon.choose.noise_levels import NoiseFacts, look_error, noise_facts
from gcon.choose.paid_look import Look, check_look
from gcon.choose.public_facts import PublicFacts, public_facts
from gcon.choose.run_time import RunTime, run_time
from gcon.errors import InputError, check_number
from gcon.methods.evidence import tells
from gcon.nodes import PublicNodes
from gcon.privacy.budget import checked_budget, protected_change, round_down_difference

Spend = Literal["spend", "little", "risky", "nothing", "look first", "not measured"]
Stage = Literal["counts", "moments"]

USES = {
    "none": "answers for everybody, from released numbers and public features",
    "cached": "answers for everybody, with the released counts of the nodes of the training table",
    "own-edges": "answers for the owners of the nodes, each from its own edges; not for publication",
    "public-graph": "answers for other nodes, whose edges everybody may know",
}
LITTLE, NOTHING = 0.01, 0.005  # gains in accuracy
ENOUGH = 0.75  # of the gain at the largest measured budget
_VAGUE = 0.1  # homophily is mostly belief if its error is larger
_WEAK = 0.3  # edge-free answers so weak that moments of them hardly tell homophily
_LOOKS = (0.05, 0.1, 0.2)
# Among real graphs at epsilon 1 (docs/results/default/bare.md against default.md), in points.
FEWER_RIGHT, LESS_GAINED = 5.6, 2.8
_UNJUDGED = (
    "No validation nodes: what is expected, and how often intervals held, was measured with 500 of them. Without any, the same "
    f"graphs got up to {FEWER_RIGHT} points fewer right answers at epsilon 1, most of that without edges too; what they gained "
    f"over what is free was up to {LESS_GAINED} points less."
)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What to do under one access with one budget.

    Attributes:
        access: which edges answers may read.
        use: whom such answers are for.
        epsilon: the budget, after the look.
        spend: `spend`, `little`, `risky`, `nothing`, `look first`, or `not measured`.
        method: `moments`, or the control that costs nothing.
        stage: what the second stage of `moments` would release; None if no look or guess tells.
        expectation: accuracy and gain with their intervals; None where nothing was measured.
        why: the reason, in words.
    """

    access: str
    use: str
    epsilon: float
    spend: Spend
    method: str
    stage: Stage | None
    expectation: Expectation | None
    why: str


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Everything, as data; `gcon.choose.advice_words` says it.

    Attributes:
        facts: of the public nodes.
        delta: of every budget here.
        protect_edges: how many edges may change together within a budget.
        mean_degree: as it was guessed; None if nobody did, or if a look told.
        run_time: of one training.
        noise: one entry per budget.
        look: what was paid for; None if nothing was.
        look_errors: epsilon of a look, and the error of the mean degree that it would show.
        verdicts: one per budget and access.
        enough: for every access the smallest measured budget that brings three quarters of what the largest one does;
            None if that is a point or less. Empty without a look.
        remarks: what else to know.
    """

    facts: PublicFacts
    delta: float
    protect_edges: int
    mean_degree: float | None
    run_time: RunTime
    noise: tuple[NoiseFacts, ...]
    look: Look | None
    look_errors: tuple[tuple[float, float], ...]
    verdicts: tuple[Verdict, ...]
    enough: dict[str, float | None]
    remarks: tuple[str, ...]


def advise(
    nodes: PublicNodes,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    access: str | None = None,
    look: Look | None = None,
    mean_degree: float | None = None,
    protect_edges: int = 1,
) -> Advice:
    """What a budget could buy, from public nodes and what a look has shown.

    Args:
        nodes: the public side of the graph; without validation nodes labelled nodes judge, and a remark says what that means.
        epsilon: the budget that somebody has in mind, finite; what a look with a promise cost is taken off. None for
            the measured budgets.
        delta: None for min(1e-5, 1/(10 n)).
        access: none, cached, own-edges or public-graph; None for all of them.
        look: what `take_look` has released.
        mean_degree: a guess, from public knowledge; not together with a look.
        protect_edges: how many edges, 1 to 10, may change together within the budget.

    Privacy:
        Free: there is no argument that could hold an edge; a look is released, and paid for. A mean degree that was counted
        in private edges is no guess, and advice from it is not free.
    """
    budgets, accesses = _budgets(epsilon, look), check_access(access)
    protected_change(protect_edges)
    check_guess(mean_degree, looks=look is not None)
    delta = checked_budget(budgets[0], delta, nodes.num_nodes).delta
    facts = public_facts(nodes)

    def noise_at(some: Sequence[float]) -> tuple[NoiseFacts, ...]:
        return tuple(noise_facts(facts, epsilon=each, delta=delta, protect_edges=protect_edges) for each in some)

    noise, seen = noise_at(budgets), _seen(facts, look, mean_degree)
    every = () if look is None else noise if epsilon is None else noise_at(measured_epsilons())
    errors = tuple((cost, look_error(facts.num_nodes, epsilon=cost, delta=delta)) for cost in _LOOKS)
    return Advice(
        facts=facts,
        delta=delta,
        protect_edges=protect_edges,
        mean_degree=mean_degree,
        run_time=run_time(facts),
        noise=noise,
        look=look,
        look_errors=errors,
        verdicts=tuple(_verdict(kind, facts, loud, seen, look) for kind, loud in product(accesses, noise)),
        enough={}
        if look is None
        else {kind: _enough(kind, facts, every, seen, look) for kind in accesses if kind != "public-graph"},
        remarks=_remarks(facts, noise, look),
    )


def check_access(access: str | None) -> tuple[str, ...]:
    """The accesses to discuss; raises `InputError` for an unknown one."""
    if access is None:
        return tuple(USES)
    if access not in USES:
        raise InputError(
            "access", rule=f"must be one of {', '.join(USES)}", got=repr(access), fix="Leave it out for all of them."
        )
    return (access,)


def check_epsilon(epsilon: float) -> None:
    """Raise `InputError` unless the budget is positive and finite: without a promise there is nothing to save."""
    _check_positive("epsilon", epsilon, "Smaller is more private; 0.5 to 4 is usual.")


def check_guess(mean_degree: float | None, *, looks: bool) -> None:
    """Raise `InputError` unless a guessed mean degree is positive and finite, and no look tells it better."""
    if mean_degree is None:
        return
    _check_positive("mean_degree", mean_degree, "How many edges a node has, by public knowledge.")
    if looks:
        rule, fix = "is a guess for advice without a look", "Leave it out: the look tells it."
        raise InputError("mean_degree", rule=rule, got="both", fix=fix)


def _check_positive(name: str, number: float, fix: str) -> None:
    rule = "must be a finite number above 0"
    check_number(name, number, allowed=lambda value: 0 < value < math.inf, rule=rule, fix=fix)


def _seen(facts: PublicFacts, look: Look | None, mean_degree: float | None) -> Place:
    """What is known of the graph."""
    free = Place(accuracy=facts.edge_free_accuracy, strength=facts.edge_free_strength)
    if look is None:
        return replace(free, mean_degree=mean_degree)
    return replace(free, mean_degree=look.mean_degree, above_chance=look.above_chance)


def _budgets(epsilon: float | None, look: Look | None) -> tuple[float, ...]:
    if epsilon is None:
        return measured_epsilons()
    check_epsilon(epsilon)
    if look is None:
        return (float(epsilon),)
    check_look(look.receipt.budget.epsilon, epsilon)
    return (round_down_difference(epsilon, look.receipt.budget.epsilon),)


def _verdict(access: str, facts: PublicFacts, noise: NoiseFacts, seen: Place, look: Look | None) -> Verdict:
    stage = None if access == "public-graph" else _stage(noise, seen)
    expectation = None if access == "public-graph" else _expectation(access, facts, noise, seen, look)
    spend, why = _decision(expectation, facts, look)
    if stage == "counts" and access == "none" and spend != "nothing":
        why += " The counts do not serve this access: take cached, which may be published too."
    if stage == "moments" and access == "cached" and spend != "nothing":
        why += " No counts are released on a graph this sparse: it gives what none gives."
    return Verdict(
        access=access,
        use=USES[access],
        epsilon=noise.epsilon,
        spend=spend,
        method="moments-without-edges" if spend == "nothing" else "moments",
        stage=None if spend == "nothing" else stage,
        expectation=expectation,
        why=why,
    )


def _decision(expectation: Expectation | None, facts: PublicFacts, look: Look | None) -> tuple[Spend, str]:
    # A vague look lands near its belief, which for two classes is near chance: that says nothing about the edges.
    if look is not None and look.homophily_error <= _VAGUE and not tells(look.homophily, facts.num_classes):
        return "nothing", "Edges tell next to nothing about classes: homophily is within 0.1 of chance."
    if expectation is None:
        return (
            "not measured",
            "Students of the released answers serve other nodes; their gains are not in the table.",
        )
    if look is None:
        if expectation.most <= LITTLE:
            return "nothing", "Graphs with such features gain no more than a point, whatever else their edges are like."
        if expectation.least > LITTLE:
            return "spend", "Graphs with such features gain more than a point, whatever else their edges are like."
        return "look first", "It depends on density and homophily, which only the edges can tell."
    if expectation.access == "own-edges" and look.homophily_error > _VAGUE and expectation.least < -LITTLE:
        return (
            "risky",
            "The look cannot tell homophily. Spend only if you know that friends are alike: else it may lose.",
        )
    if expectation.gain <= NOTHING:
        return "nothing", "Graphs like this one gained nothing to speak of."
    if expectation.gain <= LITTLE:
        return "little", "Graphs like this one gained a point or less: the control comes close, and is free."
    sure = "" if expectation.least > 0 else " The interval still holds graphs that gained nothing."
    return "spend", f"Graphs like this one gained more than a point.{sure}"


def _stage(noise: NoiseFacts, seen: Place) -> Stage | None:
    if seen.mean_degree is None:
        return None
    return "counts" if seen.mean_degree >= noise.heard_degree else "moments"


def _expectation(access: str, facts: PublicFacts, noise: NoiseFacts, seen: Place, look: Look | None) -> Expectation:
    """At the place that is seen; if a look saw it, the intervals reach as far as they would at the ends of its errors."""
    if access == "cached" and _stage(noise, seen) == "moments":  # without counts they are the same answers
        return replace(_expectation("none", facts, noise, seen, look), access=access)

    def at(place: Place) -> Expectation:
        return expected(place, validation=facts.num_checked, epsilon=noise.one_edge, access=access)

    found = at(seen)
    if look is None:
        return found
    width = 2 if look.homophily_error > _VAGUE else 1
    ends = [
        at(
            replace(
                seen,
                mean_degree=look.mean_degree + side * look.mean_degree_error,
                above_chance=look.above_chance + side * look.above_chance_error,
            )
        )
        for side in (-width, width)
    ]
    return replace(
        found,
        accuracy_least=min(found.accuracy_least, *(end.accuracy_least for end in ends)),
        accuracy_most=max(found.accuracy_most, *(end.accuracy_most for end in ends)),
        least=min(found.least, *(end.least for end in ends)),
        most=max(found.most, *(end.most for end in ends)),
    )


def _enough(access: str, facts: PublicFacts, noise: Sequence[NoiseFacts], seen: Place, look: Look) -> float | None:
    if not tells(look.homophily, facts.num_classes):
        return None
    gains = {each.epsilon: _expectation(access, facts, each, seen, look).gain for each in noise}
    largest = gains[max(gains)]
    return None if largest <= LITTLE else min(budget for budget, gain in gains.items() if gain >= ENOUGH * largest)


def _remarks(facts: PublicFacts, noise: tuple[NoiseFacts, ...], look: Look | None) -> tuple[str, ...]:
    said: list[str] = [] if facts.num_validation else [_UNJUDGED]
    if look is None and facts.edge_free_strength < _WEAK:
        said.append("With edge-free answers this weak a look tells the mean degree, but hardly homophily.")
    if look is not None and look.homophily_error > _VAGUE:
        said.append(
            "The look hardly tells homophily (noise, or weak edge-free answers): it is mostly the belief of 0.6 +- 0.2."
        )
    if any(loud.one_edge < measured_epsilons()[0] for loud in noise):
        said.append(
            f"Nothing was measured below epsilon {measured_epsilons()[0]:g} for one edge: what is expected there lies between "
            "that and nothing."
        )
    return tuple(said)
