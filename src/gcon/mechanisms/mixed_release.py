"""Gaussian releases first; then more of them, or neighbour counts, as the first ones say; then one count of answers.

    | branch      | Gaussian, of mu^2 | then                              |
    |-------------|-------------------|-----------------------------------|
    | moments     | all of it         |                                   |
    | one round   | the first share   | one table of neighbour counts     |
    | two rounds  | the first share   | two tables, noisier ones          |

Where many nodes have a public label, the last branch may be one table of one-way counts instead. Every branch may end with one
noisy count of pure epsilon. Which branch is taken may be chosen from the Gaussian releases. Each branch alone costs at most a
third of delta, and the worst mixture of branches at most their sum (docs/proofs/neighbour-counts.md, 3 and 6); for one edge, or
for any k that change together (docs/proofs/several-edges.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from typing import Any, final

from scipy.optimize import brentq

from gcon.errors import InputError, PlanMismatchError
from gcon.mechanisms.counts import (
    CHANGED_ENTRIES,
    ENDS_OF_AN_EDGE,
    EXACT_GEOMETRIC,
    NeighbourCounts,
    NoisyCount,
    counted_rate,
)
from gcon.mechanisms.gaussian_curve import (
    LEAST,
    MOST,
    WORST_DEGREES,
    Degrees,
    gaussian_delta,
    mixed_delta,
    pure_as_gaussian,
)
from gcon.mechanisms.gaussian_release import NoisyRelease, largest_distance
from gcon.mechanisms.samplers.geometric import LEAST_RATE
from gcon.mechanisms.samplers.rounded import EXACT_GAUSSIAN
from gcon.privacy.budget import (
    DIGITS,
    EDGES_FIELD,
    STATED_EDGES,
    Budget,
    checked_budget,
    protected_change,
    round_up_digits,
)
from gcon.privacy.plan import Mechanism, proven

MOST_ROUNDS = 2
# The branches with counts: how many tables, and whether they are one-way. By whether a plan is for one-way counts.
KINDS = {False: ((1, False), (MOST_ROUNDS, False)), True: ((1, False), (1, True))}
_BRANCHES = 1 + MOST_ROUNDS
_MOST_EPSILON = 500.0
ONE_WAY_FIELD = "one_way"  # in records, only where it is true
_SLACK = 1e-12  # shares may add to this part more than they should; the noise is larger by more than that
_SUM_SLACK = 1e-15  # of a sum of three numbers, each rounded up
_NEAR, _LEAST_EPSILON = 1e-6, 1e-9
_CLOSE, _LEAST_DELTA = 1e-15, 1e-300  # relative, of a crossing; and instead of the logarithm of 0
_NEAR_CROSSING = 1e-9  # of the logarithm: so near float64 mostly comes


def branch_delta(
    epsilon: float,
    distance: float,
    answer_epsilon: float,
    *,
    edges: int,
    rounds: int = 0,
    rate: float = 0.0,
    every: Sequence[Degrees] | None = None,
    one_way: bool = False,
    in_float64: bool = False,
) -> float:
    """The delta of one branch at this epsilon, if so many edges change, however they lie.

    Args:
        epsilon: at least 0.
        distance: of its Gaussian releases, for so many edges.
        answer_epsilon: of the count of answers at its end. That one draws its noise for the decimal that epsilon prints as,
            which may be larger than the float.
        edges: from 1 to 10.
        rounds: how many tables of counts.
        rate: of their noise.
        every: the degrees that nodes can have among these edges; all that count, unless told.
        one_way: whether tables have a pure epsilon for one edge, their rate. Several edges have so many times that: as if one
            node had all of them.
        in_float64: as for `mixed_delta`.
    """
    exact, answers = Fraction(rate), (Fraction(math.nextafter(answer_epsilon, math.inf)) * edges, 1)
    if every is None:
        every = ((),) if not rounds else ((edges,),) if one_way else WORST_DEGREES[edges]
    ways = [
        [*((degree * exact, number * rounds) for degree, number in Counter(degrees).items()), answers]
        for degrees in every
    ]
    return mixed_delta(epsilon, distance, *ways, in_float64=in_float64)


@final
@proven("neighbour-counts")
@dataclass(frozen=True, kw_only=True)
class MixedPlan:
    """A budget and what each branch may spend.

    Attributes:
        budget: what all releases together cost.
        distance: mu, of all Gaussian releases in the branch of moments alone; None without a promise (infinite epsilon).
        first_share: of mu^2, spent before counts.
        rates: of the noise of counts, for one round and for two; or for one round and for one-way counts.
        answer_epsilon: of the one count of answers at the end; 0 for none.
        name: the name in the ledger.
        protect_edges: how many edges may change together within the budget; all other numbers are for one edge.
        one_way: whether the last branch is one table of one-way counts: their rate is a pure epsilon for one edge.
        branches: of each the distance, how many tables of counts, whether they are one-way, and their rate; none without a
            promise.
        gaussian_distance: of one Gaussian release that is, for one edge, no more private than the worst branch: responses
            as Gaussians.
    """

    budget: Budget
    distance: float | None
    first_share: float
    rates: tuple[float, ...]
    answer_epsilon: float
    name: str
    protect_edges: int = 1
    one_way: bool = False
    branches: tuple[tuple[float, int, bool, float], ...] = field(init=False, compare=False, repr=False)
    gaussian_distance: float | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Every branch costs at most its part of delta."""
        protected_change(self.protect_edges)
        epsilon, mu, answer, edges = self.budget.epsilon, self.distance, self.answer_epsilon, self.protect_edges
        part = math.nextafter(self.budget.delta / _BRANCHES, 0.0)  # rounded down: all parts add to at most delta
        curve = partial(branch_delta, epsilon, answer_epsilon=answer, edges=edges)
        branches: list[tuple[float, int, bool, float]] = []
        if type(self.one_way) is not bool:
            right = False
        elif math.isinf(epsilon):
            right = mu is None and all(math.isinf(rate) for rate in self.rates)
        elif (
            mu is None
            or len(self.rates) != MOST_ROUNDS
            or not 0 < self.first_share < 1
            or not math.sqrt(self.first_share) * mu >= LEAST
            or not 0 <= answer < epsilon
            or not all(0 < rate < math.inf for rate in self.rates)
            or not gaussian_delta(epsilon, mu) <= part
        ):
            right = False
        else:
            first = math.sqrt(self.first_share) * mu
            tables = zip(KINDS[self.one_way], self.rates, strict=True)
            branches = [(mu, 0, False, 0.0), *((first, *kind, rate) for kind, rate in tables)]
            right = all(
                0 <= curve(edges * distance, rounds=rounds, one_way=one_way, rate=rate) <= part
                for distance, rounds, one_way, rate in branches
            )
        if not right:
            raise PlanMismatchError("This noise is too small for what the plan says that the release costs.")
        amounts_to = None
        if mu is not None:
            rests = [(1 - self.first_share) * mu**2]
            for _, rounds, one_way, rate in branches[1:]:
                responses = 1 if one_way else CHANGED_ENTRIES * rounds
                rests.append(responses * pure_as_gaussian(rate) ** 2)
            squares = self.first_share * mu**2 + max(rests) + pure_as_gaussian(answer) ** 2
            amounts_to = math.sqrt(squares) * (1 + _SLACK)
        object.__setattr__(self, "branches", tuple(branches))
        object.__setattr__(self, "gaussian_distance", amounts_to)

    def by_edges(self, numbers: Sequence[int] = STATED_EDGES) -> dict[int, Budget]:
        """What is promised for so many edges that change together, at the same delta.

        Args:
            numbers: of edges, from 1 to 10; the protected number is always among those that are told.
        """
        budget, protected = self.budget, self.protect_edges
        found, delta = {protected: budget}, budget.delta

        def cost(edges: int, epsilon: float, *, in_float64: bool = False) -> float:
            """Of all branches together."""
            curve = partial(branch_delta, epsilon, answer_epsilon=self.answer_epsilon, in_float64=in_float64)
            return math.fsum(
                curve(edges * distance, edges=edges, rounds=rounds, one_way=one_way, rate=rate)
                for distance, rounds, one_way, rate in self.branches
            )

        for edges in {*numbers} - {protected}:
            protected_change(edges)
            if not self.branches:
                raise PlanMismatchError("A plan without noise promises nothing, for any number of edges.")
            # An epsilon at which all branches together cost at most delta: hardly above the smallest, of few digits.
            low, high = 0.0, 1.0
            while cost(edges, high, in_float64=True) > delta:
                low, high = high, 2 * high
            while high - low > _NEAR * high and high > _LEAST_EPSILON:
                middle = (low + high) / 2
                low, high = (low, middle) if cost(edges, middle, in_float64=True) <= delta else (middle, high)
            epsilon = round_up_digits(high, DIGITS)
            # float64 found the place; the exact curve has the last word.
            while not cost(edges, epsilon) * (1 + _SUM_SLACK) <= delta:
                epsilon = round_up_digits(epsilon * (1 + 10**-DIGITS), DIGITS)
            found[edges] = Budget(min(epsilon, budget.epsilon) if edges < protected else epsilon, delta)
        return dict(sorted(found.items()))

    def public_record(self, released: Sequence[Mechanism[Any]]) -> Mapping[str, object]:
        """The budget, what each branch may spend, and every release so far."""
        noise = {} if self.distance is None else {"noise": [EXACT_GAUSSIAN, EXACT_GEOMETRIC]}
        return {
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "distance": self.distance,
            "first_share": self.first_share,
            "rates": list(self.rates),
            "answer_epsilon": self.answer_epsilon,
            **({} if self.protect_edges == 1 else {EDGES_FIELD: self.protect_edges}),
            **({ONE_WAY_FIELD: True} if self.one_way else {}),
            **noise,
            "releases": [mechanism.record for mechanism in released],
        }

    def check(self, mechanisms: Sequence[Mechanism[Any]]) -> None:
        """Gaussian releases, then tables of counts of one branch, then the count of answers; never more than they may cost."""
        self.__post_init__()  # once more: nothing was changed since
        gaussian = [each for each in mechanisms if type(each) is NoisyRelease]
        counts = [each for each in mechanisms if type(each) is NeighbourCounts]
        answers = [each for each in mechanisms if type(each) is NoisyCount]
        if [*gaussian, *counts, *answers] != list(mechanisms):
            raise PlanMismatchError(
                "This plan pays for Gaussian releases, then neighbour counts, then one count of answers."
            )
        if any(type(each.plan) is not MixedPlan or each.plan != self for each in gaussian):
            raise PlanMismatchError("This plan pays for Gaussian releases that were made for it.")
        most = self.first_share if counts else 1.0
        if counts:
            kinds, kind = KINDS[self.one_way], (counts[0].rounds, counts[0].one_way)
            if kind not in kinds or len(counts) > kind[0]:
                other = "for a one-way one" if self.one_way else "for two noisier ones"
                raise PlanMismatchError(f"This plan pays for one table of neighbour counts, or {other}.")
            rate = self.rates[kinds.index(kind)]
            if any((each.rounds, each.one_way) != kind or each.rate != rate for each in counts):
                raise PlanMismatchError("Neighbour counts must have the noise that the plan gives to their branch.")
        if not math.fsum(each.share for each in gaussian) <= most * (1 + _SLACK):
            raise PlanMismatchError(
                "The shares of Gaussian releases must add to at most 1, before counts to the first share."
            )
        if len(answers) > 1 or any(
            each.epsilon != self.answer_epsilon or each.sensitivity != ENDS_OF_AN_EDGE for each in answers
        ):
            raise PlanMismatchError("This plan pays for one count of answers, at the epsilon that it names.")


def _crossing(above: Callable[[float], float], near: float, step: float) -> float:
    """Where a rising function of the logarithm of a distance or rate crosses 0.

    Infinite if it is below 0 at the largest number, and minus infinity if it is not at the least.

    Args:
        above: the function.
        near: where it is looked for first.
        step: how far on it is looked for next; then twice as far, and so on.
    """
    above, least, most = cache(above), math.log(LEAST), math.log(MOST)
    left = right = min(max(near, least), most)
    while above(left) >= 0:
        if left == least:
            return -math.inf
        left, right, step = max(left - step, least), left, 2 * step
    while above(right) <= 0:
        if right == most:
            return math.inf
        left, right, step = right, min(right + step, most), 2 * step
    return float(brentq(above, left, right, xtol=_CLOSE, rtol=_CLOSE))


def mixed_plan(
    epsilon: float,
    delta: float,
    *,
    first_share: float,
    answer_share: float,
    method: str,
    protect_edges: int = 1,
    one_way: bool = False,
) -> MixedPlan:
    """The largest distance and rates that (epsilon, delta) allows in every branch.

    Args:
        epsilon: of all releases together; infinite: no noise and no promise.
        delta: of all releases together.
        first_share: of mu^2, spent on Gaussian releases before counts.
        answer_share: of epsilon, for the count of answers at the end; 0 for none.
        method: for the ledger.
        protect_edges: how many edges may change together within this budget, from 1 to 10.
        one_way: whether the last branch is one table of one-way counts, not two others.
    """
    edges, budget = protected_change(protect_edges).edges, checked_budget(epsilon, delta)
    plan = partial(
        MixedPlan,
        first_share=first_share,
        name=f"mixed release ({method})",
        protect_edges=edges,
        one_way=one_way,
    )
    if math.isinf(budget.epsilon):
        answer = math.inf if answer_share > 0 else 0.0
        return plan(budget=Budget(math.inf, 0.0), distance=None, rates=(math.inf,) * MOST_ROUNDS, answer_epsilon=answer)
    if budget.epsilon > _MOST_EPSILON:
        rule = f"must be at most {_MOST_EPSILON:g}, or infinite: more promises nothing"
        raise InputError("epsilon", rule=rule, got=repr(epsilon), fix="For example 1.")
    part, answer = math.nextafter(budget.delta / _BRANCHES, 0.0), answer_share * budget.epsilon / edges
    mu, first = 0.0, 0.0
    rates: list[float] = []
    most = largest_distance(budget.epsilon, part)

    def cost(rounds: int, number: float, every: Sequence[Degrees], *, in_float64: bool = False) -> float:
        """Of moments alone at this distance, or of so many tables at this rate, for edges with these degrees."""
        distance, rate = (edges * first, number) if rounds else (number, 0.0)
        curve = partial(branch_delta, budget.epsilon, distance, answer, edges=edges, in_float64=in_float64)
        return curve(rounds=rounds, rate=rate, every=every)

    def above(logarithm: float, rounds: int, worst: Degrees, in_float64: bool) -> float:
        """How far, in logarithms, that cost is above its part of delta, for the exponential of a number."""
        found = cost(rounds, math.exp(logarithm), [worst], in_float64=in_float64)
        return math.log(max(found, _LEAST_DELTA) / part)

    for rounds, pure in ((0, False), *KINDS[one_way]):  # the largest distance first: a share of it comes before tables
        # Where the curve crosses this part of delta, in logarithms, and from there down until it fits: private noise errs on
        # that side. Found for edges among few nodes, which are mostly the worst; if others cost more at that number, for those,
        # and so on.
        every = ((),) if not rounds else ((edges,),) if pure else WORST_DEGREES[edges]
        worst, low = min(every, key=lambda degrees: (len(degrees), degrees[:1])), (rates or [most])[-1]
        while True:
            place, down = math.log(max(low, LEAST)), _CLOSE
            if first > 0 or not rounds:  # float64 divides by the distance
                place = _crossing(partial(above, rounds=rounds, worst=worst, in_float64=True), place, 1.0)
            # float64 found the place; the exact curve has the last word.
            place = _crossing(partial(above, rounds=rounds, worst=worst, in_float64=False), place, _NEAR_CROSSING)
            low = MOST if place == math.inf else math.exp(place)
            while math.isfinite(place) and cost(rounds, low := math.exp(place) * (1 - down), [worst]) > part:
                down *= 2
            if low == 0 or cost(rounds, low, every) <= part:
                break
            worst = max(every, key=lambda degrees: cost(rounds, low, [degrees]))
        if rounds:
            rates.append(low * (1 - _SLACK))
        else:
            mu = min(low / edges * (1 - _SLACK), most)
            first = math.sqrt(first_share) * mu
    if min(rates) < LEAST_RATE or (one_way and counted_rate(rates[1]) < LEAST_RATE):
        rule = "is too small for whole-number noise at this delta"
        fix = "Nothing could be learned; use at least 1e-6."
        raise InputError("epsilon", rule=rule, got=repr(epsilon), fix=fix)
    return plan(budget=budget, distance=mu, rates=tuple(rates), answer_epsilon=answer)


def mixed_plan_from(record: Mapping[str, Any], budget: Budget) -> MixedPlan:
    """The plan behind a public record, if its numbers fit the budget; else `PlanMismatchError`."""
    return MixedPlan(
        budget=budget,
        distance=record["distance"],
        first_share=record["first_share"],
        rates=tuple(record["rates"]),
        answer_epsilon=record["answer_epsilon"],
        name="read",
        protect_edges=record.get(EDGES_FIELD, 1),
        one_way=record.get(ONE_WAY_FIELD, False),
    )
