"""Class sums, private self-training, and GCON with other mechanisms: what is charged, released and read, and an audit."""

import copy
import dataclasses
import itertools
import math
from functools import lru_cache

import numpy as np
import pytest
import torch
from torch.nn.functional import one_hot

from gcon.edges.edge_list import public_edges
from gcon.edges.graph import PrivateGraph, PublicGraph, private_graph
from gcon.edges.schemes import Schemes, propagate
from gcon.errors import AccessRefusedError
from gcon.files.datasets import social_circles_parts
from gcon.learn.perceptron import EncoderSettings
from gcon.mechanisms.gaussian_curve import gaussian_multiplier
from gcon.mechanisms.gaussian_release import gaussian_plan
from gcon.methods.objective import Objective
from gcon.nodes import PublicNodes
from gcon.privacy.account import transcript
from gcon.privacy.boundary import Private
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import Kind, MemoryLedger
from gcon.privacy.randomness import SeededRandomness, SystemRandomness
from gcon_lab.audits.empirical import epsilon_bound
from gcon_lab.mechanisms.bilinear_sums import BilinearSums
from gcon_lab.mechanisms.class_sums import ClassSums
from gcon_lab.mechanisms.output_perturbation import OutputPerturbation
from gcon_lab.methods import (
    METHODS,
    ClassSumsMethod,
    GaussianObjectiveMethod,
    OutputPerturbationMethod,
    SelfTrainingRounds,
    class_sums,
    self_training_rounds,
)
from gcon_lab.methods.linear_models import discriminant
from gcon_lab.methods.self_training_rounds import ROUNDS

SIZE, CLASSES = 120, 3
NODES, EDGE_INDEX = social_circles_parts(
    SIZE, num_classes=CLASSES, per_class=8, num_validation=30, num_test=50, feature_signal=2.5, homophily=0.9, seed=2
)
FROM_STATISTICS = (ClassSumsMethod, SelfTrainingRounds)
CONVEX = (GaussianObjectiveMethod, OutputPerturbationMethod)
KINDS = FROM_STATISTICS + CONVEX
WITHOUT_ONE = EDGE_INDEX[:, 1:]


def graph(edge_index=EDGE_INDEX, **other):
    return private_graph(dataclasses.replace(NODES, **other), edge_index, name="circles")


def fitted_on(kind, given, *, epsilon=2.0, randomness=None, ledger=None):
    method = kind(epsilon=epsilon, delta=1e-4, hidden=8, epochs=40)
    noise = SeededRandomness(1) if randomness is None else randomness
    return method.fit(given, ledger=ledger, randomness=noise)


def probabilities(fitted, given, access):
    return fitted.predictions(given, access=access).probabilities


@pytest.fixture
def releases():
    """What was released, line by line of the transcript."""
    with transcript() as lines:
        yield lines


@pytest.mark.parametrize("kind", KINDS)
def test_charged_once_and_predictions_cost_nothing(kind):
    assert METHODS[kind.name] is kind
    ledger = MemoryLedger("circles")
    fitted = fitted_on(kind, graph(), randomness=SystemRandomness(), ledger=ledger)
    (entry,) = ledger.entries()
    assert entry.request.cost == ledger.total() == fitted.receipts[0].budget == Budget(2.0, 1e-4)
    if kind is not GaussianObjectiveMethod:  # whose weights are no Gaussian release
        assert entry.request.gaussian_distance == pytest.approx(1 / gaussian_multiplier(2.0, 1e-4), rel=1e-9)
    for access in ("none", "own-edges"):
        fitted.predict(graph(), access=access)
        fitted.score(graph(), NODES.test_mask, access=access)
    kinds = [each.request.kind for each in ledger.entries()]
    assert kinds == [Kind.RELEASE, Kind.DELIVERY, Kind.DIAGNOSTIC]
    assert ledger.total() == Budget(2.0, 1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_every_access_is_the_classifier_on_other_rows(kind):
    fitted = fitted_on(kind, graph())
    assert set(fitted.trained.score_functions) == {"own-edges", "none", "public-graph"}
    score = fitted.trained.score_functions
    lonely = public_edges(EDGE_INDEX[:, :0], SIZE)
    alone = score["none"](NODES.features, None)
    for access in ("own-edges", "public-graph"):  # without an edge there is nothing to hear
        assert torch.allclose(score[access](NODES.features, lonely), alone)
    # Scores are linear in the rows, so that one hop averages them too.
    edges = public_edges(EDGE_INDEX, SIZE)
    restart = Objective(epsilon=1.0).inference_restart if kind in CONVEX else class_sums.INFERENCE_RESTART
    averaged = propagate(edges, alone, Schemes(restart=restart, steps=(1,)))
    assert torch.allclose(score["own-edges"](NODES.features, edges), averaged)
    for access in ("cached", "full"):
        with pytest.raises(AccessRefusedError):
            fitted.predict(graph(), access=access)


@pytest.mark.parametrize("kind", KINDS)
def test_a_public_graph_is_another_one(kind):
    fitted = fitted_on(kind, graph())
    with pytest.raises(AccessRefusedError, match="its edges are private"):
        fitted.predict(PublicGraph(NODES.features, public_edges(EDGE_INDEX, SIZE)), access="public-graph")
    others = PublicGraph(NODES.features[:50] + 0.1, public_edges(EDGE_INDEX[:, :0], 50))
    assert len(fitted.predict(others, access="public-graph")) == 50


@pytest.mark.parametrize("kind", KINDS)
def test_beyond_what_is_released_only_own_edges_are_read(releases, monkeypatch, kind):
    """The same released numbers for two graphs: nothing but the answers to those whose edges differ may change."""
    one, two = graph(), graph(WITHOUT_ONE)
    fitted = fitted_on(kind, one)
    left = itertools.cycle([line.value for line in releases])
    monkeypatch.setattr("gcon.privacy.account.apply_private", lambda function, private: next(left))
    again = fitted_on(kind, two)
    assert torch.equal(probabilities(fitted, one, "none"), probabilities(again, two, "none"))
    moved = (probabilities(fitted, one, "own-edges") != probabilities(again, two, "own-edges")).any(dim=1)
    assert set(moved.nonzero()[:, 0].tolist()) == set(EDGE_INDEX[:, 0].tolist())
    shut = PrivateGraph(NODES, Private(object(), "edges that cannot be read"), one.hygiene, "circles")
    assert torch.equal(probabilities(fitted_on(kind, shut), one, "none"), probabilities(fitted, one, "none"))


@pytest.mark.parametrize("kind", FROM_STATISTICS)
def test_the_noise_of_all_rounds_is_what_the_budget_asks_for(releases, kind):
    fitted_on(kind, graph())
    released = [line.value for line in releases]
    assert len(released) == (1 if kind is ClassSumsMethod else ROUNDS)
    assert math.fsum(each.share for each in released) == pytest.approx(1.0, abs=1e-12)
    multiplier = gaussian_multiplier(2.0, 1e-4)
    for each in released:
        expected = each.sensitivity * multiplier / math.sqrt(each.share)
        assert each.standard_deviation == pytest.approx(expected, rel=1e-9)
    spent = sum((each.sensitivity / each.standard_deviation) ** 2 for each in released)
    assert spent <= multiplier**-2


@pytest.mark.parametrize("kind", KINDS)
def test_without_noise_one_edge_moves_the_release_by_no_more_than_the_sensitivity(releases, kind):
    for given in (graph(), graph(WITHOUT_ONE)):
        assert fitted_on(kind, given, epsilon=math.inf).no_promise
    lines = [releases[: len(releases) // 2], releases[len(releases) // 2 :]]
    first, second = ([line.value for line in part] for part in lines)
    if kind in FROM_STATISTICS:  # in later rounds the answers differ too
        change, bound = first[0].value - second[0].value, first[0].sensitivity
        assert [each.standard_deviation for each in first] == [0.0] * len(first)
    else:
        (first,), (second,) = first, second
        change, bound = first - second, math.inf
    if kind is OutputPerturbationMethod:
        bound = releases[0].mechanism.plans[0].sensitivity
    assert 0 < float(torch.linalg.vector_norm(change)) <= bound


@pytest.mark.parametrize("kind", CONVEX)
def test_without_noise_it_is_gcon_without_noise(releases, kind):
    kind(epsilon=math.inf, epochs=40).fit(graph())
    settings = Objective(epsilon=math.inf, encoder=EncoderSettings(epochs=40), device="cpu")
    given = graph()
    model = settings.train(given.nodes, given.edges, ledger=MemoryLedger("circles"), randomness=SystemRandomness())
    assert torch.allclose(releases[0].value[0], model.weights, atol=1e-7)
    assert (kind is OutputPerturbationMethod) == isinstance(releases[0].mechanism, OutputPerturbation)


def test_each_round_is_taught_by_what_was_released_before(releases, monkeypatch):
    """The rounds again, with another first release: the second one is about other answers."""
    fitted_on(SelfTrainingRounds, graph())
    first, second = list(releases)
    assert [line.mechanism.share for line in (first, second)] == pytest.approx([1 / ROUNDS] * ROUNDS)
    lonely = public_edges(EDGE_INDEX[:, :0], SIZE)

    def second_statistic(value):
        given = iter([value, second.value])
        monkeypatch.setattr("gcon.privacy.account.apply_private", lambda function, private: next(given))
        fitted_on(SelfTrainingRounds, graph())
        return releases[-1].mechanism.statistic.of(lonely)

    turned = dataclasses.replace(first.value, value=first.value.value.roll(1, dims=1))
    assert torch.equal(second_statistic(first.value), second.mechanism.statistic.of(lonely))
    assert not torch.equal(second_statistic(turned), second.mechanism.statistic.of(lonely))


@pytest.mark.parametrize("kind", KINDS)
def test_test_labels_change_nothing_and_learning_is_better_than_chance(kind):
    swapped = graph(labels=torch.where(NODES.test_mask, 0, NODES.labels))
    fitted = fitted_on(kind, graph(), epsilon=4.0)
    again = fitted_on(kind, swapped, epsilon=4.0)
    assert torch.equal(probabilities(fitted, graph(), "none"), probabilities(again, swapped, "none"))
    assert fitted.score(graph(), NODES.test_mask, access="own-edges") > 0.6


def test_discriminants_are_chosen_by_validation_labels_and_always_finite():
    rows = torch.randn(SIZE, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    rows[:, :CLASSES] += 3 * one_hot(NODES.labels.clamp_min(0), CLASSES)
    answers = one_hot(NODES.labels.clamp_min(0), CLASSES).double()
    found = discriminant(rows.T @ answers, rows, answers, NODES)
    right = (found.scores(rows).argmax(dim=1) == NODES.labels)[NODES.validation_mask].double().mean()
    assert float(right) > 0.9
    nobody = dataclasses.replace(NODES, validation_mask=torch.zeros_like(NODES.validation_mask))
    first_class = one_hot(torch.zeros(SIZE, dtype=torch.int64), CLASSES).double()
    for nodes in (NODES, nobody):
        for given in (rows, torch.zeros_like(rows)):  # a class without answers, and rows without content
            linear = discriminant(given.T @ first_class, given, first_class, nodes)
            assert bool(torch.isfinite(linear.scores(given)).all())


# --- audit ------------------------------------------------------------------------------------------------------------

EPSILON, DELTA, RUNS = 1.0, 0.1, 2_000
FALSE_ALARM = 1e-3  # of the bounds; the right noise stays four standard deviations below epsilon all the same


@pytest.fixture
def quick(monkeypatch):
    """The few exact values that there are on nine nodes are computed once each, by the statistics themselves."""
    found = {}

    def same(rows, answers, weight):
        key = answers.numpy().tobytes()
        if key not in found:
            found[key] = BilinearSums(rows, answers, weight)
        return found[key]

    monkeypatch.setattr(self_training_rounds, "BilinearSums", same)
    for kind in (ClassSums, BilinearSums):
        monkeypatch.setattr(kind, "precisely", lru_cache(maxsize=None)(kind.precisely))


@pytest.fixture
def pair(releases, quick):
    """The method, the public nodes, and two graphs that differ in the edge that tells most."""

    def prepared(kind):
        few = torch.arange(9)
        nodes = PublicNodes(
            features=torch.eye(CLASSES)[few // 3] + 0.1 * torch.eye(9)[:, :CLASSES],
            labels=few // 3,
            num_classes=CLASSES,
            train_mask=few % 3 > 0,
            validation_mask=few < 0,
            test_mask=few % 3 == 0,
        )
        method = kind(epsilon=EPSILON, delta=DELTA, hidden=4, epochs=100)
        method.fit(private_graph(nodes, torch.empty(2, 0, dtype=torch.int64), name="few"))
        statistic = releases[0].mechanism.statistic
        apart = public_edges(torch.empty(2, 0, dtype=torch.int64), 9)
        told = {}
        for left, right in itertools.combinations(range(9), 2):
            joined = public_edges(torch.tensor([[left], [right]]), 9)
            change = float(torch.linalg.vector_norm(statistic.of(joined) - statistic.of(apart)))
            told[change / statistic.sensitivity] = joined
        assert max(told) > 0.95  # the sensitivity is attained
        return releases[0].mechanism, told[max(told)], apart

    return prepared


def scores(kind, mechanism, factor, *, joined, apart):
    """Log-likelihood ratios of all rounds together, with this factor on the noise."""
    honest = gaussian_plan(EPSILON, DELTA, method="audit")
    plan = copy.copy(honest)
    object.__setattr__(plan, "distance", honest.distance / factor)  # past every check of the plan
    statistic = mechanism.statistic
    rounds = 1 if kind is ClassSumsMethod else ROUNDS

    def ratio(edges):
        total = 0.0
        for _ in range(rounds):  # of one statistic: what later rounds choose from earlier ones is theirs to choose
            each = plan.noisy(statistic, share=1 / rounds).apply(edges, SystemRandomness())
            base = statistic.of(apart)
            change = (statistic.of(joined) - base) / each.standard_deviation
            total += float(((each.value - base) / each.standard_deviation * change).sum() - change.square().sum() / 2)
        return total

    for edges in (joined, apart):
        yield np.array([ratio(edges) for _ in range(RUNS)])


@pytest.mark.slow
@pytest.mark.parametrize("kind", FROM_STATISTICS)
def test_audit_of_what_is_brought_to_the_gate_catches_half_the_noise(pair, kind):
    mechanism, joined, apart = pair(kind)

    def bound(factor):
        return epsilon_bound(
            *scores(kind, mechanism, factor, joined=joined, apart=apart), delta=DELTA, error=FALSE_ALARM
        )

    assert bound(1.0) <= EPSILON
    assert bound(0.5) > EPSILON
