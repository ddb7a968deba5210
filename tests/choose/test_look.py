"""The paid look: charged once and before edges are read, right within its errors, and what follows from it."""

import math
from dataclasses import replace

import pytest
import torch
from tests.choose.sealed import Sealed
from tests.opened import open_private

import gcon
import gcon.privacy.account
import gcon.privacy.gates
from gcon.choose import advise, paid_look, take_look
from gcon.choose.advice_words import in_words
from gcon.edges.graph import PrivateGraph, private_graph
from gcon.errors import BudgetExceededError, InputError
from gcon.learn.edge_free import learn_without_edges
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_release import NoisyStatistic
from gcon.methods.graph_facts import GraphFacts, counted_rows, graph_facts
from gcon.privacy.boundary import Private
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness, SystemRandomness

pytestmark = pytest.mark.slow


def made(homophily=0.8, mean_degree=10.0, feature_signal=1.5, num_nodes=800, seed=1):
    return gcon.datasets.social_circles(
        num_nodes, homophily=homophily, mean_degree=mean_degree, feature_signal=feature_signal, seed=seed
    )


@pytest.fixture(scope="module")
def graph():
    return made()


def look_at(graph, epsilon=0.5, ledger=None, seed=5):
    ledger = MemoryLedger("g") if ledger is None else ledger
    return take_look(graph, epsilon=epsilon, ledger=ledger, randomness=SeededRandomness(seed))


def sealed(graph, ledger):
    seal = Sealed(open_private(graph.edges), ledger)
    return seal, PrivateGraph(graph.nodes, Private(seal, "sealed"), graph.hygiene, graph.name)


def test_a_look_is_charged_exactly_once_and_before_edges_are_read(graph):
    ledger = MemoryLedger("g")
    seal, closed = sealed(graph, ledger)
    found = take_look(closed, epsilon=0.1, ledger=ledger, randomness=SystemRandomness())
    assert seal.read
    (entry,) = ledger.entries()
    assert entry.request.cost == found.receipt.budget == gcon.Budget(0.1, 1e-5)
    assert entry.request.mechanism == "gaussian release (advice)"
    assert ledger.total() == gcon.Budget(0.1, 1e-5)
    assert found.receipt.keeps_promise


def test_a_ceiling_refuses_and_no_edge_is_read(graph):
    ledger = MemoryLedger("g", ceiling=gcon.Budget(0.05, 1e-4))
    seal, closed = sealed(graph, ledger)
    with pytest.raises(BudgetExceededError):
        take_look(closed, epsilon=0.1, ledger=ledger, randomness=SystemRandomness())
    assert not seal.read
    assert ledger.total() == gcon.Budget(0.0, 0.0)


def test_advice_reads_no_edge_even_with_a_look(graph, monkeypatch):
    found = look_at(graph)

    def refused(*_, **__):
        raise AssertionError("a private value was opened")

    for module in (gcon.privacy.account, gcon.privacy.gates):
        monkeypatch.setattr(module, "apply_private", refused)
    assert advise(graph.nodes, epsilon=1.0, look=found).look is found
    with pytest.raises(AssertionError, match="opened"):
        look_at(graph)


def test_a_seeded_look_has_no_promise_and_says_so(graph):
    ledger = MemoryLedger("g")
    found = look_at(graph, ledger=ledger)
    assert math.isinf(ledger.total().epsilon)
    assert "no promise" in in_words(advise(graph.nodes, epsilon=1.0, look=found))


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.inf, math.nan, True])
def test_wrong_looks_are_refused_uncharged(graph, wrong):
    ledger = MemoryLedger("g")
    with pytest.raises(InputError, match="look"):
        take_look(graph, epsilon=wrong, ledger=ledger, randomness=SystemRandomness())
    assert not ledger.entries()


def test_a_look_without_validation_nodes_is_paid_once_and_near_the_truth(graph):
    """Training nodes judge then, each without what its own label taught: as in the training."""
    ledger = MemoryLedger("g")
    blind = replace(graph, nodes=replace(graph.nodes, validation_mask=torch.zeros_like(graph.nodes.validation_mask)))
    found, judged = look_at(blind, epsilon=4.0, ledger=ledger), look_at(graph, epsilon=4.0)
    assert len(ledger.entries()) == 1
    assert abs(found.mean_degree - judged.mean_degree) < 5 * found.mean_degree_error
    assert abs(found.homophily - judged.homophily) < 0.15


def test_a_look_must_be_a_part_of_the_budget(graph):
    found = look_at(graph, epsilon=0.5)
    with pytest.raises(InputError, match="look"):
        advise(graph.nodes, epsilon=0.5, look=found)
    left = advise(graph.nodes, epsilon=0.8, access="none", look=found)
    assert left.verdicts[0].epsilon == 0.3
    assert left.noise[0].epsilon == 0.3


@pytest.mark.slow
@pytest.mark.parametrize(("homophily", "mean_degree"), [(0.8, 10.0), (0.5, 20.0), (0.2, 20.0)])
def test_the_truth_lies_within_a_few_errors(homophily, mean_degree):
    """Seeds are fixed; five errors of the degree and a tenth of the homophily, whose model is not exact."""
    graph = made(homophily, mean_degree, feature_signal=2.0)
    found = look_at(graph, epsilon=1.0)
    assert found.mean_degree == pytest.approx(mean_degree, abs=5 * found.mean_degree_error)
    assert found.homophily == pytest.approx(homophily, abs=0.1)
    assert found.above_chance == pytest.approx((found.homophily - 0.25) * 4 / 3)


@pytest.mark.slow
def test_the_error_of_the_degree_is_the_deviation_of_the_noise(graph):
    looks = [look_at(graph, epsilon=0.2, seed=seed) for seed in range(200)]
    degrees = torch.tensor([found.mean_degree for found in looks])
    # 200 draws: the ratio of deviations lies within 1 +- 0.25 but for one set of seeds in a million.
    assert float(degrees.std()) / looks[0].mean_degree_error == pytest.approx(1, abs=0.25)
    assert abs(float(degrees.mean()) - 10) < 5 * looks[0].mean_degree_error / math.sqrt(200)


def test_a_look_without_information_says_that_it_is_belief(graph):
    found = look_at(graph, epsilon=1e-3)
    assert found.homophily_error > 0.1
    assert any("belief" in remark for remark in advise(graph.nodes, epsilon=1.0, look=found).remarks)


def test_facts_without_noise_are_exact(graph):
    free = learn_without_edges(graph.nodes, seed=0)
    moments = EdgeMoments(counted_rows(free.answers)).of(open_private(graph.edges))
    exact = NoisyStatistic(name="m", value=moments, standard_deviation=0.0, symmetric=True, sensitivity=2.18, share=1.0)
    found = graph_facts(exact, free.answers, free.examples)
    assert isinstance(found, GraphFacts)
    assert found.mean_degree == pytest.approx(10.0, rel=1e-4)  # rows are rounded to fixed point
    assert found.homophily == pytest.approx(0.8, abs=0.1)
    assert 0.01 <= found.homophily_error < 0.1


@pytest.mark.slow
def test_edges_that_tell_nothing_are_not_worth_a_budget():
    graph = made(homophily=0.25, mean_degree=20.0, feature_signal=2.0)
    advice = advise(graph.nodes, epsilon=1.0, look=look_at(graph, epsilon=0.5))
    assert {verdict.spend for verdict in advice.verdicts} == {"nothing"}
    assert {verdict.method for verdict in advice.verdicts} == {"moments-without-edges"}
    assert set(advice.enough.values()) == {None}
    assert "do not spend" in in_words(advice)
    assert ": spend;" not in in_words(advice)


@pytest.mark.slow
def test_friends_who_avoid_their_own_class_are_no_reason_to_publish():
    """Heterophily on a sparse graph: measured gains of what may be published are nothing; owners' own edges do tell."""
    graph = made(homophily=0.0, mean_degree=6.0, feature_signal=2.5)
    advice = advise(graph.nodes, epsilon=1.0, look=look_at(graph, epsilon=0.2))
    verdicts = {verdict.access: verdict for verdict in advice.verdicts}
    for access in ("none", "cached"):
        assert (verdicts[access].spend, verdicts[access].method) == ("nothing", "moments-without-edges")
    assert verdicts["own-edges"].expectation.gain > verdicts["none"].expectation.gain


@pytest.mark.slow
def test_a_dense_graph_of_friends_with_weak_features_is_worth_it():
    graph = made(homophily=0.8, mean_degree=40.0, feature_signal=1.3)
    advice = advise(graph.nodes, epsilon=1.5, look=look_at(graph, epsilon=0.5))
    verdicts = {verdict.access: verdict for verdict in advice.verdicts}
    for access in ("cached", "own-edges"):
        assert (verdicts[access].spend, verdicts[access].method, verdicts[access].stage) == (
            "spend",
            "moments",
            "counts",
        )
        assert verdicts[access].expectation.gain > 0.02
    assert "take cached" in verdicts["none"].why
    assert advice.enough["cached"] in (0.5, 1.0, 2.0)
    assert "moments with neighbour counts" in in_words(advice)


@pytest.mark.slow
def test_with_answers_too_weak_to_tell_homophily_own_edges_are_a_risk():
    graph = made(homophily=0.5, mean_degree=6.0, feature_signal=1.0)
    found = look_at(graph, epsilon=0.1)
    advice = advise(graph.nodes, epsilon=0.6, look=found)
    verdicts = {verdict.access: verdict for verdict in advice.verdicts}
    assert found.homophily_error > 0.1
    assert verdicts["own-edges"].spend == "risky"
    assert verdicts["own-edges"].expectation.least < -0.01
    assert verdicts["cached"].spend != "risky"
    assert "only if you know that friends are alike" in in_words(advice)
    assert any("hardly homophily" in remark for remark in advise(graph.nodes, epsilon=1.0).remarks)


@pytest.mark.slow
def test_a_sparse_graph_with_strong_features_gains_a_point_or_less():
    graph = made(homophily=0.8, mean_degree=3.0, feature_signal=2.5)
    advice = advise(graph.nodes, epsilon=1.1, access="none", look=look_at(graph, epsilon=0.1))
    (verdict,) = advice.verdicts
    assert verdict.spend in ("little", "nothing")
    assert verdict.expectation.gain <= 0.01
    assert verdict.stage in ("moments", None)


def test_two_graphs_with_the_same_noisy_release_give_the_same_words(monkeypatch):
    """Nothing but what was released reaches the words: with the released value fixed, edges change nothing."""
    fixed = EdgeMoments(counted_rows(learn_without_edges(made().nodes, seed=0).answers)).precisely(
        open_private(made().edges)
    )
    monkeypatch.setattr(EdgeMoments, "precisely", lambda self, edges: fixed)
    said = set()
    for edge_index in (torch.tensor([[0], [1]]), torch.tensor([[0, 5, 7], [3, 6, 8]])):
        graph = private_graph(made().nodes, edge_index)
        said.add(in_words(advise(graph.nodes, epsilon=1.0, look=look_at(graph, epsilon=0.1))))
    assert len(said) == 1


def test_the_names_of_the_package():
    assert set(gcon.choose.__all__) >= {"advise", "take_look", "public_facts", "noise_facts"}
    assert paid_look.take_look is take_look


@pytest.mark.slow
def test_a_vague_look_near_chance_does_not_say_that_edges_tell_nothing():
    graph = made(homophily=0.9, mean_degree=4.0, feature_signal=0.3)
    found = replace(look_at(graph, epsilon=0.1), homophily=1 / graph.nodes.num_classes + 0.02, homophily_error=0.18)
    sure = replace(found, homophily_error=0.02)
    vague, told = ({v.why for v in advise(graph.nodes, epsilon=1.0, look=look).verdicts} for look in (found, sure))
    assert not any("Edges tell next to nothing" in why for why in vague)
    assert all("Edges tell next to nothing" in why for why in told)
