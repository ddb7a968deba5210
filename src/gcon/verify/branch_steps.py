"""Steps for the plan of a mixed release: what each branch costs, by a curve of its own (docs/proofs/neighbour-counts.md).

    | branch     | Gaussian releases    | tables of neighbour counts | at the end           |
    |------------|----------------------|----------------------------|----------------------|
    | moments    | mu^2                 | none                       | one count of answers |
    | one round  | the first share of it| one                        | one count of answers |
    | two rounds | the first share of it| two, noisier ones          | one count of answers |

A table is two randomised responses for one edge, a count of pure epsilon is one. One table of one-way counts, which a plan may
have in place of two tables, is one as well. Which branch is taken may be chosen from what was released first: then the
costs of all branches together must be at most delta. Where the plan protects several edges together, all costs are for so many
edges, and for the worst way in which they can lie (docs/proofs/several-edges.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gcon.verify.arithmetic import digits, finite, mixed_delta, shown
from gcon.verify.folder import Folder
from gcon.verify.several_edges import Tables, degree_lists, edges_of, tables_delta
from gcon.verify.steps import Steps, UnfitError

GAUSSIAN = "real Gaussian noise, rounded exactly to multiples of the public spacing"
GEOMETRIC = "two-sided geometric noise, sampled exactly"
MOST_ROUNDS = 2
_PLAN = {"epsilon", "delta", "distance", "first_share", "rates", "answer_epsilon", "noise", "releases"}
_CHANGED_ENTRIES = 2  # of a table of neighbour counts by one edge, by 1 each
_ROOM = 1e-9  # relative; by which a rate may be smaller than it need be


@dataclass(frozen=True, kw_only=True)
class Branches:
    """What the plan allows.

    Attributes:
        distance: mu, of all Gaussian releases where there are no tables.
        first_share: of mu^2, before tables.
        rates: of the noise of tables, for one round and for two; or for one round and for one-way counts.
        answer_epsilon: of the count of answers; 0 for none.
        edges: how many may change together within the budget; the numbers above are for one.
        one_way: whether the last branch is one table of one-way counts: its rate is a pure epsilon.
    """

    distance: Any
    first_share: Any
    rates: tuple[Any, ...]
    answer_epsilon: Any
    edges: int = 1
    one_way: bool = False

    @property
    def kinds(self) -> tuple[tuple[int, bool], ...]:
        """Of the branches with tables: how many, and whether they are one-way."""
        return ((1, False), (1, True) if self.one_way else (MOST_ROUNDS, False))

    def cost(self, epsilon: Any, rounds: int, one_way: bool, rate: Any, edges: int) -> Any:
        """The delta of a branch with tables of this rate, for so many edges."""
        first, answer = digits.sqrt(self.first_share) * self.distance, self.answer_epsilon
        if one_way:
            pure = [edges * each for each in (rate, answer) if each > 0]
            return mixed_delta(epsilon, edges * first, pure)
        if edges > 1:
            return tables_delta(epsilon, first, Tables(rate, rounds, answer), edges)
        return mixed_delta(epsilon, first, [rate] * _CHANGED_ENTRIES * rounds + [answer] * bool(answer > 0))


def check_branches(folder: Folder, steps: Steps) -> Branches:
    """The plan is for this budget: each branch costs at most a third of delta, and hardly less."""
    plan, budget = folder.plan, folder.model.receipt.budget
    steps.check(
        f"The plan is for the budget of the receipt: epsilon {plan.get('epsilon')!r}, delta {plan.get('delta')!r}",
        set(plan) - {"protect_edges", "one_way"} == _PLAN
        and plan["epsilon"] == budget.epsilon
        and plan["delta"] == budget.delta,
    )
    steps.check(
        f"The kinds of noise are those that the proofs are about: {plan.get('noise')!r}",
        plan.get("noise") == [GAUSSIAN, GEOMETRIC],
    )
    branches = _branches(plan)
    check_costs(finite(plan, "epsilon"), finite(plan, "delta"), branches, steps)
    return branches


def _branches(plan: dict[str, Any]) -> Branches:
    """The numbers; `UnfitError` if one is missing or impossible."""
    rates, first_share, one_way = plan.get("rates"), finite(plan, "first_share"), plan.get("one_way", False)
    if one_way is not ("one_way" in plan):
        raise UnfitError("'one_way' must be true, or not there")
    if not isinstance(rates, list) or len(rates) != MOST_ROUNDS:
        raise UnfitError("'rates' must be two numbers")
    if not first_share < 1:
        raise UnfitError("'first_share' must be below 1")
    return Branches(
        distance=finite(plan, "distance"),
        first_share=first_share,
        rates=tuple(finite({"rates": rate}, "rates") for rate in rates),
        answer_epsilon=finite(plan, "answer_epsilon", above=False),
        edges=edges_of(plan),
        one_way=one_way,
    )


def check_costs(epsilon: Any, delta: Any, branches: Branches, steps: Steps) -> None:
    """Every branch, at what it spends and at hardly more."""
    third, distance, edges = delta / (1 + MOST_ROUNDS), branches.distance, branches.edges
    answer = [edges * branches.answer_epsilon] if branches.answer_epsilon > 0 else []
    counted = f", then a count of epsilon {shown(branches.answer_epsilon)}" if answer else ""
    moved = f", which {edges} edges move {edges} times as far" if edges > 1 else ""
    cost = mixed_delta(epsilon, edges * distance, answer)
    steps.check(
        f"Branch of moments: Gaussian releases at distance mu = {shown(distance)}{counted}{moved}, cost at this epsilon delta = "
        f"{shown(cost)}, at most a third of the delta that is claimed, {shown(third)}",
        bool(cost <= third),
    )
    room = 1e-5 + 1e-12 / float(distance)
    steps.check(
        "That mu is the largest one, up to rounding: the plan was made for this budget",
        bool(mixed_delta(epsilon, edges * distance * (1 + room), answer) > third),
    )
    first = digits.sqrt(branches.first_share) * distance
    for (rounds, one_way), rate in zip(branches.kinds, branches.rates, strict=True):
        responses = 1 if one_way else _CHANGED_ENTRIES * rounds
        then = f"then {responses} response{'s' if responses > 1 else ''} of rate {shown(rate)}{counted}"
        summed = f"summed over all {2 ** (responses + len(answer))} rows of answers"
        if one_way:
            then += f", whose epsilon{'s' if answer else ''} {edges} edges multiply" if edges > 1 else ""
        elif edges > 1:
            then = f"then noise of rate {shown(rate)}{counted}, for {edges} edges"
            summed = f"in the worst of all {len(degree_lists(edges))} ways in which these can lie"
        cost = branches.cost(epsilon, rounds, one_way, rate, edges)
        counts = f"{rounds} table{'s' if rounds > 1 else ''} of {'one-way ' if one_way else ''}neighbour counts"
        steps.check(
            f"Branch of {counts}: Gaussian releases at distance mu "
            f"sqrt({shown(branches.first_share)}) = {shown(first)}, {then}, cost delta = {shown(cost)}, {summed}, at most a "
            "third",
            bool(cost <= third),
        )
        larger = branches.cost(epsilon, rounds, one_way, rate * (1 + _ROOM), edges)
        steps.check("That rate is the largest one, up to rounding", bool(larger > third))
