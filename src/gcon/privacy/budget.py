"""Privacy budgets: pairs (epsilon, delta), their order and their sum; and what they protect.

That is one undirected edge, or several that change together (docs/proofs/several-edges.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import Any

from gcon.errors import BudgetExceededError, InputError, PromiseWarning, check_number, warn_caller


@dataclass(frozen=True, order=False)
class Budget:
    """An (epsilon, delta) pair; infinite epsilon means no promise.

    Example:
        >>> Budget(1.0, 1e-5).covers(Budget(0.5, 1e-5))
        True
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not self.epsilon >= 0:
            raise InputError("epsilon", rule="must be at least 0", got=self.epsilon, fix="Choose a positive number.")
        if not 0 <= self.delta < 1:
            raise InputError("delta", rule="must lie in [0, 1)", got=self.delta, fix="Choose for instance 1e-5.")

    def covers(self, other: Budget) -> bool:
        """Whether a promise of `other` is also a promise of this budget (a partial order)."""
        return other.epsilon <= self.epsilon and other.delta <= self.delta


NOTHING = Budget(0.0, 0.0)
SMALLEST_DELTA, DELTA_LIMIT = 1e-12, 0.5
MOST_EDGES = 10
STATED_EDGES = (1, 2, 5, 10)  # for so many edges every statement says what is promised
DIGITS = 4  # of these numbers, rounded up
LITTLE = 10.0  # a promise of such an epsilon, or of a larger one, says little
EDGES_FIELD = "protect_edges"  # in a plan's record; not there for one edge


def checked_budget(epsilon: float, delta: float | None, num_nodes: int | None = None) -> Budget:
    """The budget of one release, checked: epsilon in (0, infinity], delta in [1e-12, 0.5).

    Infinite epsilon asks for the model without noise: it carries no promise and says so.

    Args:
        epsilon: of the release.
        delta: of the release; None means min(1e-5, 1/(10 n)), from public numbers alone, and needs n. One above 1/n is warned of.
        num_nodes: n, where it is known; then an epsilon that promises little is warned of, too.
    """
    usual = None if num_nodes is None else min(1e-5, 1 / (10 * max(num_nodes, 1)))
    delta = usual if delta is None else delta
    check_number(
        "epsilon",
        epsilon,
        allowed=lambda number: number > 0,
        rule="must be a number greater than 0 (infinity means no promise)",
        fix="Smaller is more private; 0.5 to 4 is usual.",
    )
    check_number(
        "delta",
        delta,
        allowed=lambda number: SMALLEST_DELTA <= number < DELTA_LIMIT,
        rule=f"must be at least {SMALLEST_DELTA:g} (what the plans' arithmetic resolves) and below {DELTA_LIMIT:g} (a promise "
        "that may fail as often as it holds is none)",
        fix="Leave it out for min(1e-5, 1/(10 n)), or choose a public constant; never one over the edges.",
    )
    assert delta is not None  # which is no number
    if num_nodes is not None and delta * num_nodes > 1:
        warn_caller(
            f"delta={delta!r} is above 1/n for {num_nodes} nodes: a mechanism that publishes everything about one person, picked "
            f"at random, would keep that promise. Leave delta out for {usual:g}.",
            PromiseWarning,
        )
    if num_nodes is not None and LITTLE <= epsilon < math.inf:
        warn_caller(f"epsilon={epsilon!r}: {promises_little(epsilon)} 0.5 to 4 is usual.", PromiseWarning)
    return Budget(float(epsilon), float(delta))


def promises_little(epsilon: float, edges: int | None = None) -> str:
    """What to say of a promise from epsilon 10 on, for so many edges.

    Example:
        >>> promises_little(10.0, 1)
        'An epsilon of 10 or more promises little: for one edge the odds may change by a factor of e^epsilon = 22100.'
    """
    factor = f" = {round_up_digits(math.exp(epsilon), 3):g}" if epsilon < 700 else ""
    those = "what is protected" if edges is None else "one edge" if edges == 1 else f"any {edges} edges together"
    return f"An epsilon of {LITTLE:g} or more promises little: for {those} the odds may change by a factor of e^epsilon{factor}."


def compose(budgets: Iterable[Budget]) -> Budget:
    """Basic composition: both parts add. Sums are exact in decimal and round up.

    A budget is taken as the decimal number that it prints as, so 0.1 and 0.2 make 0.3.

    Example:
        >>> compose([Budget(0.1, 0.0), Budget(0.2, 0.0)])
        Budget(epsilon=0.3, delta=0.0)
    """
    total = ExactTotal()
    for budget in budgets:
        total.add(budget)
    return total.rounded


@dataclass
class ExactTotal:
    """A sum of budgets, exact in decimal, from which budgets can be taken away again.

    Attributes:
        epsilon: of all budgets whose epsilon is finite.
        delta: of all budgets.
        infinite: how many budgets of infinite epsilon are in it.
        rounded: the sum as a budget, rounded up; as of the last `add`.
    """

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    infinite: int = 0
    rounded: Budget = NOTHING

    def add(self, budget: Budget, times: int = 1, *, ceiling: Budget | None = None) -> None:
        """Add a budget, as the decimal numbers that it prints as; take it away with -1.

        `BudgetExceededError` if the sum would pass the ceiling, saying what was asked, spent and left; then nothing is added.
        """
        spent = self.rounded
        if ceiling is not None and not ceiling.covers(compose([spent, budget])):
            pairs, reason = ((ceiling.epsilon, spent.epsilon), (ceiling.delta, spent.delta)), ""
            left = [0.0 if had >= most else most - had for most, had in pairs]
            if math.isinf(budget.epsilon):
                reason = " What was asked carries no promise (a seed, no noise, or bare private values)."
            raise BudgetExceededError(
                f"ledger ceiling: asked epsilon={budget.epsilon:g}, delta={budget.delta:g}; spent epsilon={spent.epsilon:g}, "
                f"delta={spent.delta:g}; left epsilon={left[0]:g}, delta={left[1]:g} of epsilon={ceiling.epsilon:g}, "
                f"delta={ceiling.delta:g}.{reason} Nothing was opened or charged. Ask for less, or let the data's owner "
                "raise the ceiling."
            )
        epsilon, delta, infinite = self.epsilon, self.delta + times * Fraction(repr(float(budget.delta))), self.infinite
        if math.isinf(budget.epsilon):
            infinite += times
        else:
            epsilon += times * Fraction(repr(float(budget.epsilon)))
        sums = []
        for exact in (Fraction(0) if infinite else epsilon, delta):
            near = float(exact)
            sums.append(math.nextafter(near, math.inf) if Fraction(repr(near)) < exact else near)
        rounded = Budget(math.inf if infinite else sums[0], min(sums[1], math.nextafter(1.0, 0.0)))
        self.epsilon, self.delta, self.infinite, self.rounded = epsilon, delta, infinite, rounded


def round_up_digits(number: float, digits: int) -> float:
    """The number with so many significant digits, never below it: for printing.

    Example:
        >>> round_up_digits(1.23401, 4)
        1.235
    """
    rounded = float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(number))))
    # With 16 digits or more, printing may round a tie down again; the next float is then above it.
    while float(f"{rounded:.{digits}g}") < number:
        rounded = math.nextafter(rounded, math.inf)
    return rounded


def round_down_difference(whole: float, part: float) -> float:
    """What is left of `whole` after `part`, as decimals, rounded so that both together never exceed `whole`.

    Example:
        >>> round_down_difference(0.4, 0.1)
        0.3
    """
    exact = Fraction(repr(float(whole))) - Fraction(repr(float(part)))
    nearest = float(exact)
    return nearest if Fraction(repr(nearest)) <= exact else math.nextafter(nearest, -math.inf)


@dataclass(frozen=True)
class ProtectedChange:
    """The change between neighbouring data sets that a promise is about: how many edges, and in words."""

    edges: int
    name: str
    sentence: str


PUBLIC = ("the node set", "features", "labels", "splits", "all settings")  # whatever is protected
ONE_UNDIRECTED_EDGE = ProtectedChange(
    edges=1,
    name="one undirected edge",
    sentence="One undirected edge of a simple graph, added or removed; everything else stays the same.",
)


def protected_change(edges: Any = 1, *, record: Mapping[str, Any] | None = None) -> ProtectedChange:
    """What a promise for so many edges protects; `InputError` for what is no number of edges.

    Args:
        edges: how many, from 1 to 10.
        record: of a plan, which may say it.
    """
    edges = edges if record is None else record.get(EDGES_FIELD, 1)
    check_number(
        "protect_edges",
        edges,
        allowed=lambda number: 1 <= number <= MOST_EDGES,
        rule=f"must be a whole number of edges from 1 to {MOST_EDGES}",
        fix=f"For j times {MOST_EDGES} edges, protect {MOST_EDGES} at epsilon/j and at delta/(j e^epsilon).",
        whole=True,
    )
    edges = int(edges)  # whole, but maybe numpy's
    if edges == 1:
        return ONE_UNDIRECTED_EDGE
    return ProtectedChange(
        edges=edges,
        name=f"any {edges} undirected edges",
        sentence=f"Any {edges} undirected edges of a simple graph together, anywhere in it, each added or removed; everything "
        "else stays the same.",
    )
