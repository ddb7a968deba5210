"""Several edges that change together: how they can lie, what they change, what that costs, and plans that protect them."""

import dataclasses
import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pytest
import torch

from gcon.edges.edge_list import private_edges, public_edges
from gcon.errors import InputError, PlanMismatchError
from gcon.mechanisms.counts import NeighbourCounts, geometric_deviation
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_curve import WORST_DEGREES, mixed_delta
from gcon.mechanisms.mixed_release import branch_delta, mixed_plan, mixed_plan_from
from gcon.privacy.account import spend
from gcon.privacy.budget import STATED_EDGES, protected_change
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SystemRandomness
from gcon.verify.several_edges import degree_lists

DELTA, SHARE, ANSWER = 1e-5, 0.05, 0.05
GRAPHIC = (1, 2, 5, 9, 17, 31, 54, 90, 151, 244)  # degree lists of graphs with 1 to 10 edges


def planned(edges, epsilon=1.0, delta=DELTA):
    return mixed_plan(epsilon, delta, first_share=SHARE, answer_share=ANSWER, method="test", protect_edges=edges)


def count_responses(rate, rounds, degrees):
    """Of tables alone, without a count of answers."""
    return [(degree * Fraction(rate), number * rounds) for degree, number in Counter(degrees).items()]


def costs(plan, epsilon, edges):
    """Of every branch."""
    curve = partial(branch_delta, epsilon, answer_epsilon=plan.answer_epsilon, edges=edges)
    return [curve(edges * distance, rounds=rounds, rate=rate) for distance, rounds, _, rate in plan.branches]


# --- how edges can lie ------------------------------------------------------------------------------------------------


def grown(edges):
    """Every simple graph with so many edges and no lonely node, many of them more than once: one edge after another."""
    graphs = {frozenset([(0, 1)])}
    for _ in range(edges - 1):
        wider = set()
        for graph in graphs:
            nodes = 1 + max(max(pair) for pair in graph)
            pairs = [*itertools.combinations(range(nodes + 1), 2), (nodes, nodes + 1)]
            wider |= {graph | {pair} for pair in pairs if pair not in graph}
        graphs = wider
    return graphs


def degrees_of(pairs):
    return tuple(sorted(Counter(node for pair in pairs for node in pair).values(), reverse=True))


def is_splitting(parts, of):
    """Whether the parts can be put together to the other list."""
    if not of:
        return not parts
    first, rest = of[0], of[1:]
    for size in range(1, len(parts) + 1):
        for places in itertools.combinations(range(len(parts)), size):
            if sum(parts[place] for place in places) == first and is_splitting(
                tuple(part for place, part in enumerate(parts) if place not in places), rest
            ):
                return True
    return False


def is_graphic(degrees):
    """Whether a simple graph has these degrees (Erdos and Gallai 1960)."""
    return sum(degrees) % 2 == 0 and all(
        sum(degrees[:first]) <= first * (first - 1) + sum(min(degree, first) for degree in degrees[first:])
        for first in range(1, len(degrees) + 1)
    )


@cache
def splittings(degrees):
    """Everything that comes of splitting parts in two, once or more often."""
    found = set()
    for place, degree in enumerate(degrees):
        for part in range(1, degree // 2 + 1):
            parts = tuple(sorted((*degrees[:place], *degrees[place + 1 :], part, degree - part), reverse=True))
            found |= {parts, *splittings(parts)}
    return frozenset(found)


@pytest.mark.parametrize("edges", range(1, 11))
def test_the_table_is_found_again(edges):
    possible = degree_lists(edges)
    split = {parts for degrees in possible for parts in splittings(degrees)}
    assert WORST_DEGREES[edges] == tuple(sorted(set(possible) - split, reverse=True))


@pytest.mark.parametrize("edges", range(1, 6))
def test_the_degrees_are_those_of_all_graphs(edges):
    found = {degrees_of(graph) for graph in grown(edges)}
    assert set(degree_lists(edges)) == found
    worst = WORST_DEGREES[edges]
    assert set(worst) <= found
    assert worst[0] == (edges, *[1] * edges)
    for degrees in found - set(worst):
        assert any(is_splitting(degrees, other) for other in worst)
    for degrees, other in itertools.permutations(worst, 2):
        assert not is_splitting(degrees, other)


@pytest.mark.parametrize("edges", range(1, 11))
def test_two_ways_to_find_the_degrees_agree(edges):
    """Erdos and Gallai, and the verifier's Havel and Hakimi; their number is known."""
    assert len(degree_lists(edges)) == GRAPHIC[edges - 1]
    assert all(is_graphic(degrees) and sum(degrees) == 2 * edges for degrees in degree_lists(edges))
    assert set(WORST_DEGREES[edges]) <= set(degree_lists(edges))


@pytest.mark.parametrize("degrees", [(2, 2), (3, 3, 1, 1), (4, 1, 1), (1, 1, 1), (4, 4, 4, 1, 1)], ids=str)
def test_degrees_that_no_graph_has(degrees):
    assert not is_graphic(degrees)


def test_no_way_is_always_the_worst():
    """Why all are tried: a star costs more at small epsilon, a triangle at large."""
    star, triangle = WORST_DEGREES[3]
    assert (star, triangle) == ((3, 1, 1, 1), (2, 2, 2))
    for epsilon, larger, smaller in ((0.2, star, triangle), (0.8, triangle, star)):
        assert mixed_delta(epsilon, 0.0, count_responses(0.2, 1, larger)) > 1.05 * mixed_delta(
            epsilon, 0.0, count_responses(0.2, 1, smaller)
        )


@pytest.mark.parametrize("edges", [2, 3, 4, 5])
def test_what_is_left_out_never_costs_more(edges):
    for rate, distance, epsilon in itertools.product((0.05, 0.7), (0.02, 0.6), (0.0, 0.3, 1.0, 4.0)):
        kept = max(
            mixed_delta(epsilon, distance, count_responses(rate, 2, degrees)) for degrees in WORST_DEGREES[edges]
        )
        for degrees in degree_lists(edges):
            assert mixed_delta(epsilon, distance, count_responses(rate, 2, degrees)) <= kept * (1 + 1e-12)


# --- what they change -------------------------------------------------------------------------------------------------

PAIRS = list(itertools.combinations(range(5), 2))
SETS = [chosen for size in (1, 2, 3) for chosen in itertools.combinations(range(len(PAIRS)), size)]


@pytest.fixture(scope="module")
def graphs():
    """All graphs with five nodes, by the bits of their pairs."""
    found = []
    for number in range(2 ** len(PAIRS)):
        pairs = [pair for place, pair in enumerate(PAIRS) if number >> place & 1]
        found.append(public_edges(torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T, 5))
    return found


@pytest.mark.parametrize("codes", [(0, 1, 2, 3, 4), (0, 0, 1, 1, 2), (0, 0, 0, 0, 0)], ids=str)
def test_counts_change_by_the_degrees(graphs, codes):
    """On all graphs with five nodes and for all sets of up to three changed edges."""
    mechanism = NeighbourCounts(codes=torch.tensor(codes), num_codes=5, rate=math.inf)
    tables = np.stack([mechanism.apply(graph, SystemRandomness()).value.numpy() for graph in graphs])
    numbers, attained = np.arange(len(tables)), 0
    for chosen in SETS:
        changes = np.abs(tables[numbers ^ sum(1 << place for place in chosen)] - tables).sum(axis=2)
        degrees = np.bincount([node for place in chosen for node in PAIRS[place]], minlength=5)
        assert (changes <= degrees).all()
        attained += int((changes == degrees).all(axis=1).sum())
        if len(set(codes)) == 5:  # then nothing cancels
            assert (changes == degrees).all()
    assert attained > len(SETS)


def test_moments_change_by_at_most_so_many_sensitivities(graphs):
    rows = torch.randn(5, 3, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    statistic = EdgeMoments(rows)
    values = np.stack([statistic.precisely(graph).value.numpy() for graph in graphs])
    numbers, largest = np.arange(len(values)), 0.0
    for chosen in SETS:
        moved = np.linalg.norm(values[numbers ^ sum(1 << place for place in chosen)] - values, axis=(1, 2))
        assert moved.max() <= len(chosen) * statistic.sensitivity * (1 + 1e-12)
        largest = max(largest, moved.max() / len(chosen) / statistic.sensitivity)
    assert largest > 0.6


# --- what that costs --------------------------------------------------------------------------------------------------


def shifted(rate, shift, far=400):
    """The exact law of the loss of one noisy count that changes by a shift, in units of the rate."""
    places = np.arange(-far, far + shift + 1)
    decay = math.exp(-rate)
    chances = (1 - decay) / (1 + decay) * decay ** np.abs(places).astype(float)
    law = Counter()
    for place, chance in zip(places, chances, strict=True):
        law[int(abs(place - shift) - abs(place))] += float(chance)
    return law


def together(laws):
    whole = Counter({0: 1.0})
    for law in laws:
        wider = Counter()
        for (loss, chance), (more, other) in itertools.product(whole.items(), law.items()):
            wider[loss + more] += chance * other
        whole = wider
    return whole


@pytest.mark.parametrize(
    ("name", "shifts", "edges"),
    [
        ("star whose leaves have one code", (4, 1, 1, 1, 1), 4),
        ("star whose leaves have four codes", (1,) * 8, 4),
        ("triangle of one code", (2, 2, 2), 3),
        ("triangle of three codes", (1,) * 6, 3),
        ("path of three edges, one code", (2, 2, 1, 1), 3),
        ("five nodes, all joined, one code", (4,) * 5, 10),
    ],
)
@pytest.mark.parametrize("rate", [0.05, 0.4, 1.5])
def test_the_real_table_stays_below_the_bound(name, shifts, edges, rate):
    """The exact privacy loss of geometric noise on these changes, at every epsilon."""
    law, attained = together([shifted(rate, shift) for shift in shifts]), 0.0
    for epsilon in np.linspace(0, 2 * edges * rate * 0.98, 25):
        exact = sum(chance * max(0.0, -math.expm1(epsilon - loss * rate)) for loss, chance in law.items())
        bound = max(mixed_delta(epsilon, 0.0, count_responses(rate, 1, degrees)) for degrees in WORST_DEGREES[edges])
        assert exact <= bound * (1 + 1e-9) + 1e-12
        attained = max(attained, exact / bound)
    assert attained > 0.3, name


@pytest.mark.parametrize("edges", [1, 2, 5])
def test_a_branch_costs_what_its_responses_cost(edges):
    """Gaussian releases, tables of counts for all ways in which edges can lie, and the answers; the worst way counts."""
    for rounds, rate, answer, epsilon in itertools.product((0, 1, 2), (0.07, 0.5), (0.0, 0.1), (0.2, 1.0)):
        answers = (math.nextafter(answer, math.inf) * edges, 1)
        ways = [[*count_responses(rate, rounds, degrees), answers] for degrees in WORST_DEGREES[edges]]
        expected = max(mixed_delta(epsilon, 0.3, way) for way in ways)
        found = branch_delta(epsilon, 0.3, answer, edges=edges, rounds=rounds, rate=rate)
        assert found == pytest.approx(expected, rel=1e-12)


def test_the_quick_curve_is_near():
    for edges, epsilon, distance in itertools.product((1, 3, 10), (0.5, 2.0), (0.05, 0.7)):
        for degrees in WORST_DEGREES[edges][:3]:
            beside = count_responses(0.1, 2, degrees)
            exact = mixed_delta(epsilon, distance, beside)
            assert mixed_delta(epsilon, distance, beside, in_float64=True) == pytest.approx(exact, rel=1e-6, abs=1e-15)


# --- plans ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("edges", "epsilon"), [(1, 1.0), (2, 0.3), (3, 1.0)])
def test_a_plan_spends_its_budget_on_so_many_edges(edges, epsilon):
    plan = planned(edges, epsilon)
    for cost in costs(plan, epsilon, edges):
        assert 0.99 * DELTA / 3 <= cost <= DELTA / 3
    if edges > 1:
        with pytest.raises(PlanMismatchError):
            dataclasses.replace(plan, protect_edges=edges + 1)
        dataclasses.replace(plan, protect_edges=edges - 1).check([])  # more noise than that needs
    assert plan.public_record([]).get("protect_edges", 1) == edges
    assert ("protect_edges" in plan.public_record([])) == (edges > 1)
    assert mixed_plan_from(plan.public_record([]), plan.budget).protect_edges == edges


@pytest.mark.slow
@pytest.mark.parametrize(("edges", "epsilon"), [(5, 4.0), (7, 0.1), (10, 1.0)])
def test_many_edges(edges, epsilon):
    plan = planned(edges, epsilon)
    for cost in costs(plan, epsilon, edges):
        assert 0.99 * DELTA / 3 <= cost <= DELTA / 3


def test_one_edge_is_what_it_was():
    plan = planned(1)
    assert plan == mixed_plan(1.0, DELTA, first_share=SHARE, answer_share=ANSWER, method="test")
    assert (plan.distance, *plan.rates) == (0.2471925295439651, 0.3903131440495285, 0.2006958429631042)


def test_noise_grows_as_planned():
    """Gaussian noise k times; counts nearly k times, drawn and measured."""
    one, four = planned(1), planned(4)
    assert one.distance / four.distance == pytest.approx(4, rel=1e-9)
    assert one.answer_epsilon / four.answer_epsilon == pytest.approx(4)
    for rate, wider in zip(one.rates, four.rates, strict=True):
        assert 3.5 < geometric_deviation(wider) / geometric_deviation(rate) < 4.1
    size = 3000
    codes, nothing = torch.arange(size) % 3, public_edges(torch.zeros(2, 0, dtype=torch.int64), size)
    for plan in (one, four):
        table = NeighbourCounts(codes=codes, num_codes=3, rate=plan.rates[0])
        drawn = table.apply(nothing, SystemRandomness()).value.double()
        # The mean of 9000 squares has a relative deviation of about sqrt(5/9000): six of them are 0.14.
        assert float(drawn.square().mean()) == pytest.approx(geometric_deviation(plan.rates[0]) ** 2, rel=0.15)


@pytest.mark.parametrize("edges", [1, 3])
def test_what_is_stated_for_several_edges(edges):
    """At the stated epsilon all branches together cost at most delta, and at a slightly smaller one more."""
    plan = planned(edges)
    stated = plan.by_edges()
    assert list(stated) == sorted({*STATED_EDGES, edges})
    assert stated[edges] == plan.budget
    assert [budget.epsilon for budget in stated.values()] == sorted(budget.epsilon for budget in stated.values())
    for number, budget in stated.items():
        assert budget.delta == DELTA
        assert math.fsum(costs(plan, budget.epsilon, number)) <= DELTA
        assert math.fsum(costs(plan, budget.epsilon * (1 - 2e-3), number)) > DELTA
        assert budget.epsilon == float(f"{budget.epsilon:.4g}")


@pytest.mark.parametrize("budget", [(1e-3, 0.1), (1e-5, 1e-5), (40.0, 1e-3), (400.0, 1e-12)])
def test_unusual_budgets_have_numbers_too(budget):
    plan = planned(2, *budget)
    stated = plan.by_edges([1, 2, 4])
    assert 0 < stated[1].epsilon <= stated[2].epsilon == budget[0] < stated[4].epsilon
    for number in (1, 4):
        assert math.fsum(costs(plan, stated[number].epsilon, number)) <= budget[1]


def test_nothing_is_stated_for_more_edges_than_the_table_has():
    with pytest.raises(InputError, match="from 1 to 10"):
        planned(1).by_edges([1, 11])


@pytest.mark.parametrize("wrong", [0, 11, -1, 2.5, True, "3", None, math.nan])
def test_other_numbers_of_edges_are_refused(wrong):
    with pytest.raises(InputError, match=r"protect_edges.*from 1 to 10.*For j times 10 edges"):
        protected_change(wrong)
    with pytest.raises(InputError, match="protect_edges"):
        protected_change(record={"protect_edges": wrong})
    with pytest.raises(InputError, match="protect_edges"):
        planned(wrong)


@pytest.mark.parametrize(("times", "epsilon"), [(2, 0.5), (3, 2.0)])
def test_the_way_out_for_more_edges(times, epsilon):
    """What the refusal advises for several times ten edges keeps the budget."""
    one = epsilon / times
    group = DELTA / (times * math.exp(epsilon)) * sum(math.exp(step * one) for step in range(times))
    assert group <= DELTA


def test_the_ledger_counts_one_edge():
    """It is charged the whole budget, which covers one edge and more; tighter totals take what one edge really spends."""
    plan, one, ledger = planned(3), planned(1), MemoryLedger("circle")
    edges, _ = private_edges(torch.tensor([[0, 1], [1, 2]]), 4)
    with spend(edges, plan, ledger=ledger, randomness=SystemRandomness(), purpose="test") as account:
        account.release(NeighbourCounts(codes=torch.tensor([0, 1, 0, 1]), num_codes=2, rate=plan.rates[0]))
    (entry,) = ledger.entries()
    assert entry.request.cost == ledger.total() == plan.budget
    assert entry.request.protected_change == "one undirected edge"
    assert entry.request.plan["protect_edges"] == 3
    assert entry.request.gaussian_distance == plan.gaussian_distance
    assert 2.5 < one.gaussian_distance / plan.gaussian_distance < 3.1
    assert account.receipt.protected_change == "any 3 undirected edges"
