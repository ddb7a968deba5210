"""Budgets: their rules, their partial order, and sums that round up."""

import math
import warnings
from dataclasses import FrozenInstanceError
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gcon.errors import BudgetExceededError, InputError, PromiseWarning
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.methods.moments import Moments
from gcon.methods.objective import Objective
from gcon.privacy.boundary import Private
from gcon.privacy.budget import NOTHING, Budget, checked_budget, compose, round_up_digits
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SystemRandomness

epsilons = st.floats(0, 1e6)
deltas = st.floats(0, 0.999)
budgets = st.builds(Budget, epsilons, deltas)
# What people write: two decimals.
written = st.integers(0, 10_000).map(lambda hundredths: hundredths / 100)


@pytest.mark.parametrize(("epsilon", "delta"), [(-1e-9, 0), (math.nan, 0), (1, -1e-9), (1, 1), (1, 1.5), (1, math.nan)])
def test_impossible_budgets(epsilon, delta):
    with pytest.raises(InputError):
        Budget(epsilon, delta)


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, "1", None, True, [1.0]])
def test_a_release_needs_a_positive_epsilon(epsilon):
    with pytest.raises(InputError, match=r"^epsilon"):
        checked_budget(epsilon, 1e-5)


@pytest.mark.parametrize("delta", [0, 0.5, 0.9, 1, -1e-5, 2, math.nan, math.inf, "1e-5", None, False])
def test_a_release_needs_a_delta_inside(delta):
    with pytest.raises(InputError, match=r"^delta"):
        checked_budget(1.0, delta)


@pytest.mark.parametrize("method", [Moments, Objective])
def test_every_method_refuses_the_same_deltas(method):
    method(epsilon=1.0, delta=0.49)
    for delta in (0.5, 0.9):
        with pytest.raises(InputError, match=r"^delta.*below 0\.5"):
            method(epsilon=1.0, delta=delta)


def test_a_delta_above_one_over_n_and_an_epsilon_of_ten_are_warned_about():
    nodes = social_circles_parts(40, num_classes=2, seed=1)[0]
    with pytest.warns(PromiseWarning, match=r"delta=0\.03 is above 1/n for 40 nodes.*Leave delta out for 1e-05"):
        checked_budget(1.0, 0.03, nodes.num_nodes)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PromiseWarning)
        assert checked_budget(1.0, 0.025, nodes.num_nodes).delta == 0.025
        assert checked_budget(1.0, None, nodes.num_nodes).delta == 1e-5
        assert checked_budget(9.9, None, nodes.num_nodes).epsilon == 9.9
    little = r"^epsilon=10\.0: An epsilon of 10 or more promises little: .* e\^epsilon = 22100\. 0\.5 to 4 is usual\.$"
    asked = [(1.0, 0.03, r"delta=0\.03 is above 1/n"), (10.0, None, little)]
    for method, (epsilon, delta, words) in product((Moments, Objective), asked):  # and both ask before they learn
        with pytest.raises(BudgetExceededError), pytest.warns(PromiseWarning, match=words):
            method(epsilon=epsilon, delta=delta).train(
                nodes,
                Private(None, "nothing"),
                ledger=MemoryLedger(ceiling=Budget(0.5, 0.0)),
                randomness=SystemRandomness(),
            )


@pytest.mark.parametrize("epsilon", [1e-300, 1, 2.5, np.float64(0.5), math.inf])
def test_usual_budgets(epsilon):
    budget = checked_budget(epsilon, 1e-5)
    assert budget == Budget(epsilon, 1e-5)
    assert type(budget.epsilon) is float


def test_a_budget_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        Budget(1.0, 1e-5).epsilon = 0.1


def test_cover_is_a_partial_order():
    small, wide, tall, large = Budget(1, 1e-6), Budget(1, 1e-5), Budget(2, 1e-6), Budget(2, 1e-5)
    assert large.covers(small)
    assert large.covers(wide)
    assert large.covers(tall)
    assert not small.covers(large)
    assert not wide.covers(tall)
    assert not tall.covers(wide)
    assert Budget(math.inf, 0.5).covers(large)
    assert not large.covers(Budget(math.inf, 0.0))


@given(first=budgets, second=budgets, third=budgets)
def test_cover_is_reflexive_antisymmetric_and_transitive(first, second, third):
    assert first.covers(first)
    if first.covers(second) and second.covers(first):
        assert first == second
    if first.covers(second) and second.covers(third):
        assert first.covers(third)


@pytest.mark.parametrize(("nodes", "delta"), [(0, 1e-5), (1, 1e-5), (10_000, 1e-5), (20_000, 5e-6), (10**6, 1e-7)])
def test_public_delta_is_a_function_of_the_nodes(nodes, delta):
    assert checked_budget(1.0, None, nodes).delta == pytest.approx(delta, rel=1e-15)


def test_decimals_add_like_decimals():
    assert compose([Budget(0.1, 1e-5)] * 3) == Budget(0.3, 3e-5)
    assert compose([Budget(0.1, 0.0)] * 10) == Budget(1.0, 0.0)
    assert compose([Budget(0.7, 0.0), Budget(0.1, 0.0)]) == Budget(0.8, 0.0)
    assert compose([]) == NOTHING


@given(numbers=st.lists(written, max_size=30))
def test_written_decimals_give_the_written_sum(numbers):
    total = compose(Budget(number, 0.0) for number in numbers).epsilon
    assert total == float(sum((Decimal(repr(number)) for number in numbers), Decimal(0)))


@given(numbers=st.lists(epsilons, max_size=20))
def test_sums_round_up_and_by_one_step_at_most(numbers):
    exact = sum((Fraction(repr(number)) for number in numbers), Fraction(0))
    total = compose(Budget(number, 0.0) for number in numbers).epsilon
    assert Fraction(repr(total)) >= exact
    assert Fraction(repr(math.nextafter(total, 0))) <= exact
    assert total >= max(numbers, default=0.0)


@given(parts=st.lists(budgets, max_size=8), data=st.data())
def test_order_does_not_matter_and_more_never_costs_less(parts, data):
    shuffled = data.draw(st.permutations(parts))
    assert compose(parts) == compose(shuffled)
    assert compose([*parts, data.draw(budgets)]).covers(compose(parts))


@given(parts=st.lists(budgets, max_size=8), more=budgets)
def test_adding_to_a_rounded_sum_is_never_below_the_sum_of_all(parts, more):
    assert compose([compose(parts), more]).covers(compose([*parts, more]))


def test_infinity_stays():
    assert compose([Budget(1.0, 1e-5), Budget(math.inf, 0.0)]) == Budget(math.inf, 1e-5)


def test_deltas_saturate_below_one():
    total = compose([Budget(1.0, 0.6), Budget(1.0, 0.6)])
    assert 0.999999 < total.delta < 1


@settings(max_examples=200, deadline=None)
@given(number=st.floats(1e-300, 1e300), digits=st.integers(1, 17))
@example(number=2.0**-24, digits=16)  # a tie, which printing rounds down
def test_printed_numbers_round_up(number, digits):
    shown = float(f"{round_up_digits(number, digits):.{digits}g}")
    assert number <= shown <= number * (1 + 10.0 ** (1 - digits)) * (1 + 1e-15)


def test_whole_and_infinite_numbers_stay():
    assert [round_up_digits(number, 4) for number in (0.0, 1.5, math.inf)] == [0.0, 1.5, math.inf]
