"""The curve of Gaussian releases with randomised responses: the specification's numbers, a brute-force sum, and its shape."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from gcon.errors import InputError
from gcon.mechanisms.counts import geometric_deviation
from gcon.mechanisms.gaussian_curve import gaussian_delta, mixed_delta
from gcon.mechanisms.mixed_release import branch_delta, mixed_plan

DIGITS = 1e-12
# epsilon, share of stage 1, mu at delta/2, mu of stage 1, a, noise of a count, mu of a Gaussian stage 2, noise by it.
TABLE = [
    (0.5, 0.05, 0.136033157325, 0.0304179386972, 0.205693201696, 6.86325, 0.132588720852, 10.6662),
    (0.5, 0.1, 0.136033157325, 0.0430174614451, 0.185199138645, 7.62528, 0.129052384335, 10.9584),
    (1, 0.05, 0.257457195891, 0.0575691791309, 0.409221736777, 3.43186, 0.250938234094, 5.6357),
    (1, 0.1, 0.257457195891, 0.0814151139016, 0.367734736468, 3.82416, 0.244245341705, 5.79014),
    (1, 0.2, 0.257457195891, 0.115138358262, 0.307549617288, 4.58025, 0.230276716524, 6.14137),
    (2, 0.1, 0.483744805641, 0.15297353921, 0.731104037237, 1.89193, 0.45892061763, 3.08161),
    (4, 0.05, 0.896107903425, 0.200375818723, 1.62817556287, 0.779579, 0.873417944544, 1.61917),
    (4, 0.1, 0.896107903425, 0.28337420041, 1.45898960109, 0.888392, 0.85012260123, 1.66354),
]


def largest(cost, delta):
    """The largest number that costs at most delta, written out once more."""
    low, high = 0.0, 1e3
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if cost(middle) <= delta else (low, middle)
    return low


@pytest.mark.parametrize(
    ("epsilon", "distance", "rate", "delta"),
    [
        (1, 0.05, 0.4, 1.41479822976311e-7),
        (2, 0.2, 0.75, 2.36424543597438e-4),
        (0.7, 0.1, 0.2, 1.34083760252305e-5),
        (0.5, 0, 0.4, 0.0928977254222173),
    ],
)
def test_vectors(epsilon, distance, rate, delta):
    assert mixed_delta(epsilon, distance, [(rate, 2)]) == pytest.approx(delta, rel=DIGITS)


@pytest.mark.parametrize("line", TABLE, ids=lambda line: f"{line[0]}, {line[1]}")
def test_the_table_of_the_specification(line):
    """Twelve digits of distances and rates, six of noise, each as printed."""
    epsilon, share, whole, first, rate, noise, rest, gaussian_noise = line
    distance = largest(lambda number: mixed_delta(epsilon, number), 5e-6)
    stage = math.sqrt(share) * distance
    found = largest(lambda number: branch_delta(epsilon, stage, 0.0, edges=1, rounds=1, rate=number), 5e-6)
    left = math.sqrt(1 - share) * distance
    for value, printed in ((distance, whole), (stage, first), (found, rate), (left, rest)):
        assert float(f"{value:.12g}") == printed
    for value, printed in ((geometric_deviation(found), noise), (math.sqrt(2) / left, gaussian_noise)):
        assert float(f"{value:.6g}") == printed


def test_one_table_by_its_formula():
    """delta_K(t) of the specification, written out."""
    for rate, epsilon in itertools.product((0.01, 0.4, 3.0), (0.0, 0.3, 1.0, 5.0)):
        up = 1 / (1 + math.exp(-rate))
        losses = [(up**2, 2 * rate), (2 * up * (1 - up), 0.0), ((1 - up) ** 2, -2 * rate)]
        expected = sum(chance * max(0.0, -math.expm1(epsilon - loss)) for chance, loss in losses)
        assert mixed_delta(epsilon, 0.0, [(rate, 2)]) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("distance", [1e-3, 0.1, 0.7, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0])
def test_without_responses_it_is_the_gaussian_curve(epsilon, distance):
    expected = gaussian_delta(epsilon, distance)
    if expected > 1e-290:
        assert mixed_delta(epsilon, distance) == pytest.approx(expected, rel=1e-6)
    assert mixed_delta(epsilon, distance, [(0.0, 5)]) == mixed_delta(epsilon, distance)


def laws(distance, responses, cells=6000):
    """A Gaussian number in narrow cells, and all bits: the probabilities of every outcome under both hypotheses."""
    edges = np.linspace(-9, 9 + distance, cells)
    edges = np.concatenate([[-np.inf], edges, [np.inf]])
    near, far = (np.diff(scipy.stats.norm(mean).cdf(edges)) for mean in (distance, 0.0))
    for rate, number in responses:
        up = 1 / (1 + math.exp(-rate))
        for _ in range(number):
            near, far = (
                np.concatenate([chance * law, (1 - chance) * law]) for chance, law in ((up, near), (1 - up, far))
            )
    return near, far


@pytest.mark.parametrize(
    ("distance", "responses"),
    [(0.5, [(0.4, 2)]), (1.3, [(0.25, 4), (0.3, 1)]), (0.2, [(0.9, 2), (0.1, 1)]), (2.0, []), (0.05, [(1.5, 3)])],
)
def test_against_all_outcomes_one_by_one(distance, responses):
    """Cells forget a little, so their delta is smaller, by as much as they are wide squared."""
    near, far = laws(distance, responses)
    for epsilon in (0.0, 0.2, 1.0, 2.5):
        for one, other in ((near, far), (far, near)):  # adding an edge, or removing it
            found = float(np.maximum(one - math.exp(epsilon) * other, 0).sum())
            assert found <= mixed_delta(epsilon, distance, responses) * (1 + 1e-9)
            assert found == pytest.approx(mixed_delta(epsilon, distance, responses), rel=1e-4, abs=1e-12)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    epsilon=st.floats(0, 5),
    distance=st.floats(1e-3, 3),
    rates=st.lists(st.tuples(st.floats(0, 3), st.integers(0, 4)), max_size=3),
    more=st.floats(0.01, 1),
)
def test_more_of_anything_costs_more_and_a_larger_epsilon_less(epsilon, distance, rates, more):
    delta = mixed_delta(epsilon, distance, rates)
    assert 0 < delta <= 1
    assert mixed_delta(epsilon + more, distance, rates) <= delta
    assert mixed_delta(epsilon, distance + more, rates) >= delta
    assert mixed_delta(epsilon, distance, [*rates, (more, 1)]) >= delta
    assert mixed_delta(epsilon, distance, rates[::-1]) == pytest.approx(delta, rel=1e-14)
    for place, (rate, number) in enumerate(rates):
        assert mixed_delta(epsilon, distance, [*rates[:place], (rate + more, number), *rates[place + 1 :]]) >= delta


def test_pure_epsilon_is_its_own_response():
    """A response of rate a is (a, 0)-DP, and r of them (r a, 0)-DP: no less."""
    for rate, number in ((0.5, 1), (0.4, 2), (0.1, 5)):
        assert mixed_delta(math.nextafter(rate * number, math.inf), 0.0, [(rate, number)]) < 1e-15
        assert mixed_delta(0.9 * rate * number, 0.0, [(rate, number)]) > 1e-8


@pytest.mark.parametrize("line", TABLE, ids=lambda line: f"{line[0]}, {line[1]}")
def test_a_plan_finds_the_table_of_the_specification(line):
    """With three times the delta of a branch, and a factor 1 - 1e-12 on the private side."""
    epsilon, share, whole, _, rate, *_ = line
    plan = mixed_plan(epsilon, 1.5e-5, first_share=share, answer_share=0.0, method="test")
    assert plan.distance == pytest.approx(whole, rel=5e-12)
    assert plan.rates[0] == pytest.approx(rate, rel=5e-12)


@pytest.mark.parametrize(("epsilon", "edges"), [(0.05, 1), (1.0, 1), (8.0, 1), (60.0, 1), (1.0, 3)])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.3])
def test_what_a_plan_finds_fits_and_a_little_more_does_not(epsilon, edges, delta):
    plan = mixed_plan(epsilon, delta, first_share=1 / 9, answer_share=0.1, method="test", protect_edges=edges)
    curve = partial(branch_delta, epsilon, answer_epsilon=plan.answer_epsilon, edges=edges)
    (whole, *alone), *tables = plan.branches
    assert alone == [0, False, 0.0]
    assert curve(edges * whole) <= delta / 3 < curve(edges * whole * (1 + 1e-11))
    assert [(rounds, rate) for _, rounds, _, rate in tables] == [*enumerate(plan.rates, start=1)]
    for first, rounds, _, rate in tables:
        assert first == pytest.approx(whole / 3, rel=1e-15)
        assert curve(edges * first, rounds=rounds, rate=rate) <= delta / 3
        assert curve(edges * first, rounds=rounds, rate=rate * (1 + 1e-11)) > delta / 3


@pytest.mark.parametrize("edges", [1, 3])
@pytest.mark.parametrize("answer_share", [1.5, 3.0])
def test_no_room_is_no_plan(edges, answer_share):
    """Answers that cost more than everything: not even the smallest number fits beside them, and the search ends."""
    with pytest.raises(InputError, match="too small"):
        mixed_plan(1.0, 1e-5, first_share=0.1, answer_share=answer_share, method="test", protect_edges=edges)


def test_of_several_ways_the_worst_counts():
    """In any order, and by the exact curve and the quick one."""
    ways = [[(0.4, 2)], [(0.1, 4), (0.3, 1)], [], [(0.2, 4)]]
    for epsilon, in_float64 in itertools.product((0.1, 0.7, 2.0), (False, True)):
        alone = [mixed_delta(epsilon, 0.1, way, in_float64=in_float64) for way in ways]
        assert len(set(alone)) == 4
        for order in itertools.permutations(range(4)):
            found = mixed_delta(epsilon, 0.1, *(ways[place] for place in order), in_float64=in_float64)
            assert found == max(alone)


@pytest.mark.parametrize("rate", [math.inf, math.nan])
def test_a_rate_that_is_no_number_costs_everything(rate):
    assert mixed_delta(1.0, 0.1, [(rate, 2)]) == 1
    assert mixed_delta(1.0, 0.1, [(1e3, 2)]) == pytest.approx(1)


def test_small_distances_keep_their_digits():
    """At epsilon 0 the curve is 2 Phi(mu/2) - 1, nearly linear: sums of a half and of nearly a half."""
    for distance in (1e-12, 1e-9, 1e-6):
        assert mixed_delta(0.0, distance) == pytest.approx(distance / math.sqrt(2 * math.pi), rel=1e-9)
