"""`gcon plan` for the default: the noise that training would add, for one edge or several, and options that do not mix."""

import json

import pytest

from gcon.mechanisms.counts import geometric_deviation
from gcon.mechanisms.mixed_release import mixed_plan
from gcon.methods.moments import FEATURES_SHARE, FIRST_SHARE, HEARD, counted_share


def told(run, *arguments):
    code, out, _ = run("plan", *arguments, "--json")
    return code, json.loads(out)


@pytest.mark.parametrize("edges", [1, 5])
def test_the_noise_is_that_of_the_plan_of_a_training(run, edges):
    code, said = told(run, "--epsilon", 1, "--delta", 1e-6, "--protect-edges", edges)
    plan = mixed_plan(1.0, 1e-6, first_share=FIRST_SHARE, answer_share=0.0, method="moments", protect_edges=edges)
    assert code == 0
    assert (said["method"], said["protect_edges"], said["delta"]) == ("moments", edges, 1e-6)
    assert [said["counts"], said["counts_of_two"]] == [geometric_deviation(rate) for rate in plan.rates]
    assert said["heard_degree"] == HEARD * said["counts"]
    assert said["first_moments"] == pytest.approx(2 / plan.distance / FEATURES_SHARE**0.5)
    assert said["by_edges"] == {str(number): budget.epsilon for number, budget in plan.by_edges().items()}
    assert said["by_edges"][str(edges)] == 1.0


def test_more_protected_edges_make_more_noise(run):
    one, five = (told(run, "--epsilon", 1, "--protect-edges", edges)[1] for edges in (1, 5))
    for name in ("first_moments", "answer_moments", "moments", "counts", "counts_of_two"):
        assert five[name] > 2 * one[name] > 0
    assert one["right_answers"] == five["right_answers"] == 0
    assert told(run, "--epsilon", 4)[1]["right_answers"] > 0
    assert five["best_advantage"] < one["best_advantage"]  # of a guess about one edge


@pytest.mark.parametrize("nodes", [0, 100, 2000])
def test_the_plan_is_that_of_a_training_with_so_many_validation_nodes(run, nodes):
    code, said = told(run, "--epsilon", 1, "--validation-nodes", nodes)
    share = counted_share(1.0, nodes)
    plan = mixed_plan(1.0, 1e-5, first_share=FIRST_SHARE, answer_share=share, method="moments")
    assert (code, said["validation_nodes"], share > 0) == (0, nodes, nodes == 2000)
    assert said["counts"] == geometric_deviation(plan.rates[0])
    assert (said["right_answers"] > 0) == (share > 0)
    assert ("none: 100 nodes are too few" in run("plan", "--epsilon", 1, "--validation-nodes", nodes)[1]) == (
        nodes == 100
    )
    assert told(run, "--epsilon", 1)[1] == told(run, "--epsilon", 1, "--validation-nodes", 500)[1]


def test_the_plan_with_many_labels(run):
    code, said = told(run, "--epsilon", 1, "--many-labels")
    plan = mixed_plan(1.0, 1e-5, first_share=FIRST_SHARE, answer_share=0.0, method="moments", one_way=True)
    assert (code, said["many_labels"], said["counts_of_two"], said["loud_degree"]) == (0, True, None, None)
    assert [said["counts"], said["counts_one_way"]] == [geometric_deviation(rate) for rate in plan.rates]
    assert said["by_edges"] == {str(number): budget.epsilon for number, budget in plan.by_edges().items()}
    few = told(run, "--epsilon", 1)[1]
    assert (few["many_labels"], few["counts_one_way"]) == (False, None)
    assert few["by_edges"]["2"] < said["by_edges"]["2"]
    _, out, _ = run("plan", "--epsilon", 1, "--many-labels")
    assert "a count of labelled neighbours alone   1.706" in out
    assert "13.8 on, and labelled ones alone if\nthat tells more" in out
    assert "two tables" not in out


def test_in_words(run):
    _, out, _ = run("plan", "--epsilon", 1)
    assert "Neighbours are counted from a mean degree of 13.8 on" in out
    assert "count of right validation answers      none: 500 nodes are too few for it" in out
    assert "too few" not in run("plan", "--epsilon", 4)[1]
    assert "Epsilon is 1 for one edge; the same noise promises epsilon 2.039 for any 2 together" in out
    assert "73.1 % of the time" in out
    assert "Nothing is promised" in run("plan", "--epsilon", "inf")[1]


@pytest.mark.parametrize("more", [[], ["--method", "paper", "--classes", 7, "--dim", 16, "--labelled", 2995]])
def test_a_promise_that_says_little_is_said_to(run, more):
    little = "promises little: for one edge the odds may change by a factor of e^epsilon = 22100."
    assert run("plan", "--epsilon", 10, *more)[1].splitlines()[-1].endswith(little)
    assert "for any 3 edges together the odds" in run("plan", "--epsilon", 10, "--protect-edges", 3, *more)[1]
    for epsilon in (9.9, "inf"):
        assert "little" not in run("plan", "--epsilon", epsilon, *more)[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--protect-edges", 11], "protect_edges"),
        (["--protect-edges", 0], "protect_edges"),
        (["--protect-edges", 11, "--method", "paper"], "protect_edges"),
        (["--classes", 7], "classes"),
        (["--validation-nodes", -1], "validation_nodes"),
        (["--validation-nodes", 9, "--method", "paper", "--classes", 7], "validation_nodes"),
        (["--many-labels", "--method", "paper", "--classes", 7], "many_labels"),
        (["--restart", 0.8], "restart"),
        (["--method", "paper", "--dim", 16, "--labelled", 100], "classes"),
        (["--method", "other"], "method"),
        (["--epsilon", 0], "epsilon"),
        (["--delta", 0], "delta"),
    ],
)
def test_what_does_not_fit_is_refused(run, arguments, words):
    code, said = told(run, "--epsilon", 1, *arguments)
    assert code == said["exit_code"] == 2
    assert words in said["message"]
