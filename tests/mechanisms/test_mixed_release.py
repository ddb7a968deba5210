"""What a mixed plan pays for, in every order; what it refuses; and that its three branches together cost what it says."""

import dataclasses
import itertools
import json
import math
import re
from types import SimpleNamespace

import networkx
import numpy as np
import pytest
import scipy.stats
import torch

from gcon.edges.edge_list import private_edges, public_edges
from gcon.errors import InputError, PlanMismatchError, UnprovenBoundError
from gcon.mechanisms.composition import gaussian_total
from gcon.mechanisms.counts import NeighbourCounts, NoisyCount, Selection
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_curve import LEAST, gaussian_delta, mixed_delta, pure_as_gaussian
from gcon.mechanisms.gaussian_release import NoisyRelease, gaussian_plan
from gcon.mechanisms.mixed_release import MixedPlan, branch_delta, mixed_plan, mixed_plan_from
from gcon.privacy.account import spend
from gcon.privacy.budget import NOTHING, Budget
from gcon.privacy.ledger import MemoryLedger, Outcome
from gcon.privacy.randomness import SystemRandomness

SIZE = 12
PAIRS = torch.tensor(list(networkx.gnp_random_graph(SIZE, 0.4, seed=2).edges)).T
EDGES = public_edges(PAIRS, SIZE)
PRIVATE, _ = private_edges(PAIRS, SIZE)
ROWS = torch.randn(SIZE, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
MOMENTS = EdgeMoments(ROWS)
CODES = torch.arange(SIZE) % 3
EPSILON, DELTA, SHARE, ANSWER = 1.0, 1e-5, 0.1, 0.1
PLAN = mixed_plan(EPSILON, DELTA, first_share=SHARE, answer_share=ANSWER, method="test")


def lonely(edges):
    return int((edges.degrees == 0).sum())


def moments(share, plan=PLAN, statistic=MOMENTS):
    return NoisyRelease(plan=plan, statistic=statistic, share=share)


def counts(rounds, plan=PLAN):
    return NeighbourCounts(codes=CODES, num_codes=3, rate=plan.rates[rounds - 1], rounds=rounds)


def answers(epsilon=None, sensitivity=2):
    return NoisyCount(PLAN.answer_epsilon if epsilon is None else epsilon, lonely, sensitivity)


def forged(record, **fields):
    copy = dataclasses.replace(record)
    for name, value in fields.items():
        object.__setattr__(copy, name, value)
    return copy


ALLOWED = {
    "nothing": [],
    "moments alone": [moments(1.0)],
    "moments in ten parts": [moments(0.1)] * 10,
    "answers alone": [answers()],
    "moments and answers": [moments(0.3), moments(0.7), answers()],
    "moments beyond the first share at once": [moments(0.11), answers()],
    "counts alone": [counts(1)],
    "one round": [moments(SHARE), counts(1), answers()],
    "one round, less than the first share": [moments(0.01), moments(0.02), counts(1)],
    "two rounds": [moments(0.04), moments(0.06), counts(2), counts(2), answers()],
    "two rounds, the second left out": [moments(SHARE), counts(2), answers()],
    "the first share in ten decimal parts": [moments(0.01)] * 10 + [counts(2)],
    "what reads no edge is free": [
        moments(SHARE),
        moments(0.0, statistic=EdgeMoments(torch.zeros(SIZE, 2))),
        counts(1),
    ],
}
REFUSED = {
    "shares above 1": [moments(0.6), moments(0.5)],
    "counts after too much": [moments(0.2), counts(1)],
    "counts after a little too much": [moments(SHARE * (1 + 1e-11)), counts(1)],
    "counts after too much in parts": [moments(0.06), moments(0.06), counts(2)],
    "Gaussian after counts": [moments(0.05), counts(1), moments(0.05)],
    "Gaussian after the answers": [moments(0.05), answers(), moments(0.05)],
    "counts after the answers": [answers(), counts(1)],
    "answers between two tables": [counts(2), answers(), counts(2)],
    "two tables of the one": [counts(1), counts(1)],
    "a third table": [counts(2)] * 3,
    "one round, then two": [counts(1), counts(2)],
    "two rounds, then one": [counts(2), counts(1)],
    "three rounds": [NeighbourCounts(codes=CODES, num_codes=3, rate=PLAN.rates[1], rounds=3)],
    "no round": [NeighbourCounts(codes=CODES, num_codes=3, rate=PLAN.rates[1], rounds=0)],
    "minus one round": [NeighbourCounts(codes=CODES, num_codes=3, rate=PLAN.rates[1], rounds=-1)],
    "the rate of one round for two": [NeighbourCounts(codes=CODES, num_codes=3, rate=PLAN.rates[0], rounds=2)],
    "the rate of two rounds for one": [NeighbourCounts(codes=CODES, num_codes=3, rate=PLAN.rates[1], rounds=1)],
    "a larger rate": [NeighbourCounts(codes=CODES, num_codes=3, rate=2 * PLAN.rates[0])],
    "no noise": [NeighbourCounts(codes=CODES, num_codes=3, rate=math.inf)],
    "another rate in the second table": [
        counts(2),
        NeighbourCounts(codes=CODES, num_codes=3, rate=2 * PLAN.rates[1], rounds=2),
    ],
    "answers twice": [answers(), answers()],
    "answers at a larger epsilon": [answers(2 * PLAN.answer_epsilon)],
    "answers at another epsilon": [answers(PLAN.answer_epsilon / 2)],
    "answers without noise": [answers(math.inf)],
    "answers of another sensitivity": [answers(sensitivity=1)],
    "answers of a larger sensitivity": [answers(sensitivity=4)],
    "a choice in place of a count": [Selection(PLAN.answer_epsilon, lambda edges: [1, 2], 2)],
    "another plan's moments": [gaussian_plan(EPSILON, DELTA / 3, method="test").noisy(MOMENTS, share=0.1)],
    "a larger plan's moments": [gaussian_plan(4.0, DELTA, method="test").noisy(MOMENTS, share=0.1)],
    "moments without noise": [gaussian_plan(math.inf, DELTA, method="test").noisy(MOMENTS, share=0.1)],
    "something else": [SimpleNamespace(share=0.1)],
}


# --- orders -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanisms", ALLOWED.values(), ids=ALLOWED)
def test_what_is_allowed(mechanisms):
    for length in range(len(mechanisms) + 1):  # as the account asks: one more every time
        PLAN.check(mechanisms[:length])


@pytest.mark.parametrize("mechanisms", REFUSED.values(), ids=REFUSED)
def test_what_is_refused(mechanisms):
    PLAN.check(mechanisms[:-1])  # it is the last one that goes too far
    with pytest.raises(PlanMismatchError):
        PLAN.check(mechanisms)


def test_every_sequence_of_a_few_releases(monkeypatch):
    """All sequences of up to five: those that the words of the proof page allow, and no other."""
    monkeypatch.setattr(MixedPlan, "__post_init__", lambda plan: None)  # the numbers stay as they are
    kinds = {"m": moments(0.05), "M": moments(0.6), "1": counts(1), "2": counts(2), "a": answers()}
    allowed = 0
    for length in range(6):
        for letters in itertools.product(kinds, repeat=length):
            found = re.fullmatch("([mM]*)(1|22?)?a?", "".join(letters))
            spent = 0.05 * letters.count("m") + 0.6 * letters.count("M")
            mechanisms = [kinds[letter] for letter in letters]
            if found and spent < (0.11 if found[2] else 1.01):
                allowed += 1
                PLAN.check(mechanisms)
            else:
                with pytest.raises(PlanMismatchError):
                    PLAN.check(mechanisms)
    assert allowed == 36 + 18  # without counts, at most one M; with them, at most two m and no M


@pytest.mark.parametrize("share", [1e-6, 0.01, 0.1, 0.3])
def test_the_slack_of_shares_is_paid_for_by_larger_noise(share):
    """Shares may add to a little more than the first share; what they amount to stays below it, however small it is."""
    plan = mixed_plan(EPSILON, DELTA, first_share=share, answer_share=ANSWER, method="test")
    most = share * (1 + 0.99e-12)
    release = moments(most, plan)
    plan.check([release, counts(1, plan)])
    assert (release.statistic.sensitivity / release.standard_deviation) ** 2 < share * plan.distance**2
    with pytest.raises(PlanMismatchError):
        plan.check([moments(share + 0.9e-12, plan), counts(1, plan)])  # a slack of the whole would allow it


def test_the_account_keeps_to_it():
    ledger = MemoryLedger("circle")
    with spend(PRIVATE, PLAN, ledger=ledger, randomness=SystemRandomness(), purpose="test") as account:
        first = account.release(moments(0.06))
        with pytest.raises(PlanMismatchError):
            account.release(NeighbourCounts(codes=CODES, num_codes=3, rate=1.0))
        table = account.release(counts(2))
        with pytest.raises(PlanMismatchError):
            account.release(moments(0.04))
        codes = table.value.argmax(dim=1)  # the second table's codes come from the first
        second = account.release(NeighbourCounts(codes=codes, num_codes=3, rate=PLAN.rates[1], rounds=2))
        number = account.release(answers())
        with pytest.raises(PlanMismatchError):
            account.release(answers())
    assert first.share == 0.06
    assert table.rounds == second.rounds == 2
    assert table.rate == PLAN.rates[1]
    assert isinstance(number, int)
    assert ledger.total() == Budget(EPSILON, DELTA)
    record = account.receipt.plan
    assert record["rates"] == list(PLAN.rates)
    assert [each.get("statistic", "answers") for each in record["releases"]] == [
        "edge moments",
        "neighbour counts",
        "neighbour counts",
        "answers",
    ]
    json.dumps(record)
    assert ledger.entries()[0].request.gaussian_distance == PLAN.gaussian_distance


# --- the split of delta -----------------------------------------------------------------------------------------------

BUDGETS = [
    (0.1, 1e-9, 0.05, 0.1),
    (1.0, 1e-5, 0.1, 0.1),
    (1.0, 1e-5, 0.3, 0.0),
    (4.0, 1e-3, 0.2, 0.25),
    (20.0, 0.1, 0.5, 0.5),
]


def branches(plan):
    first, answer = math.sqrt(plan.first_share) * plan.distance, [(plan.answer_epsilon, 1)]
    return [
        (plan.distance, answer),
        (first, [(plan.rates[0], 2), *answer]),
        (first, [(plan.rates[1], 4), *answer]),
    ]


@pytest.mark.parametrize(("epsilon", "delta", "share", "answer"), BUDGETS)
def test_every_branch_costs_a_third_of_delta_and_hardly_less(epsilon, delta, share, answer):
    plan = mixed_plan(epsilon, delta, first_share=share, answer_share=answer, method="test")
    assert plan.budget == Budget(epsilon, delta)
    assert plan.answer_epsilon == pytest.approx(answer * epsilon)
    costs = [mixed_delta(epsilon, *branch) for branch in branches(plan)]
    for cost in costs:
        assert cost <= delta / 3
        assert cost == pytest.approx(delta / 3, rel=1e-6)
    assert math.fsum(costs) <= delta
    assert plan.rates[0] > plan.rates[1] > 0
    assert dataclasses.replace(plan) == plan


def worst_choice(plan, cells=20_001, *, last=None):
    """The largest delta of any choice of branch by the first stage: the mean over its Gaussian of the worst branch."""
    last = last or [(plan.rates[1], 4)]
    epsilon, mu = plan.budget.epsilon, plan.distance
    first = math.sqrt(plan.first_share) * mu
    rests = [[(math.sqrt(mu**2 - first**2), [])], [(0.0, [(plan.rates[0], 2)])], [(0.0, last)]]
    middles = np.linspace(-9, 9, cells) + first
    weights = scipy.stats.norm(first).pdf(middles) * (middles[1] - middles[0])
    left = epsilon - (first * middles - first**2 / 2)  # what epsilon the loss of the first stage leaves
    costs = np.array(
        [curve(left, distance, [*responses, (plan.answer_epsilon, 1)]) for [(distance, responses)] in rests]
    )
    return float((weights * costs.max(axis=0)).sum()), (weights * costs).sum(axis=1)


def curve(epsilons, distance, responses):
    """The curve of section 2 in float64, written out once more."""
    losses = [(1.0, 0.0)]
    for rate, number in responses:
        up = 1 / (1 + math.exp(-rate))
        for _ in range(number):
            losses = [(c * p, loss + sign * rate) for c, loss in losses for p, sign in ((up, 1), (1 - up, -1))]
    total = np.zeros_like(epsilons)
    for chance, loss in losses:
        rest = epsilons - loss
        if distance == 0:
            total += chance * np.maximum(0, -np.expm1(np.minimum(rest, 0)))
        else:
            normal = scipy.stats.norm.cdf
            total += chance * np.maximum(
                0, normal(distance / 2 - rest / distance) - np.exp(rest) * normal(-distance / 2 - rest / distance)
            )
    return total


@pytest.mark.parametrize(("epsilon", "delta", "share", "answer"), BUDGETS[1:])
def test_the_worst_choice_of_branch_costs_at_most_delta(epsilon, delta, share, answer):
    """Section 3, by integration: each branch alone costs a third; who picks the worst one every time pays more, not too much."""
    plan = mixed_plan(epsilon, delta, first_share=share, answer_share=answer, method="test")
    worst, alone = worst_choice(plan)
    assert alone == pytest.approx([delta / 3] * 3, rel=1e-3)
    assert delta / 3 < worst <= delta * (1 + 1e-9)


def test_a_choice_costs_more_than_its_branches():
    """Why delta is split: at epsilon 1 who may choose comes near to the sum."""
    worst, alone = worst_choice(mixed_plan(1.0, 1e-5, first_share=0.1, answer_share=0.0, method="test"))
    assert worst > 1.5 * max(alone)


# --- one-way counts ---------------------------------------------------------------------------------------------------


def one_way_plan(epsilon=EPSILON, delta=DELTA, share=SHARE, answer=ANSWER, **options):
    return mixed_plan(epsilon, delta, first_share=share, answer_share=answer, method="test", one_way=True, **options)


@pytest.mark.parametrize("edges", [1, 2, 10])
@pytest.mark.parametrize(("epsilon", "delta", "share", "answer"), BUDGETS)
def test_one_way_counts_cost_a_third_of_delta(epsilon, delta, share, answer, edges):
    """One response whose rate is that of all edges together: the pure epsilon of the table. All else is as without them."""
    plan = one_way_plan(epsilon, delta, share, answer, protect_edges=edges)
    other = mixed_plan(epsilon, delta, first_share=share, answer_share=answer, method="test", protect_edges=edges)
    assert (plan.distance, plan.rates[0], plan.answer_epsilon) == (other.distance, other.rates[0], other.answer_epsilon)

    def cost(epsilon, edges):
        first = edges * math.sqrt(share) * plan.distance
        return mixed_delta(epsilon, first, [(edges * plan.rates[1], 1), (edges * plan.answer_epsilon, 1)])

    assert cost(epsilon, edges) <= delta / 3 * (1 + 1e-12)
    assert cost(epsilon, edges) == pytest.approx(delta / 3, rel=1e-6)
    assert plan.rates[1] > plan.rates[0]
    assert dataclasses.replace(plan) == plan
    for number, budget in plan.by_edges([1, 3, edges]).items():
        whole = [
            cost(budget.epsilon, number),
            branch_delta(budget.epsilon, number * plan.distance, plan.answer_epsilon, edges=number),
            branch_delta(
                budget.epsilon,
                number * math.sqrt(share) * plan.distance,
                plan.answer_epsilon,
                edges=number,
                rounds=1,
                rate=plan.rates[0],
            ),
        ]
        assert math.fsum(whole) <= delta * (1 + 1e-9)


@pytest.mark.parametrize(("epsilon", "delta", "share", "answer"), BUDGETS[1:])
def test_the_worst_choice_with_one_way_counts_costs_at_most_delta(epsilon, delta, share, answer):
    plan = one_way_plan(epsilon, delta, share, answer)
    worst, alone = worst_choice(plan, last=[(plan.rates[1], 1)])
    assert alone == pytest.approx([delta / 3] * 3, rel=1e-3)
    assert delta / 3 < worst <= delta * (1 + 1e-9)
    for other in (epsilon / 3, epsilon, 2 * epsilon):
        for branch in (*branches(plan)[:2], (branches(plan)[1][0], [(plan.rates[1], 1), (plan.answer_epsilon, 1)])):
            most = gaussian_delta(other, plan.gaussian_distance) * (1 + 1e-9)
            assert mixed_delta(other, *branch) <= max(most, 1e-300)


def test_one_way_and_other_tables_are_not_mixed_up():
    plan, codes = one_way_plan(), torch.where(CODES == 2, -1, CODES)

    def one_way(rate=plan.rates[1], rounds=1):
        return NeighbourCounts(codes=codes, num_codes=2, rate=rate, rounds=rounds, one_way=True)

    plan.check([moments(SHARE, plan), one_way()])
    plan.check([moments(SHARE, plan), counts(1, plan)])
    for tables, payer in (
        ([one_way(), one_way()], plan),
        ([one_way(), counts(1, plan)], plan),
        ([counts(1, plan), one_way()], plan),
        ([counts(1, plan), counts(1, plan)], plan),
        ([NeighbourCounts(codes=CODES, num_codes=3, rate=plan.rates[1])], plan),
        ([NeighbourCounts(codes=CODES, num_codes=3, rate=plan.rates[1], rounds=2)], plan),
        ([one_way(plan.rates[0])], plan),
        ([one_way(1.01 * plan.rates[1])], plan),
        ([one_way(rounds=2)], plan),
        ([NeighbourCounts(codes=CODES, num_codes=3, rate=plan.rates[1], one_way=True)] * 2, plan),
        ([one_way(PLAN.rates[1])], PLAN),
        ([counts(2), one_way(PLAN.rates[1], rounds=2)], PLAN),
        ([counts(2), NeighbourCounts(codes=CODES, num_codes=3, rate=PLAN.rates[1], rounds=1)], PLAN),
        ([one_way(PLAN.rates[0])], PLAN),
        ([one_way(PLAN.rates[1], rounds=2)], PLAN),
    ):
        with pytest.raises(PlanMismatchError):
            payer.check(tables)
    with pytest.raises(PlanMismatchError):
        plan.check([moments(1.001 * SHARE, plan), one_way()])


def test_one_way_plans_are_told_apart_in_records():
    plan = one_way_plan()
    record = plan.public_record([])
    assert record["one_way"] is True
    assert "one_way" not in PLAN.public_record([])
    assert dataclasses.replace(mixed_plan_from(record, plan.budget), name=plan.name) == plan
    for wrong in ({"one_way": 1}, {"one_way": "yes"}, {"one_way": False}, {"rates": [plan.rates[0], 1.0]}):
        with pytest.raises(PlanMismatchError):
            mixed_plan_from(record | wrong, plan.budget)
    with pytest.raises(PlanMismatchError):
        dataclasses.replace(plan, one_way=False)
    with pytest.raises(InputError, match="whole-number noise"):  # before anything is charged
        one_way_plan(2.4e-9, 1e-12)
    endless = one_way_plan(math.inf)
    assert endless.rates == (math.inf, math.inf)
    endless.check([NeighbourCounts(codes=CODES, num_codes=3, rate=math.inf, one_way=True)])


# --- plans that contradict themselves ---------------------------------------------------------------------------------


def test_a_branch_above_its_third_is_refused():
    for change in (
        {"rates": (PLAN.rates[0] * 1.001, PLAN.rates[1])},
        {"rates": (PLAN.rates[0], PLAN.rates[1] * 1.001)},
        {"rates": PLAN.rates[::-1]},
        {"rates": (PLAN.rates[0], math.inf)},
        {"rates": (PLAN.rates[0], math.nan)},
        {"rates": (1e9, PLAN.rates[1])},
        {"rates": (PLAN.rates[0], 1e9)},
        {"rates": (PLAN.rates[0], 0.0)},
        {"rates": (-PLAN.rates[0], PLAN.rates[1])},
        {"rates": PLAN.rates[:1]},
        {"rates": (*PLAN.rates, PLAN.rates[1])},
        {"rates": ()},
        {"first_share": 0.101},
        {"first_share": 0.0},
        {"first_share": 1.0},
        {"first_share": -0.1},
        {"first_share": math.nan},
        {"first_share": LEAST**2},
        {"answer_epsilon": 0.11},
        {"answer_epsilon": -0.1},
        {"answer_epsilon": 1.0},
        {"answer_epsilon": math.nan},
        {"answer_epsilon": math.inf},
        {"budget": Budget(0.999, DELTA)},
        {"budget": Budget(EPSILON, 0.99 * DELTA)},
        {"budget": Budget(EPSILON, 0.0)},
        {"budget": Budget(0.0, DELTA)},
        {"budget": Budget(math.inf, 0.0)},
        {"distance": gaussian_plan(EPSILON, DELTA, method="test").distance},
        {"distance": PLAN.distance * 1.001},
        {"distance": 0.0},
        {"distance": -PLAN.distance},
        {"distance": math.inf},
        {"distance": math.nan},
        {"distance": None},
    ):
        with pytest.raises(PlanMismatchError):
            dataclasses.replace(PLAN, **change)
        with pytest.raises(PlanMismatchError):
            forged(PLAN, **change).check([])


def test_more_noise_than_needed_is_a_plan():
    for change in (
        {"rates": (PLAN.rates[0] / 2, PLAN.rates[1] / 2)},
        {"first_share": 0.09},
        {"answer_epsilon": 0.0},
        {"budget": Budget(1.1, DELTA)},
        {"budget": Budget(EPSILON, 2 * DELTA)},
        {"distance": PLAN.distance / 2},
    ):
        dataclasses.replace(PLAN, **change).check([])


def test_without_answers_in_the_plan_there_are_none():
    plan = mixed_plan(EPSILON, DELTA, first_share=SHARE, answer_share=0.0, method="test")
    assert plan.answer_epsilon == 0
    plan.check([moments(0.1, plan), counts(1, plan)])
    for epsilon in (1e-300, 0.1):
        with pytest.raises(PlanMismatchError):
            plan.check([answers(epsilon)])


def test_moments_that_were_made_for_something_like_this_plan_are_refused():
    """A look-alike could say another distance whenever it is asked, so whatever it says now, the plan pays for its own."""

    class Derived(MixedPlan):
        pass

    fields = {field.name: getattr(PLAN, field.name) for field in dataclasses.fields(PLAN) if field.init}
    renamed = dataclasses.replace(PLAN, name="somebody else's")
    for alike in (Derived(**fields), SimpleNamespace(**fields), renamed):
        with pytest.raises(PlanMismatchError):
            PLAN.check([moments(0.1, alike)])
    PLAN.check([moments(0.1, MixedPlan(**fields))])


def test_forged_releases_are_refused():
    larger = forged(PLAN, distance=10 * PLAN.distance)
    release = moments(0.1)
    object.__setattr__(release, "plan", larger)
    with pytest.raises(PlanMismatchError):
        PLAN.check([release])
    table = counts(1)
    object.__setattr__(table, "rate", 10 * table.rate)
    with pytest.raises(PlanMismatchError):
        PLAN.check([table])
    table = counts(2)
    object.__setattr__(table, "rounds", 1)
    with pytest.raises(PlanMismatchError):
        PLAN.check([table])
    number = answers()
    object.__setattr__(number, "epsilon", 1.0)
    with pytest.raises(PlanMismatchError):
        PLAN.check([number])
    number = answers()
    object.__setattr__(number, "sensitivity", 1)
    with pytest.raises(PlanMismatchError):
        PLAN.check([number])


def test_subclasses_are_not_what_was_proven():
    class Louder(NeighbourCounts):
        def apply(self, edges, randomness):
            raise AssertionError

    class Quieter(NoisyCount):
        def apply(self, edges, randomness):
            raise AssertionError

    ledger = MemoryLedger("circle")
    for mechanism in (
        Louder(codes=CODES, num_codes=3, rate=PLAN.rates[0]),
        Quieter(PLAN.answer_epsilon, lonely, 2),
    ):
        with pytest.raises(PlanMismatchError):
            PLAN.check([mechanism])
        with (
            spend(PRIVATE, PLAN, ledger=ledger, randomness=SystemRandomness(), purpose="test") as account,
            pytest.raises(UnprovenBoundError),
        ):
            account.release(mechanism)
    assert ledger.total() == NOTHING
    assert {entry.outcome for entry in ledger.entries()} == {Outcome.WITHDRAWN}

    class Generous(MixedPlan):
        def check(self, mechanisms):
            pass

    generous = Generous(**{field.name: getattr(PLAN, field.name) for field in dataclasses.fields(PLAN) if field.init})
    with (
        pytest.raises(UnprovenBoundError),
        spend(PRIVATE, generous, ledger=ledger, randomness=SystemRandomness(), purpose="test"),
    ):
        raise AssertionError


def test_a_plan_that_was_changed_since_pays_for_nothing():
    plan = forged(PLAN, budget=Budget(0.5, DELTA))
    with (
        spend(PRIVATE, plan, ledger=MemoryLedger("circle"), randomness=SystemRandomness(), purpose="test") as account,
        pytest.raises(PlanMismatchError),
    ):
        account.release(counts(1))


def test_what_follows_from_a_plan_cannot_be_told_to_it():
    """A smaller distance would make the ledger's tighter total too small: nothing is released, and nothing stays charged."""
    plan, ledger = forged(PLAN, gaussian_distance=PLAN.gaussian_distance / 2), MemoryLedger("circle")
    with (
        spend(PRIVATE, plan, ledger=ledger, randomness=SystemRandomness(), purpose="test") as account,
        pytest.raises(PlanMismatchError, match="changed its price"),
    ):
        account.release(counts(1))
    assert ledger.total() == NOTHING
    plan = forged(PLAN, branches=())
    plan.check([])
    assert plan.branches == PLAN.branches


def test_a_receipt_says_what_was_released_whatever_a_record_was_made_to_say():
    mechanisms = [moments(0.05), counts(1), answers()]
    honest = [dict(mechanism.record) for mechanism in mechanisms]
    for mechanism in mechanisms:
        object.__setattr__(mechanism, "record", {"noise": "none"})
    with spend(PRIVATE, PLAN, ledger=MemoryLedger(), randomness=SystemRandomness(), purpose="test") as account:
        for mechanism in mechanisms:
            account.release(mechanism)
    assert account.receipt.plan["releases"] == honest


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 1e-5), (-1.0, 1e-5), (math.nan, 1e-5), (1.0, 0.0), (1.0, 0.6), (1.0, math.nan)]
)
def test_budgets_that_are_none(epsilon, delta):
    with pytest.raises(InputError):
        mixed_plan(epsilon, delta, first_share=SHARE, answer_share=ANSWER, method="test")


@pytest.mark.parametrize(
    "change", [{"first_share": 0.0}, {"first_share": 1.0}, {"answer_share": 1.0}, {"answer_share": -0.1}]
)
def test_shares_that_leave_nothing(change):
    with pytest.raises(PlanMismatchError):
        mixed_plan(EPSILON, DELTA, **{"first_share": SHARE, "answer_share": ANSWER, "method": "test", **change})


# --- no promise, and as one Gaussian ----------------------------------------------------------------------------------


def test_infinite_epsilon_gives_exact_values_in_every_branch():
    plan = mixed_plan(math.inf, DELTA, first_share=SHARE, answer_share=ANSWER, method="test")
    assert plan.budget == Budget(math.inf, 0.0)
    assert plan.gaussian_distance is None
    assert "noise" not in plan.public_record([])
    assert plan.branches == ()
    assert plan.by_edges([1]) == {1: plan.budget}
    with pytest.raises(PlanMismatchError, match="promises nothing"):
        plan.by_edges([1, 2])
    exact = torch.from_numpy(networkx.to_numpy_array(networkx.gnp_random_graph(SIZE, 0.4, seed=2))).long()
    exact = exact @ torch.nn.functional.one_hot(CODES, 3)
    ledger = MemoryLedger("circle")
    for rounds in (1, 2):
        with spend(PRIVATE, plan, ledger=ledger, randomness=SystemRandomness(), purpose="test") as account:
            first = account.release(moments(0.1, plan))
            tables = [account.release(counts(rounds, plan)) for _ in range(rounds)]
            number = account.release(NoisyCount(math.inf, lonely, 2))
        assert torch.equal(first.value, MOMENTS.of(EDGES))
        assert all(torch.equal(table.value, exact) for table in tables)
        assert number == lonely(EDGES)
        assert not account.receipt.keeps_promise
    assert math.isinf(ledger.total().epsilon)
    with pytest.raises(PlanMismatchError):
        dataclasses.replace(plan, budget=Budget(1.0, DELTA))
    with pytest.raises(PlanMismatchError):
        dataclasses.replace(plan, rates=(math.inf, 1.0))


@pytest.mark.parametrize(("epsilon", "delta", "share", "answer"), BUDGETS)
def test_as_one_gaussian_it_is_at_least_the_worst_branch(epsilon, delta, share, answer):
    """Its curve lies above that of every branch, and of the worst choice, at every epsilon; and it is what section 5 says."""
    plan = mixed_plan(epsilon, delta, first_share=share, answer_share=answer, method="test")
    distance, mu = plan.gaussian_distance, plan.distance
    squares = [(1 - share) * mu**2, 2 * pure_as_gaussian(plan.rates[0]) ** 2, 4 * pure_as_gaussian(plan.rates[1]) ** 2]
    expected = share * mu**2 + max(squares) + pure_as_gaussian(plan.answer_epsilon) ** 2
    assert distance**2 == pytest.approx(expected, rel=1e-11)
    assert distance**2 > expected
    for other in (0.0, epsilon / 3, epsilon, 2 * epsilon):
        for branch in branches(plan):
            cost = mixed_delta(other, *branch)
            assert cost <= max(gaussian_delta(other, distance) * (1 + 1e-9), 1e-300)
        elsewhere = SimpleNamespace(**{field.name: getattr(plan, field.name) for field in dataclasses.fields(plan)})
        elsewhere.budget = Budget(other, delta)
        assert worst_choice(elsewhere)[0] <= gaussian_delta(other, distance) * (1 + 1e-6) + 1e-15


def test_the_ledger_may_use_the_distance():
    ledger = MemoryLedger("circle")
    for _ in range(2):
        with spend(PRIVATE, PLAN, ledger=ledger, randomness=SystemRandomness(), purpose="test") as account:
            account.release(counts(1))
    total = gaussian_total(ledger.entries(), extra_delta=1e-5)
    assert gaussian_delta(total.epsilon, math.sqrt(2) * PLAN.gaussian_distance) <= 1e-5
    assert ledger.total() == Budget(2 * EPSILON, 2 * DELTA)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-9, 1e-12), (501.0, 1e-5), (1e300, 1e-5)])
def test_budgets_without_a_plan_are_refused_before_anything_is_charged(epsilon, delta):
    with pytest.raises(InputError, match="epsilon"):
        mixed_plan(epsilon, delta, first_share=0.05, answer_share=0.05, method="moments")
