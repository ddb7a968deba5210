"""Gaussian releases first; then more of them, or neighbour counts, as the first ones say; then one count of answers.

    | branch      | Gaussian, of mu^2 | then                              |
    |-------------|-------------------|-----------------------------------|
    | moments     | all of it         |                                   |
    | one round   | the first share   | one table of neighbour counts     |
    | two rounds  | the first share   | two tables, noisier ones          |

Every branch may end with one noisy count of pure epsilon. Which branch is taken may be chosen from the Gaussian releases.
Each branch alone costs at most a third of delta, and the worst mixture of branches at most their sum
(docs/proofs/neighbour-counts.md, 3); for one edge, or for any k that change together (docs/proofs/several-edges.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

from gcon.errors import InputError, PlanMismatchError
from gcon.mechanisms.counts import CHANGED_ENTRIES, ENDS_OF_AN_EDGE, EXACT_GEOMETRIC, NeighbourCounts, NoisyCount
from gcon.mechanisms.gaussian_curve import (
    LEAST,
    WORST_DEGREES,
    Degrees,
    gaussian_delta,
    largest,
    mixed_delta,
    pure_as_gaussian,
    responses,
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
_MOST_EPSILON = 500.0
_BRANCHES = 1 + MOST_ROUNDS
_SLACK = 1e-12  # shares may add to this part more than they should; the noise is larger by more than that
_SUM_SLACK = 1e-15  # of a sum of three numbers, each rounded up
_NEAR, _LEAST_EPSILON = 1e-6, 1e-9


@final
@proven("neighbour-counts")
@dataclass(frozen=True, kw_only=True)
class MixedPlan:
    """A budget and what each branch may spend.

    Attributes:
        budget: what all releases together cost.
        distance: mu, of all Gaussian releases in the branch of moments alone; None without a promise (infinite epsilon).
        first_share: of mu^2, spent before counts.
        rates: of the noise of counts, for one round and for two.
        answer_epsilon: of the one count of answers at the end; 0 for none.
        name: the name in the ledger.
        protect_edges: how many edges may change together within the budget; all other numbers are for one edge.
    """

    budget: Budget
    distance: float | None
    first_share: float
    rates: tuple[float, ...]
    answer_epsilon: float
    name: str
    protect_edges: int = 1

    def __post_init__(self) -> None:
        """Every branch costs at most its part of delta."""
        protected_change(self.protect_edges)
        epsilon, mu = self.budget.epsilon, self.distance
        part = math.nextafter(self.budget.delta / _BRANCHES, 0.0)  # rounded down: all parts add to at most delta
        if math.isinf(epsilon):
            right = mu is None and all(math.isinf(rate) for rate in self.rates)
        elif (
            mu is None
            or len(self.rates) != MOST_ROUNDS
            or not 0 < self.first_share < 1
            or not math.sqrt(self.first_share) * mu >= LEAST
            or not 0 <= self.answer_epsilon < epsilon
            or not all(0 < rate < math.inf for rate in self.rates)
            or not gaussian_delta(epsilon, mu) <= part
        ):
            right = False
        else:
            right = all(0 <= cost <= part for cost in self.costs(epsilon, self.protect_edges))
        if not right:
            raise PlanMismatchError("This noise is too small for what the plan says that the release costs.")

    def costs(self, epsilon: float, edges: int, *, in_float64: bool = False) -> list[float]:
        """The delta of every branch at this epsilon, if so many edges change; `in_float64` as for `mixed_delta`."""
        mu, answer = self.distance, self.answer_epsilon
        assert mu is not None  # there is a promise
        curve, first = partial(mixed_delta, epsilon, in_float64=in_float64), math.sqrt(self.first_share) * mu
        return [curve(edges * mu, responses(answer, edges))] + [
            max(
                curve(edges * first, responses(answer, edges, rate=rate, rounds=rounds, degrees=degrees))
                for degrees in WORST_DEGREES[edges]
            )
            for rounds, rate in enumerate(self.rates, start=1)
        ]

    def by_edges(self, numbers: Sequence[int] = STATED_EDGES) -> dict[int, Budget]:
        """What is promised for so many edges that change together, at the same delta.

        Args:
            numbers: of edges, from 1 to 10; the protected number is always among those that are told.
        """
        budget, protected = self.budget, self.protect_edges
        found, delta = {protected: budget}, budget.delta
        for edges in {*numbers} - {protected}:
            protected_change(edges)
            # An epsilon at which all branches together cost at most delta: hardly above the smallest, of few digits.
            low, high = 0.0, 1.0
            while math.fsum(self.costs(high, edges, in_float64=True)) > delta:
                low, high = high, 2 * high
            while high - low > _NEAR * high and high > _LEAST_EPSILON:
                middle = (low + high) / 2
                nearly = math.fsum(self.costs(middle, edges, in_float64=True))
                low, high = (low, middle) if nearly <= delta else (middle, high)
            epsilon = round_up_digits(high, DIGITS)
            # float64 found the place; the exact curve has the last word.
            while not math.fsum(self.costs(epsilon, edges)) * (1 + _SUM_SLACK) <= delta:
                epsilon = round_up_digits(epsilon * (1 + 10**-DIGITS), DIGITS)
            found[edges] = Budget(min(epsilon, budget.epsilon) if edges < protected else epsilon, delta)
        return dict(sorted(found.items()))

    @property
    def gaussian_distance(self) -> float | None:
        """Of one Gaussian release that is, for one edge, no more private than the worst branch: responses as Gaussians."""
        mu = self.distance
        if mu is None:
            return None
        rests = [(1 - self.first_share) * mu**2]
        rests += [
            CHANGED_ENTRIES * rounds * pure_as_gaussian(rate) ** 2 for rounds, rate in enumerate(self.rates, start=1)
        ]
        return math.sqrt(self.first_share * mu**2 + max(rests) + pure_as_gaussian(self.answer_epsilon) ** 2) * (
            1 + _SLACK
        )

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
            **noise,
            "releases": [mechanism.public_record() for mechanism in released],
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
            rounds = counts[0].rounds
            if not 1 <= rounds <= MOST_ROUNDS or len(counts) > rounds:
                raise PlanMismatchError("This plan pays for one table of neighbour counts, or for two noisier ones.")
            if any(each.rounds != rounds or each.rate != self.rates[rounds - 1] for each in counts):
                raise PlanMismatchError("Neighbour counts must have the noise that the plan gives to their branch.")
        if not math.fsum(each.share for each in gaussian) <= most * (1 + _SLACK):
            raise PlanMismatchError(
                "The shares of Gaussian releases must add to at most 1, before counts to the first share."
            )
        if len(answers) > 1 or any(
            each.epsilon != self.answer_epsilon or each.sensitivity != ENDS_OF_AN_EDGE for each in answers
        ):
            raise PlanMismatchError("This plan pays for one count of answers, at the epsilon that it names.")


def mixed_plan(
    epsilon: float, delta: float, *, first_share: float, answer_share: float, method: str, protect_edges: int = 1
) -> MixedPlan:
    """The largest distance and rates that (epsilon, delta) allows in every branch.

    Args:
        epsilon: of all releases together; infinite: no noise and no promise.
        delta: of all releases together.
        first_share: of mu^2, spent on Gaussian releases before counts.
        answer_share: of epsilon, for the count of answers at the end; 0 for none.
        method: for the ledger.
        protect_edges: how many edges may change together within this budget, from 1 to 10.
    """
    edges, budget = protected_change(protect_edges).edges, checked_budget(epsilon, delta)
    mu: float | None
    if math.isinf(budget.epsilon):
        budget, mu, rates = Budget(math.inf, 0.0), None, (math.inf,) * MOST_ROUNDS
        answer = math.inf if answer_share > 0 else 0.0
    elif budget.epsilon > _MOST_EPSILON:
        rule = f"must be at most {_MOST_EPSILON:g}, or infinite: more promises nothing"
        raise InputError("epsilon", rule=rule, got=repr(epsilon), fix="For example 1.")
    else:
        part, answer = math.nextafter(budget.delta / _BRANCHES, 0.0), answer_share * budget.epsilon / edges
        curve, answers = partial(mixed_delta, budget.epsilon), responses(answer, edges)
        shift = largest(lambda distance, _: curve(distance, answers), part) / edges
        mu = min(shift * (1 - _SLACK), largest_distance(budget.epsilon, part))  # a third of the least delta is one too
        first = math.sqrt(first_share) * mu

        def cost(rounds: int, rate: float, degrees: Degrees) -> float:
            return curve(edges * first, responses(answer, edges, rate=rate, rounds=rounds, degrees=degrees))

        rates = tuple(
            largest(partial(cost, rounds), part, WORST_DEGREES[edges]) * (1 - _SLACK)
            for rounds in range(1, MOST_ROUNDS + 1)
        )
        if min(rates) < LEAST_RATE:
            rule = "is too small for whole-number noise at this delta"
            fix = "Nothing could be learned; use at least 1e-6."
            raise InputError("epsilon", rule=rule, got=repr(epsilon), fix=fix)
    return MixedPlan(
        budget=budget,
        distance=mu,
        first_share=first_share,
        rates=rates,
        answer_epsilon=answer,
        name=f"mixed release ({method})",
        protect_edges=edges,
    )


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
    )
