"""The free part: public nodes only, right noise, right table, and rules that follow from it."""

import csv
import inspect
import math
from dataclasses import replace
from importlib.resources import files

import pytest
import torch

import gcon
from gcon.choose import advise, noise_facts, public_facts
from gcon.choose import expectations as table
from gcon.choose.advice import USES
from gcon.choose.advice_words import in_words
from gcon.choose.noise_levels import look_error
from gcon.errors import InputError
from gcon.learn.edge_free import learn_without_edges
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_release import gaussian_plan
from gcon.mechanisms.mixed_release import mixed_plan
from gcon.methods.graph_facts import counted_rows
from gcon.methods.moments import ANSWERS_SHARE, COUNTED_SHARE, FIRST_SHARE, HEARD, Moments
from gcon.nodes import PublicNodes
from gcon_lab.experiments.advice import Grid, measure, write


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
    allowed = {"nodes", "epsilon", "delta", "access", "look", "return"}
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
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_the_noise_is_what_the_releases_would_add(nodes, facts, epsilon, asked):
    facts = facts if asked else replace(facts, num_validation=0)
    found = noise_facts(facts, epsilon=epsilon, delta=1e-5)
    rows = learn_without_edges(nodes, seed=0).rows.double()
    plan = mixed_plan(
        epsilon, 1e-5, first_share=FIRST_SHARE, answer_share=COUNTED_SHARE if asked else 0.0, method="test"
    )

    def deviation(statistic, share, plan):
        return plan.noisy(statistic, share=share).public_record()["standard_deviation"]

    assert found.moments == pytest.approx(deviation(EdgeMoments(rows), 1 - ANSWERS_SHARE, plan.gaussian), rel=1e-5)
    table = plan.counts(torch.zeros(400, dtype=torch.int64), 4, rounds=1)
    assert found.counts == table.public_record()["standard_deviation"]
    assert found.heard_degree == pytest.approx(HEARD * found.counts)
    assert found.heard_edges == pytest.approx(found.moments / 2 / facts.leading_variance)
    sure = torch.eye(4, dtype=torch.float64).repeat(100, 1)
    look = gaussian_plan(epsilon, 1e-5, method="test")
    expected = deviation(EdgeMoments(counted_rows(sure)), 1.0, look) / 0.09 / 400
    assert look_error(400, epsilon=epsilon, delta=1e-5) == pytest.approx(expected, rel=1e-6)


def test_without_validation_nodes_there_is_less_noise(facts):
    """Nothing is spent on a count of their right answers."""
    some, none = (noise_facts(each, epsilon=1.0, delta=1e-5) for each in (facts, replace(facts, num_validation=0)))
    assert none.counts < some.counts
    assert none.moments < some.moments


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
        trained = Moments(epsilon=epsilon, delta=1e-5).fit(graph)
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


def test_without_a_look_gains_are_ranges_over_all_measured_edges(nodes, facts):
    advice = advise(nodes, epsilon=1.0)
    assert [verdict.access for verdict in advice.verdicts] == list(USES)
    for verdict in advice.verdicts[:3]:
        assert verdict.expectation.distance is None
        assert verdict.expectation.least < verdict.expectation.gain < verdict.expectation.most
        assert verdict.stage is None
    assert advice.look is None
    assert advice.enough == {}
    assert "No edge was read" in in_words(advice)
    other = advice.verdicts[3]
    assert (other.method, other.spend, other.expectation) == ("moments", "not measured", None)


def test_without_a_budget_all_measured_ones_are_discussed(nodes):
    advice = advise(nodes, access="cached")
    assert [verdict.epsilon for verdict in advice.verdicts] == [0.5, 1.0, 4.0]
    assert [noise.epsilon for noise in advice.noise] == [0.5, 1.0, 4.0]
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
    ],
)
def test_wrong_arguments(nodes, wrong, words):
    with pytest.raises(InputError, match=words):
        advise(nodes, **({"epsilon": 1.0} | wrong))


def test_validation_nodes_are_needed(nodes):
    with pytest.raises(InputError, match="validation nodes"):
        advise(replace(nodes, validation_mask=torch.zeros_like(nodes.validation_mask)), epsilon=1.0)


class TestTable:
    def test_it_is_the_grid_of_the_command(self):
        grid, entries = Grid(), table.measured()
        accesses = 3
        sizes = [len(part) for part in (grid.degrees, grid.homophilies, grid.signals, grid.epsilons)]
        assert len(entries) == math.prod(sizes) * accesses
        assert {entry.runs for entry in entries} == {grid.runs}
        assert {entry.mean_degree for entry in entries} == set(grid.degrees)
        assert table.measured_epsilons() == tuple(grid.epsilons)
        assert all(math.isfinite(entry.standard_error) for entry in entries)
        assert all(-1 <= entry.gain_over_best <= entry.gain <= 1 for entry in entries)
        assert all(entry.gain_over_best == entry.gain for entry in entries if entry.access != "own-edges")

    def test_it_travels_with_the_package(self):
        lines = files("gcon.choose").joinpath("expectations.csv").read_text().splitlines()
        assert tuple(next(csv.reader(lines))) == table.COLUMNS

    def test_it_says_what_the_docs_say(self):
        """docs/choosing.md names these gains at epsilon 1, in points."""
        at_one = [entry for entry in table.measured() if entry.epsilon == 1]
        most = {
            access: max(e.gain_over_best for e in at_one if e.access == access) for access in USES if access[0] != "p"
        }
        assert {access: round(100 * gain) for access, gain in most.items() if access != "own-edges"} == {
            "none": 8,
            "cached": 46,
        }
        weak = [e for e in at_one if e.edge_free_strength < 0.3 and e.access == "own-edges"]
        alike = [e for e in weak if e.homophily_above_chance > 0.2 and e.mean_degree >= 30]
        assert sorted(round(100 * entry.gain_over_best) for entry in alike) == [4, 7, 14, 18]
        apart = [e for e in weak if e.homophily_above_chance < -0.2 and e.mean_degree >= 30]
        assert all(entry.gain_over_best > 0.15 for entry in apart)
        assert round(100 * min(entry.gain_over_best for entry in weak)) == -8
        strong = [e for e in at_one if e.edge_free_strength > 0.8 and e.mean_degree == 3 and e.access == "none"]
        assert max(entry.gain for entry in strong) < 0.0055

    def test_a_measured_graph_is_found_again(self):
        for entry in table.measured()[::37]:
            found = _lookup(entry)
            nearby = found.most - found.least
            assert found.distance == pytest.approx(0, abs=1e-12)
            assert found.gain == pytest.approx(entry.gain_over_best, abs=1e-3 + 0.03 * nearby)
            assert found.least <= found.gain <= found.most

    def test_between_two_budgets_the_gain_lies_between(self):
        entry = next(e for e in table.measured() if (e.mean_degree, e.access, e.epsilon) == (80, "cached", 1.0))
        gains = [_lookup(entry, epsilon=epsilon).gain for epsilon in (1.0, 2.0, 4.0, 100.0)]
        assert gains[1] == pytest.approx((gains[0] + gains[2]) / 2)
        assert gains[3] == gains[2]
        assert _lookup(entry, epsilon=0.01).gain == _lookup(entry, epsilon=0.5).gain

    def test_far_graphs_say_how_far(self):
        entry = table.measured()[0]
        far = _lookup(entry, mean_degree=800.0)
        assert far.distance > 0.9
        assert _lookup(entry, mean_degree=-5.0).distance < math.inf

    @pytest.mark.slow
    def test_the_command_writes_such_a_table(self, tmp_path):
        grid = Grid(num_nodes=200, runs=2, degrees=(5,), homophilies=(0.8,), signals=(2.0,), epsilons=(1.0, 4.0))
        write(tmp_path / "t.csv", measure(grid))
        lines = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
        assert [(line["epsilon"], line["access"]) for line in lines] == [
            (epsilon, access) for epsilon in ("1", "4") for access in ("none", "cached", "own-edges")
        ]
        assert tuple(lines[0]) == table.COLUMNS
        assert list(measure(grid)) == lines


def _lookup(entry, **changes):
    given = {
        "mean_degree": entry.mean_degree,
        "above_chance": entry.homophily_above_chance,
        "strength": entry.edge_free_strength,
        "epsilon": entry.epsilon,
        "access": entry.access,
    }
    return table.expected_gain(**(given | changes))
