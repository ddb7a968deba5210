"""The free part: public nodes only, right noise, right table, and rules that follow from it."""

import inspect
import math
from dataclasses import replace

import pytest
import torch

import gcon
from gcon.choose import advise, noise_facts, public_facts
from gcon.choose.advice import USES
from gcon.choose.advice_words import in_words
from gcon.choose.expectations import intervals
from gcon.choose.noise_levels import look_error
from gcon.errors import InputError
from gcon.learn.edge_free import learn_without_edges
from gcon.mechanisms.counts import NeighbourCounts
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_release import NoisyRelease, gaussian_plan
from gcon.mechanisms.mixed_release import mixed_plan
from gcon.methods.graph_facts import counted_rows
from gcon.methods.moments import ANSWERS_SHARE, FIRST_SHARE, HEARD, Moments, counted_share
from gcon.nodes import PublicNodes
from gcon_lab.methods.fitted import fit


@pytest.fixture(scope="module")
def nodes():
    return gcon.datasets.social_circles(400, feature_signal=1.5, seed=1).nodes


@pytest.fixture(scope="module")
def facts(nodes):
    return public_facts(nodes)


@pytest.mark.parametrize("function", [advise, public_facts])
def test_there_is_no_argument_that_could_hold_an_edge(function):
    hints = inspect.get_annotations(function, eval_str=True)
    assert hints["nodes"] is PublicNodes
    allowed = {"nodes", "epsilon", "delta", "access", "look", "mean_degree", "protect_edges", "return"}
    assert set(hints) <= allowed


def test_facts_are_those_of_the_public_nodes(nodes, facts):
    answers = learn_without_edges(nodes, seed=0).answers
    checked = nodes.validation_mask
    assert facts.labels_a_class == (20, 20, 20, 20)
    assert (facts.num_nodes, facts.num_classes, facts.num_features) == (400, 4, 32)
    assert facts.num_validation == int(checked.sum())
    right = (answers.argmax(dim=1) == nodes.labels)[checked].double().mean()
    assert facts.edge_free_accuracy == pytest.approx(float(right))
    assert 0 < facts.edge_free_strength < facts.edge_free_accuracy < 1
    assert 1 / 32 < facts.leading_variance < 1


def test_test_labels_change_nothing(nodes, facts):
    other = nodes.labels.clone()
    other[nodes.test_mask] = (other[nodes.test_mask] + 1) % 4
    assert public_facts(replace(nodes, labels=other)) == facts


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 3.0, 4.0])
def test_the_noise_is_what_the_releases_would_add(nodes, facts, epsilon, asked):
    facts = replace(facts, num_validation=1500 if asked else 0)  # so many are worth a count from epsilon 2 on
    share = counted_share(epsilon, facts.num_validation)
    assert (share > 0) == (asked and epsilon >= 2)
    found = noise_facts(facts, epsilon=epsilon, delta=1e-5)
    rows = learn_without_edges(nodes, seed=0).rows.double()
    plan = mixed_plan(epsilon, 1e-5, first_share=FIRST_SHARE, answer_share=share, method="test")

    def deviation(statistic, share, plan):
        return NoisyRelease(plan=plan, statistic=statistic, share=share).record["standard_deviation"]

    assert found.moments == pytest.approx(deviation(EdgeMoments(rows), 1 - ANSWERS_SHARE, plan), rel=1e-5)
    table = NeighbourCounts(codes=torch.zeros(400, dtype=torch.int64), num_codes=4, rate=plan.rates[0])
    assert found.counts == table.record["standard_deviation"]
    assert found.heard_degree == pytest.approx(HEARD * found.counts)
    assert found.heard_edges == pytest.approx(found.moments / 2 / facts.leading_variance)
    sure = torch.eye(4, dtype=torch.float64).repeat(100, 1)
    look = gaussian_plan(epsilon, 1e-5, method="test")
    expected = deviation(EdgeMoments(counted_rows(sure)), 1.0, look) / 0.09 / 400
    assert look_error(400, epsilon=epsilon, delta=1e-5) == pytest.approx(expected, rel=1e-6)


def test_without_validation_nodes_there_is_less_noise(facts):
    """Nothing is spent on a count of their right answers; few are not counted either."""
    many, few, none = (
        noise_facts(replace(facts, num_validation=count), epsilon=1.0, delta=1e-5) for count in (1800, 500, 0)
    )
    assert few == none
    assert none.counts < many.counts
    assert none.moments < many.moments


def test_without_a_promise_there_is_no_noise(facts):
    found = noise_facts(facts, epsilon=math.inf, delta=1e-5)
    assert (found.moments, found.counts, found.heard_degree, found.heard_edges) == (0, 0, 0, 0)


def test_noise_falls_with_the_budget(facts):
    few, many = (noise_facts(facts, epsilon=epsilon, delta=1e-5) for epsilon in (0.5, 4.0))
    assert few.moments > many.moments > 0
    assert few.heard_degree > many.heard_degree > 0


@pytest.mark.slow
def test_heard_degree_is_where_the_method_turns_to_counts():
    """Around the degree that is told, the ledger-paid method itself chooses the other stage."""
    epsilon = 4.0
    stages = []
    for factor in (0.6, 1.6):
        found = noise_facts(_some_facts(), epsilon=epsilon, delta=1e-5)
        graph = gcon.datasets.social_circles(800, mean_degree=factor * found.heard_degree, feature_signal=2.0, seed=2)
        trained = fit(Moments(epsilon=epsilon, delta=1e-5), graph)
        none, cached = (trained.predictions(graph, access=access).probabilities for access in ("none", "cached"))
        stages.append(not torch.equal(none, cached))
    assert stages == [False, True]


def _some_facts(**changes):
    given = {
        "num_nodes": 800,
        "num_features": 8,
        "num_classes": 4,
        "num_validation": 100,
        "labels_a_class": (20, 20, 20, 20),
        "neighbours_agree": 0.1,
        "edge_free_accuracy": 0.5,
        "edge_free_strength": 0.3,
        "leading_variance": 0.2,
    }
    return gcon.choose.PublicFacts(**(given | changes))


def test_nodes_that_do_not_differ_need_infinitely_many_edges():
    assert noise_facts(_some_facts(leading_variance=0.0), epsilon=1.0, delta=1e-5).heard_edges == math.inf


def test_without_a_look_every_access_has_intervals_and_no_stage(nodes, facts):
    advice = advise(nodes, epsilon=1.0)
    assert [verdict.access for verdict in advice.verdicts] == list(USES)
    for verdict in advice.verdicts[:3]:
        found = verdict.expectation
        assert found.distance is None
        assert found.least < found.gain < found.most
        assert 0 <= found.accuracy_least < found.accuracy < found.accuracy_most <= 1
        assert verdict.stage is None
    assert advice.verdicts[0].expectation.accuracy == pytest.approx(
        facts.edge_free_accuracy + advice.verdicts[0].expectation.gain
    )
    assert advice.look is None
    assert advice.enough == {}
    assert "No edge was read" in in_words(advice)
    other = advice.verdicts[3]
    assert (other.method, other.spend, other.expectation) == ("moments", "not measured", None)


def test_a_guessed_degree_tells_the_stage_and_what_cached_is(nodes):
    sparse, dense = (
        {each.access: each for each in advise(nodes, epsilon=1.0, mean_degree=degree).verdicts} for degree in (5, 60)
    )
    assert (sparse["cached"].stage, dense["cached"].stage) == ("moments", "counts")
    assert replace(sparse["cached"].expectation, access="none") == sparse["none"].expectation
    assert dense["cached"].expectation.gain > dense["none"].expectation.gain + 0.01
    assert dense["cached"].expectation.gain > sparse["cached"].expectation.gain
    assert "it gives what none gives" in sparse["cached"].why
    assert "mean degree of 60 was guessed" in in_words(advise(nodes, epsilon=1.0, mean_degree=60.0))


def test_more_protected_edges_are_a_smaller_budget_for_one(nodes):
    """Three at epsilon 3 have nearly the noise of one at a third of it, and so nearly the same advice."""
    three = advise(nodes, epsilon=3.0, mean_degree=60.0, protect_edges=3)
    one = advise(nodes, epsilon=three.noise[0].one_edge, mean_degree=60.0)
    assert 0.9 < three.noise[0].one_edge < 1.0
    assert three.noise[0].counts == pytest.approx(one.noise[0].counts, rel=0.05)
    for first, second in zip(three.verdicts[:3], one.verdicts[:3], strict=True):
        assert first.expectation == second.expectation
    assert "for any 3 edges together" in in_words(three)
    assert any("below epsilon 0.5" in said for said in advise(nodes, epsilon=1.0, protect_edges=5).remarks)


def test_the_words_say_how_often_intervals_held_and_how_long_it_takes(nodes):
    words = in_words(advise(nodes, epsilon=1.0, access="cached"))
    held = intervals()["nothing", "cached", "accuracy"].covered
    assert f"On real graphs that the table had not seen they held {100 * held:.0f} % (cached)." in words
    assert "A training takes about" in words
    assert "right (" in words


def test_with_many_labels_some_are_spared():
    """As training does, where nobody marked validation nodes."""
    big = gcon.datasets.social_circles(1200, feature_signal=1.5, seed=1).nodes
    every = torch.ones_like(big.train_mask)
    found = public_facts(replace(big, train_mask=every, validation_mask=~every, test_mask=~every))
    assert found.num_validation == 240
    assert sum(found.labels_a_class) == 960


def test_without_a_budget_all_measured_ones_are_discussed(nodes):
    advice = advise(nodes, access="cached")
    assert [verdict.epsilon for verdict in advice.verdicts] == [0.5, 1.0, 2.0, 3.0, 4.0]
    assert [noise.epsilon for noise in advice.noise] == [0.5, 1.0, 2.0, 3.0, 4.0]
    assert in_words(advice).count("cached (") == 1


def test_delta_is_the_usual_one_or_the_one_given(nodes):
    assert advise(nodes, epsilon=1.0).delta == 1e-5
    assert advise(nodes, epsilon=1.0, delta=1e-6).noise[0].delta == 1e-6


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": True}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 2.0}, "delta"),
        ({"access": "full"}, "access"),
        ({"access": "everything"}, "access"),
        ({"mean_degree": 0.0}, "mean_degree"),
        ({"mean_degree": math.inf}, "mean_degree"),
        ({"protect_edges": 11}, "protect_edges"),
        ({"protect_edges": 0}, "protect_edges"),
    ],
)
def test_wrong_arguments(nodes, wrong, words):
    with pytest.raises(InputError, match=words):
        advise(nodes, **({"epsilon": 1.0} | wrong))


def test_without_validation_nodes_training_nodes_judge(nodes, facts):
    """As in training: each by what its own label did not teach, and the advice says how far that goes."""
    bare = replace(nodes, validation_mask=torch.zeros_like(nodes.validation_mask))
    found, advice = public_facts(bare), advise(bare, epsilon=4.0)
    ensemble = learn_without_edges(bare, seed=0).ensemble
    right = ensemble.judged.argmax(dim=1) == nodes.labels[nodes.train_mask]
    assert (found.num_validation, found.num_checked) == (0, 80)
    assert found.edge_free_accuracy == pytest.approx(float(right.double().mean()))
    assert found.edge_free_accuracy < float(
        (ensemble.answers.argmax(dim=1) == nodes.labels)[nodes.train_mask].double().mean()
    )
    assert facts.num_checked == facts.num_validation
    assert advice.noise[0] == noise_facts(found, epsilon=4.0, delta=1e-5)  # nothing is spent on a count
    words = in_words(advice)
    assert "of the labelled nodes, each without what its own label taught" in words
    assert "No validation nodes" in words
    assert "No validation nodes" not in in_words(advise(nodes, epsilon=4.0))
    assert 0 <= advice.verdicts[0].expectation.accuracy_least < advice.verdicts[0].expectation.accuracy_most <= 1
