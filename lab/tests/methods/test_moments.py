"""Edge moments, then neighbour counts or more moments: what is charged and released, and that nothing else is read."""

import dataclasses
import json
import math
import sys

import pytest
import torch

import gcon.methods.moments as moments
from gcon.cli import app as cli
from gcon.edges.edge_list import public_edges
from gcon.edges.graph import PrivateGraph, PublicGraph, private_graph
from gcon.errors import AccessRefusedError, BudgetExceededError, InputError
from gcon.files.datasets import social_circles, social_circles_parts
from gcon.learn import after_release
from gcon.mechanisms.counts import NeighbourCounts, NoisyCount, NoisyCounts
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_curve import mixed_delta
from gcon.mechanisms.gaussian_release import NoisyRelease
from gcon.mechanisms.mixed_release import mixed_plan
from gcon.methods.moments import ANSWERS_SHARE, FEATURES_SHARE, FIRST_SHARE, MOST_COUNTED
from gcon.privacy.boundary import Private
from gcon.privacy.budget import NOTHING, Budget, checked_budget
from gcon.privacy.ledger import Kind, MemoryLedger
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.methods import METHODS, Moments, MomentsWithoutEdges
from gcon_lab.methods.fitted import fit

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def counted(monkeypatch):
    """The validation nodes of these small graphs are too few to be worth a count: here it is bought all the same."""
    monkeypatch.setattr(moments, "counted_share", lambda epsilon, asked, **_: MOST_COUNTED if asked else 0.0)


SIZE = 300
ACCESSES = ("own-edges", "none", "cached")  # of the training nodes; public-graph is for others
SECOND_SHARE = 1 - FIRST_SHARE  # of more moments


def parts(mean_degree, **other):
    settings = {"num_classes": 3, "per_class": 10, "feature_signal": 2.0, "homophily": 0.8, "seed": 3} | other
    return social_circles_parts(SIZE, mean_degree=mean_degree, **settings)


# The nodes of both are drawn with other edges in between, so they differ; each edge-free model is trained once.
SPARSE_NODES, SPARSE = parts(3.0)
DENSE_NODES, DENSE = parts(50.0)
NOBODY = torch.zeros(SIZE, dtype=torch.bool)


def sparse(edge_index=SPARSE, **other):
    return private_graph(dataclasses.replace(SPARSE_NODES, **other), edge_index, name="circles")


def dense(edge_index=DENSE):
    return private_graph(DENSE_NODES, edge_index, name="circles")


def fitted_on(graph, *, epsilon=2.0, seed=1, ledger=None):
    return fit(Moments(epsilon=epsilon), graph, ledger=ledger, randomness=SeededRandomness(seed))


def plan_of(epsilon, delta=None):
    delta = checked_budget(1.0, None, SIZE).delta if delta is None else delta
    return mixed_plan(epsilon, delta, first_share=FIRST_SHARE, answer_share=MOST_COUNTED, method="moments")


def probabilities(fitted, graph, access):
    return fitted.predictions(graph, access=access).probabilities


class Untouchable:
    """Edges that must not be read."""

    def __getattr__(self, name):
        raise AssertionError(f"{name} of the edges was read")


def untouchable(nodes=SPARSE_NODES):
    return PrivateGraph(nodes, Private(Untouchable(), "edges that must not be read"), sparse().hygiene, "circles")


def test_charged_once_and_before_edges_are_read(monkeypatch):
    ledger, entries_seen, precisely = MemoryLedger("circles"), [], EdgeMoments.precisely

    def watched(statistic, edges):
        entries_seen.append(len(ledger.entries()))
        return precisely(statistic, edges)

    monkeypatch.setattr(EdgeMoments, "precisely", watched)
    fitted = fit(Moments(epsilon=1.5, delta=1e-4), sparse(), ledger=ledger)
    assert entries_seen == [1, 1, 1]
    (entry,) = ledger.entries()
    assert entry.request.kind is Kind.RELEASE
    assert entry.request.cost == ledger.total() == fitted.receipts[0].budget == Budget(1.5, 1e-4)
    assert entry.request.gaussian_distance == plan_of(1.5, 1e-4).gaussian_distance
    assert fitted.no_promise is None
    for access in ("none", "cached"):
        fitted.predict(sparse(), access=access)
        fitted.score(sparse(), SPARSE_NODES.test_mask, access=access)
    assert len(ledger.entries()) == 1  # what was released is free
    fitted.predict(sparse(), access="own-edges")
    fitted.score(sparse(), SPARSE_NODES.test_mask, access="own-edges")
    kinds = [entry.request.kind for entry in ledger.entries()]
    assert kinds == [Kind.RELEASE, Kind.DELIVERY, Kind.DIAGNOSTIC]
    assert ledger.total() == Budget(1.5, 1e-4)


def test_a_budget_that_is_not_there_reads_nothing():
    ledger = MemoryLedger("circles", ceiling=Budget(1.0, 1e-5))
    with pytest.raises(BudgetExceededError):
        fit(Moments(epsilon=2.0, delta=1e-5), untouchable(), ledger=ledger)
    assert ledger.total() == NOTHING


def test_delta_comes_from_the_public_number_of_nodes():
    ledger = MemoryLedger("circles")
    fit(Moments(epsilon=1.0), sparse(), ledger=ledger)
    assert ledger.total() == checked_budget(1.0, None, SIZE)


def test_the_plan_in_the_ledger_says_nothing_about_edges():
    plans = []
    for edge_index in (SPARSE, SPARSE[:, 1:], SPARSE[:, :0]):
        ledger = MemoryLedger("circles")
        fitted_on(sparse(edge_index), ledger=ledger)
        plans.append(json.dumps(ledger.entries()[0].request.plan, sort_keys=True))
    assert plans[0] == plans[1] == plans[2]
    assert json.loads(plans[0])["releases"] == []  # the last one is chosen from those before it


@pytest.mark.parametrize("graph", [sparse, dense])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_the_noise_of_all_releases_is_what_the_budget_asks_for(released, graph, epsilon):
    fitted_on(graph(), epsilon=epsilon)
    plan, kinds = plan_of(epsilon), [type(line.mechanism) for line in released]
    statistics = [line.value for line in released if type(line.mechanism) is NoisyRelease]
    tables = [line.value for line in released if type(line.mechanism) is NeighbourCounts]
    assert kinds == [NoisyRelease] * len(statistics) + [NeighbourCounts] * len(tables) + [NoisyCount]
    shares = (FEATURES_SHARE, ANSWERS_SHARE, *([] if tables else [SECOND_SHARE]))
    for statistic, share in zip(statistics, shares, strict=True):
        sigma = statistic.sensitivity / (plan.distance * math.sqrt(share))
        assert statistic.standard_deviation == pytest.approx(sigma, rel=1e-9)
    assert all(table.rate == plan.rates[len(tables) - 1] and table.rounds == len(tables) for table in tables)
    # One branch costs at most its third of delta, and nearly all of it: two entries per table, and the count of answers.
    distance = math.sqrt(sum((each.sensitivity / each.standard_deviation) ** 2 for each in statistics))
    assert not any(table.one_way for table in tables)  # there are few labels
    responses = [(plan.rates[len(tables) - 1], 2 * len(tables))] if tables else []
    answers = released[-1].mechanism.epsilon
    assert answers == pytest.approx(MOST_COUNTED * epsilon)
    cost = mixed_delta(epsilon, distance, [*responses, (answers, 1)])
    assert 0.999 * checked_budget(1.0, None, SIZE).delta / 3 <= cost <= checked_budget(1.0, None, SIZE).delta / 3


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_the_second_release_is_chosen_by_the_released_degree(released, epsilon):
    fitted_on(sparse(), epsilon=epsilon)
    few = [line.value for line in released]
    fitted_on(dense(), epsilon=epsilon)
    many = [line.value for line in released][len(few) :]
    assert [each.name for each in few[:-1]] == ["edge moments"] * 3
    assert few[2].value.shape == few[0].value.shape
    assert [each.name for each in many[:2]] == ["edge moments"] * 2
    for table in many[2:-1]:
        assert (table.value.shape, table.value.dtype) == ((SIZE, 3), torch.int64)
    assert 1 <= len(many[2:-1]) <= 2
    assert type(few[-1]) is type(many[-1]) is int


def test_the_second_release_is_chosen_from_released_numbers_only(released, force):
    """Trained again with other numbers and no graph at all."""
    fitted_on(sparse(), epsilon=2.0)
    first, about, last, right = (line.value for line in released)
    force((first, about, last, right))
    fitted_on(untouchable(), epsilon=2.0)
    same = released[-2].mechanism
    assert type(same.statistic) is EdgeMoments
    assert same.share == SECOND_SHARE
    counted = about.value.clone()
    counted[-1, -1] += 0.3**2 * SIZE * 50  # fifty more neighbours per node
    table = NoisyCounts(value=torch.zeros(SIZE, 3, dtype=torch.int64), rate=plan_of(2.0).rates[0], rounds=1)
    force((first, dataclasses.replace(about, value=counted), table, right))
    fitted_on(untouchable(), epsilon=2.0)
    other = released[-2].mechanism
    assert type(other) is NeighbourCounts
    assert (other.rate, other.rounds) == (plan_of(2.0).rates[0], 1)


def test_neighbours_are_counted_by_public_labels_and_published_classes(released):
    trained = fitted_on(dense()).trained
    labelled = DENSE_NODES.train_mask
    first, last = (
        [line.mechanism for line in released if type(line.mechanism) is NeighbourCounts][at] for at in (0, -1)
    )
    for table in (first, last):
        assert torch.equal(table.codes[labelled], DENSE_NODES.labels[labelled])
    assert torch.equal(first.codes[~labelled], trained.answers.argmax(dim=1)[~labelled])
    assert torch.equal(last.codes, trained.counts.codes)


@pytest.mark.parametrize(("right", "used"), [(-1000, False), (1000, True)])
def test_own_edges_are_left_out_where_the_paid_count_says_so(released, force, right, used):
    fitted_on(sparse())
    force([*(line.value for line in released[:-1]), right])
    fitted = fitted_on(sparse())
    assert fitted.trained.own_edges is used
    own, cached = (probabilities(fitted, sparse(), access) for access in ("own-edges", "cached"))
    assert torch.allclose(own, cached, rtol=0, atol=1e-3) is not used


def test_without_validation_nodes_no_answers_are_counted(released):
    trained = fitted_on(sparse(validation_mask=NOBODY)).trained
    assert [type(line.mechanism) for line in released] == [NoisyRelease] * 3
    assert (trained.right, trained.asked, trained.own_edges) == (None, 0, True)


def test_two_releases_of_the_moments_are_one_at_the_joint_budget(released, monkeypatch):
    fitted_on(sparse(), epsilon=2.0)
    first, _, second, _ = (line.value for line in released)
    seen, shrunk = [], after_release.shrunk_moments

    def watched(value, *, deviation, **given):
        seen.append((value, deviation))
        return shrunk(value, deviation=deviation, **given)

    monkeypatch.setattr(after_release, "shrunk_moments", watched)
    free = moments.learn_without_edges(SPARSE_NODES, seed=0)
    moments.after_moments(free, [(each.value, each.standard_deviation) for each in (first, second)])
    [(value, deviation)] = seen
    whole = first.sensitivity / plan_of(2.0).distance
    assert deviation == pytest.approx(whole / math.sqrt(FEATURES_SHARE + SECOND_SHARE), rel=1e-9)
    by_share = (FEATURES_SHARE * first.value + SECOND_SHARE * second.value) / (FEATURES_SHARE + SECOND_SHARE)
    assert torch.allclose(value, by_share, rtol=1e-9)


@pytest.mark.parametrize(("graph", "edge_index"), [(sparse, SPARSE), (dense, DENSE)], ids=["sparse", "dense"])
@pytest.mark.parametrize("removed", [0, 100, 400])
def test_beyond_what_is_released_only_own_edges_are_read(released, force, graph, edge_index, removed):
    """The same released numbers for two graphs: nothing but the answers to those whose edges differ may change."""
    one = graph()
    fitted = fitted_on(one)
    force([line.value for line in released])
    two = graph(torch.cat([edge_index[:, :removed], edge_index[:, removed + 1 :]], dim=1))
    again = fitted_on(two)
    for access in ("none", "cached"):
        assert torch.equal(probabilities(fitted, one, access), probabilities(again, two, access))
    moved = (probabilities(fitted, one, "own-edges") != probabilities(again, two, "own-edges")).any(dim=1)
    assert set(moved.nonzero()[:, 0].tolist()) == set(edge_index[:, removed].tolist())
    # With the released numbers at hand, the edges are not needed at all.
    blind = fitted_on(untouchable(one.nodes))
    assert torch.equal(probabilities(blind, one, "cached"), probabilities(fitted, one, "cached"))


def test_without_edges_at_hand_counts_help_and_none_leaves_them_out():
    fitted = fitted_on(dense())
    none, cached = (fitted.score(dense(), DENSE_NODES.test_mask, access=access) for access in ("none", "cached"))
    assert cached > none + 0.05
    on_sparse = fitted_on(sparse())
    assert torch.equal(probabilities(on_sparse, sparse(), "none"), probabilities(on_sparse, sparse(), "cached"))


@pytest.mark.slow
def test_noise_differs_between_runs(released):
    for _ in range(2):
        fit(Moments(epsilon=1.0, seed=5), sparse(SPARSE[:, :0]))  # without edges the moments are noise alone
    one, _, two, _, three, _, four, _ = (line.value for line in released)
    for first, second in ((one, two), (one, three), (two, three), (three, four)):
        assert float((first.value == second.value).double().mean()) < 0.02


def test_noise_from_a_seed_is_charged_as_infinite():
    ledger = MemoryLedger("circles")
    fitted = fitted_on(sparse(), epsilon=1.0, ledger=ledger)
    assert math.isinf(ledger.total().epsilon)
    assert not fitted.receipts[0].keeps_promise
    assert "seed" in fitted.no_promise


@pytest.mark.parametrize("graph", [sparse, dense])
def test_infinite_epsilon_has_no_noise_and_promises_nothing(released, graph):
    ledger = MemoryLedger("circles")
    fitted = fit(Moments(epsilon=math.inf), graph(), ledger=ledger)
    assert math.isinf(ledger.total().epsilon)
    assert not fitted.receipts[0].keeps_promise
    assert fitted.no_promise
    assert {line.value.standard_deviation for line in released[:-1]} == {0.0}
    assert released[-1].mechanism.standard_deviation == 0.0
    assert all(type(line.mechanism) is NeighbourCounts for line in released[2:-1])  # without noise every count is heard
    rows = moments.learn_without_edges(graph().nodes, seed=0).rows.double()
    edge_index = SPARSE if graph is sparse else DENSE
    one_way = rows[edge_index[0]].T @ rows[edge_index[1]]
    expected = one_way + one_way.T
    assert float((released[0].value.value - expected).abs().max()) < 1e-4 * float(expected.abs().max())  # fixed point


def test_accesses_and_refusals():
    fitted = fitted_on(sparse())
    assert set(fitted.trained.score_functions) == {*ACCESSES, "public-graph"}
    assert fitted.predictions(sparse()).access == "own-edges"
    for access in ("full", "public-graph"):  # these edges are private
        with pytest.raises(AccessRefusedError):
            fitted.predict(sparse(), access=access)
    with pytest.raises(AccessRefusedError, match="private edges"):
        fitted.predict(PublicGraph(SPARSE_NODES.features, public_edges(SPARSE, SIZE)), access="own-edges")
    with pytest.raises(InputError, match="epsilon"):
        Moments(epsilon=-1.0)
    with pytest.raises(InputError, match="delta"):
        Moments(epsilon=1.0, delta=2.0)


@pytest.mark.parametrize("method", [Moments(epsilon=2.0), MomentsWithoutEdges()])
def test_other_nodes_are_answered_by_the_student_where_that_is_enough(method):
    fitted = fit(method, sparse())
    entries = len(fitted.ledger.entries())
    strangers = sparse(features=SPARSE_NODES.features + 1)
    for access in {"cached", "own-edges"} & set(fitted.trained.score_functions):
        with pytest.raises(InputError, match="train"):
            fitted.predict(strangers, access=access)
        with pytest.raises(InputError, match="train"):
            fitted.score(strangers, SPARSE_NODES.test_mask, access=access)
    found = probabilities(fitted, strangers, "none")
    assert not torch.equal(found, probabilities(fitted, sparse(), "none"))
    shown = PublicGraph(strangers.nodes.features, public_edges(SPARSE, SIZE))
    assert not torch.equal(probabilities(fitted, shown, "public-graph"), found)
    assert len(fitted.ledger.entries()) == entries


def test_the_control_reads_no_edge_and_costs_nothing():
    ledger = MemoryLedger("circles")
    fitted = fit(MomentsWithoutEdges(), untouchable(), ledger=ledger)
    assert fitted.receipts == ()
    assert fitted.no_promise is None
    fitted.predict(untouchable(), access="none")
    assert len(ledger.entries()) == 0
    assert set(fitted.trained.score_functions) == {"own-edges", "none", "public-graph"}
    fitted.predict(sparse())
    assert [entry.request.kind for entry in ledger.entries()] == [Kind.DELIVERY]
    assert ledger.total() == NOTHING


@pytest.mark.parametrize("method", [Moments(epsilon=2.0), MomentsWithoutEdges()])
def test_answers_from_own_edges_read_own_edges_only(method):
    # Without validation nodes no count can say that own edges are left out.
    fitted = fit(method, sparse(validation_mask=NOBODY), randomness=SeededRandomness(2))
    before = probabilities(fitted, sparse(), "own-edges")
    for place in range(0, SPARSE.shape[1], 40):
        kept = torch.cat([SPARSE[:, :place], SPARSE[:, place + 1 :]], dim=1)
        moved = (probabilities(fitted, sparse(kept), "own-edges") != before).any(dim=1)
        assert set(moved.nonzero()[:, 0].tolist()) == set(SPARSE[:, place].tolist())


def test_test_labels_change_nothing():
    graph = sparse(labels=torch.where(SPARSE_NODES.test_mask, 0, SPARSE_NODES.labels))
    for access in ACCESSES:
        assert torch.equal(
            probabilities(fitted_on(graph), graph, access), probabilities(fitted_on(sparse()), sparse(), access)
        )


@pytest.mark.parametrize("homophily", [0.05, 0.9])
def test_learns_from_neighbours_alike_or_not(homophily):
    graph = social_circles(
        400, num_classes=3, per_class=20, feature_signal=1.7, mean_degree=30.0, homophily=homophily, seed=1
    )
    mask = graph.nodes.test_mask
    fitted = fitted_on(graph, epsilon=4.0)
    alone = fit(MomentsWithoutEdges(), graph).score(graph, mask, access="none")
    assert alone < 0.85
    assert fitted.score(graph, mask, access="cached") > alone + 0.05
    assert fitted.score(graph, mask, access="own-edges") > alone + 0.1


@pytest.mark.slow
def test_moments_help_on_a_sparse_graph_with_weak_features(monkeypatch):
    monkeypatch.setattr(moments, "HEARD", math.inf)  # with such a budget counts would be heard
    graph = social_circles(
        1500, num_classes=3, per_class=20, feature_signal=1.5, mean_degree=4.0, homophily=0.9, num_features=60, seed=1
    )
    mask = graph.nodes.test_mask
    alone = fit(MomentsWithoutEdges(), graph).score(graph, mask, access="none")
    assert fitted_on(graph, epsilon=16.0).score(graph, mask, access="none") > alone + 0.005


def test_both_are_listed(capsys, monkeypatch):
    assert METHODS["moments"] is Moments
    assert METHODS["moments-without-edges"] is MomentsWithoutEdges
    monkeypatch.setattr(sys, "argv", ["gcon", "baseline", "list"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    printed = capsys.readouterr().out
    assert stopped.value.code == 0
    assert Moments.name in printed
    assert MomentsWithoutEdges.name in printed
