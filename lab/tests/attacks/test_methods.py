"""Attacks on trained methods of a small synthetic graph: what leaks, what does not, and that the transcript holds everything."""

import math

import pytest
import torch

import gcon.methods.moments as moments
from gcon.files.datasets.synthetic import social_circles
from gcon.privacy.account import transcript
from gcon.privacy.gates import declassify
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness, SystemRandomness
from gcon_lab.attacks.black_box import Similarity
from gcon_lab.attacks.canaries import guess
from gcon_lab.attacks.roc import roc_of
from gcon_lab.attacks.view import View
from gcon_lab.attacks.white_box import NoisyMoments, NoisyNumber, NoisyTable, WhiteBox
from gcon_lab.experiments.attacks.attacked import ATTACKED, Gcon, is_spending, reads_edges, reference_of
from gcon_lab.experiments.attacks.clues import clues, released_clues
from gcon_lab.experiments.attacks.measure import RELEASED, attack_all, canary_run, sample
from gcon_lab.methods import DPSGD, GAP, GCN, MLP, LPGNet, Moments
from gcon_lab.methods.fitted import fit

pytestmark = pytest.mark.slow

ALARM = 1e-6


@pytest.fixture(scope="module")
def graph():
    return social_circles(
        400, num_classes=3, mean_degree=4, feature_signal=2.0, num_validation=60, num_test=100, seed=2
    )


@pytest.fixture(scope="module")
def edges(graph):
    return declassify(graph.edges, reason="a made-up graph", ledger=MemoryLedger("test"))


@pytest.fixture(scope="module")
def drawn(edges):
    return sample(edges, many=200)


def areas(method, graph, edges, drawn):
    with transcript() as lines:
        fitted = fit(method, graph, randomness=SeededRandomness(1))
    features = graph.nodes.features
    found = attack_all(fitted.trained.score_functions, features, edges, drawn, released=clues(lines))
    return {(each.access, each.attack): each.roc.area for each in found}


def test_influence_undresses_the_non_private_gcn(graph, edges, drawn):
    found = areas(GCN(), graph, edges, drawn)
    assert found["full", "influence"] > 0.95
    assert not any(access == RELEASED for access, _ in found)


def test_the_reference_knows_what_features_tell_and_no_more(graph, edges, drawn):
    found = areas(MLP(), graph, edges, drawn)
    rows = graph.nodes.features
    truth = torch.nn.functional.one_hot(graph.nodes.labels, 3).double()
    classes = View(features=rows, posteriors=truth)
    own = roc_of(Similarity().scores(classes, drawn.many.pairs), drawn.many.linked).area
    assert found["none", "influence"] == 0.5
    assert 0.6 < found["none", "similarity-cosine"] < own + 0.05  # homophily: alike, hence linked


def test_own_edges_answers_give_the_edge_away_and_released_ones_do_not(graph, edges, drawn):
    for method in (GAP(epsilon=1.0), Gcon(epsilon=1.0)):
        found = areas(method, graph, edges, drawn)
        assert found["own-edges", "replay"] > 0.99
        assert found[RELEASED, "white-box"] < 0.8
    assert found["own-edges", "influence"] > 0.99  # GCON encodes whatever it is asked with
    assert found["none", "influence"] == 0.5


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ATTACKED if is_spending(name) and name not in ("moments", "dp-sgd")])
def test_without_noise_the_white_box_attack_wins_so_the_transcript_is_right(name, graph, edges, drawn):
    found = areas(ATTACKED[name](epsilon=float("inf")), graph, edges, drawn)
    assert found[RELEASED, "white-box"] > 0.99


@pytest.mark.slow
def test_dp_sgd_without_noise_tells_the_edges_of_labelled_nodes(graph, edges, drawn):
    with transcript() as lines:
        fit(DPSGD(epsilon=float("inf")), graph)
    touched = drawn.many.part(graph.nodes.train_mask[drawn.many.pairs].any(dim=1))
    view = View(features=graph.nodes.features, posteriors=graph.nodes.features, released=clues(lines))
    assert roc_of(WhiteBox((edges,)).scores(view, touched.pairs), touched.linked).area > 0.99


@pytest.fixture
def counted(monkeypatch):
    """The validation nodes of these small graphs are too few for a count of right answers: here it is bought all the same."""
    monkeypatch.setattr(moments, "counted_share", lambda epsilon, asked, **_: moments.MOST_COUNTED if asked else 0.0)


@pytest.mark.usefixtures("counted")
def test_what_the_default_releases_is_heard_line_by_line(graph):
    with transcript() as lines:
        fit(Moments(epsilon=1.0), graph, randomness=SeededRandomness(1))
    assert [type(each) for each in clues(lines)] == [NoisyMoments, NoisyMoments, NoisyMoments, NoisyNumber]


@pytest.fixture(scope="module")
def dense():
    return social_circles(
        300, num_classes=3, mean_degree=40, feature_signal=1.5, num_validation=60, num_test=100, seed=2
    )


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("rounds", [1, 2])
def test_tables_in_a_release_are_heard_as_in_its_transcript(dense, rounds, monkeypatch):
    monkeypatch.setattr(moments, "LOUD", 0.0 if rounds == 2 else math.inf)
    monkeypatch.setattr(moments, "UNSURE", 1.0)
    with transcript() as lines:
        fitted = fit(Moments(epsilon=2.0), dense, randomness=SeededRandomness(1))
    heard, rebuilt = clues(lines), released_clues(fitted.trained, dense.nodes)
    assert [type(each) for each in heard] == [NoisyMoments, NoisyMoments, *[NoisyTable] * rounds, NoisyNumber]
    edges = declassify(dense.edges, reason="a made-up graph", ledger=MemoryLedger("test"))
    pairs = sample(edges, many=40).few.pairs
    for one, other in zip(heard, rebuilt, strict=True):
        told = [[each.log_ratio(edges, (first, second)) for first, second in pairs.tolist()] for each in (one, other)]
        assert told[0] == pytest.approx(told[1])
        assert any(told[0]) or isinstance(one, NoisyNumber)  # few pairs change the count of right answers
    assert heard[-1]._of(edges) == rebuilt[-1]._of(edges) > 0


def test_every_method_that_reads_edges_has_a_reference_that_does_not():
    for name in ATTACKED:
        for access in ("none", "cached", "own-edges", "full"):
            found = reference_of(name, access)
            assert (found is None) == (not reads_edges(name))
            assert found is None or not reads_edges(found[0])
    assert reference_of("gap", RELEASED) is None


def canaries(method, graph, edges, randomness):
    found = canary_run(method, graph.nodes, edges, canaries=100, seed=7, randomness=randomness)
    return {(each.access, each.attack): each for each in found}


def test_a_non_private_method_passed_off_as_private_is_caught(graph, edges):
    found = canaries(GCN(), graph, edges, SeededRandomness(1))["full", "influence"]
    assert not found.covered
    assert found.guesses.p_value(1.0, 1e-9) < ALARM


def test_an_honest_method_passes_whatever_the_noise(graph, edges):
    found = canaries(LPGNet(epsilon=1.0, epochs=20), graph, edges, SystemRandomness())
    covered = [each for each in found.values() if each.covered]
    assert {each.access for each in covered} == {"cached", RELEASED}
    for each in covered:
        assert each.guesses.p_value(1.0, 0.0) >= ALARM / len(covered)


def test_own_edges_answers_tell_the_coins_and_are_not_covered(graph, edges):
    found = canaries(LPGNet(epsilon=1.0, epochs=20), graph, edges, SeededRandomness(1))["own-edges", "replay"]
    assert not found.covered
    assert found.guesses.p_value(1.0, 0.0) < ALARM


def test_a_method_that_forgets_its_noise_is_caught(graph, edges):
    found = canaries(LPGNet(epsilon=float("inf"), epochs=20), graph, edges, SeededRandomness(1))[RELEASED, "white-box"]
    assert found.guesses.right == found.guesses.made
    assert found.guesses.p_value(1.0, 0.0) < ALARM


def test_counts_keep_the_promise_with_noise_and_not_without(graph, edges, monkeypatch):
    monkeypatch.setattr(moments, "HEARD", 0.0)  # canaries need a sparse graph, where counts would not be released
    honest, bare = (
        canaries(Moments(epsilon=epsilon, delta=1e-5), graph, edges, SystemRandomness())[RELEASED, "white-box"]
        for epsilon in (1.0, math.inf)
    )
    assert honest.covered
    assert honest.guesses.p_value(1.0, 1e-5) >= ALARM
    assert bare.guesses.p_value(0.5, 0.0) < ALARM


def test_guesses_of_nothing_are_coins(edges):
    inserted = torch.rand(1000, generator=torch.Generator().manual_seed(1)) < 0.5
    assert 200 < guess(torch.zeros(1000), inserted, 500).right < 300
