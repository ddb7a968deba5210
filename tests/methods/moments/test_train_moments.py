"""Training by moments: one charged release, and everything else a function of it and of public data."""

import inspect
import math
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import cycle

import pytest
import torch

import gcon.learn.edge_free
import gcon.methods.moments
import gcon.privacy.account
from gcon.edges.edge_list import private_edges
from gcon.errors import BudgetExceededError, InputError, PrivateComputationError
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.neighbour_rows import NeighbourRows
from gcon.methods.moments import Moments
from gcon.privacy.account import transcript
from gcon.privacy.boundary import Private
from gcon.privacy.budget import NOTHING, Budget
from gcon.privacy.ledger import Kind, MemoryLedger, Outcome
from gcon.privacy.randomness import SeededRandomness, SystemRandomness
from gcon.release.layout import release_files

FIRST, LAST = ["learn without edges", "first release"], ["second release", "learn from what was released"]


class Untouchable:
    """Edges that must not be read."""

    def __getattr__(self, name):
        raise AssertionError(f"{name} of the edges was read")


def trained(nodes, edges, *, epsilon=8.0, delta=None, seed=0, ledger=None, randomness=None, **others):
    private = edges if isinstance(edges, Private) else private_edges(edges, nodes.num_nodes)[0]
    return Moments(epsilon=epsilon, delta=delta, seed=seed).train(
        nodes,
        private,
        ledger=ledger or MemoryLedger("circles", clock=lambda: datetime(2030, 1, 2, tzinfo=UTC)),
        randomness=randomness or SeededRandomness(4),
        **others,
    )


@pytest.fixture
def forced():
    """Inside, every training releases the statistics of this model, and no edge is opened for them."""

    @contextmanager
    def force(model):
        known = cycle(model.statistics)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gcon.privacy.account, "apply_private", lambda *_: next(known))
            yield

    return force


def test_the_model_is_a_function_of_the_release_and_of_public_data(nodes, dense, sparse, forced):
    """Two graphs that share few edges, and one that must not be read: with one release, one model to the last bit."""
    models = {epsilon: trained(nodes, dense, epsilon=epsilon) for epsilon in (0.3, 8.0)}
    gcon.learn.edge_free._kept.cache_clear()  # what is kept is computed again, with another graph near
    for epsilon, model in models.items():
        expected = release_files(model)
        other = trained(nodes, sparse, epsilon=epsilon)
        assert release_files(other)["model.safetensors"] != expected["model.safetensors"]
        with forced(model):
            for edges in (dense[:, :0], sparse, Private(Untouchable(), "edges that must not be read")):
                assert release_files(trained(nodes, edges, epsilon=epsilon)) == expected


def test_both_kinds_of_second_release_are_trained_here(nodes, dense, sparse):
    with_sums, without = trained(nodes, dense), trained(nodes, sparse, epsilon=0.3)
    assert [each.name for each in with_sums.statistics] == ["edge moments", "edge moments", "neighbour rows"]
    assert [each.name for each in without.statistics] == ["edge moments"] * 3
    assert without.cached is None
    assert without.best_answers is without.answers
    assert with_sums.best_answers is with_sums.cached
    for model in (with_sums, without):
        assert model.best_answers.shape == (100, 3)
        assert torch.allclose(model.best_answers.sum(dim=1), torch.ones(100), atol=1e-5)
        assert model.training_nodes == nodes.fingerprint


def test_charged_once_and_before_edges_are_opened(nodes, dense, monkeypatch):
    ledger, events = MemoryLedger("circles"), []
    for statistic in (EdgeMoments, NeighbourRows):

        def watched(self, edges, precisely=statistic.precisely):
            events.append([(entry.outcome, entry.request.cost) for entry in ledger.entries()])
            return precisely(self, edges)

        monkeypatch.setattr(statistic, "precisely", watched)
    model = trained(nodes, dense, epsilon=8.0, delta=1e-4, ledger=ledger, randomness=SystemRandomness(), purpose="test")
    assert events == [[(Outcome.RESERVED, Budget(8.0, 1e-4))]] * 3
    (entry,) = ledger.entries()
    assert (entry.request.kind, entry.outcome, entry.request.purpose) == (Kind.RELEASE, Outcome.RELEASED, "test")
    assert entry.request.plan == {**model.receipt.plan, "releases": []}  # what comes second is not known in advance
    assert [each["statistic"] for each in model.receipt.plan["releases"]] == [each.name for each in model.statistics]
    assert ledger.total() == model.receipt.budget == model.receipt.total == Budget(8.0, 1e-4)
    assert model.receipt.keeps_promise
    assert model.receipt.mechanism == "gaussian release (moments)"


def test_a_refused_budget_reads_nothing(nodes):
    ledger, stages = MemoryLedger("circles", ceiling=Budget(1.0, 1e-5)), []
    with pytest.raises(BudgetExceededError):
        trained(
            nodes,
            Private(Untouchable(), "edges that must not be read"),
            epsilon=1.5,
            ledger=ledger,
            progress=stages.append,
        )
    assert ledger.total() == NOTHING
    assert stages == FIRST[:1]


def test_what_is_told_on_the_way(nodes, dense, sparse):
    for edges, sums in ((dense, True), (sparse, False), (dense[:, :0], False)):
        stages = []
        model = trained(nodes, edges, progress=stages.append)
        assert (model.cached is not None) == sums
        assert stages == [*FIRST, *(["learn from the first release"] if sums else []), *LAST]


def test_infinite_epsilon_promises_nothing(nodes, dense):
    ledger = MemoryLedger("circles")
    model = trained(nodes, dense, epsilon=math.inf, ledger=ledger, randomness=SystemRandomness())
    assert not model.receipt.keeps_promise
    assert math.isinf(ledger.total().epsilon)
    assert "There is no promise: no noise was added." in model.statement().sentences
    assert [each.standard_deviation for each in model.statistics] == [0.0] * 3


def test_noise_from_a_seed_promises_nothing(nodes, dense):
    ledger = MemoryLedger("circles")
    model = trained(nodes, dense, epsilon=1.0, ledger=ledger)
    assert not model.receipt.keeps_promise
    assert math.isinf(ledger.total().epsilon)
    assert any("drawn from a seed" in sentence for sentence in model.statement().sentences)
    assert all(each.standard_deviation > 0 for each in model.statistics)


def test_a_failure_between_the_releases_tells_its_own_words_and_stays_charged(nodes, dense, monkeypatch):
    """Public code sees released numbers alone, so its error may say them; they were released, so they are charged."""

    def failing(counts, answers, nodes):
        raise RuntimeError(f"the noisy sum is {counts.value.sum()}")

    monkeypatch.setattr(gcon.methods.moments, "graph_facts", failing)
    ledger = MemoryLedger("circles")
    with pytest.raises(RuntimeError, match="the noisy sum is"), transcript() as lines:
        trained(nodes, dense, epsilon=1.0, ledger=ledger, randomness=SystemRandomness())
    assert len(lines) == 2
    assert [entry.outcome for entry in ledger.entries()] == [Outcome.RELEASED]
    assert ledger.total().epsilon == 1.0


@pytest.mark.parametrize("call", [0, 1, 2])
def test_a_failure_inside_a_release_stays_charged_and_tells_nothing(nodes, dense, monkeypatch, call):
    calls = []
    for statistic in (EdgeMoments, NeighbourRows):

        def failing(self, edges, precisely=statistic.precisely):
            calls.append(type(self))
            if len(calls) == call + 1:
                raise RuntimeError(f"{edges.columns.sum()}")
            return precisely(self, edges)

        monkeypatch.setattr(statistic, "precisely", failing)
    ledger = MemoryLedger("circles")
    with pytest.raises(PrivateComputationError) as raised:
        trained(nodes, dense, epsilon=8.0, ledger=ledger, randomness=SystemRandomness())
    assert len(calls) == call + 1
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    assert not any(character.isdigit() for character in str(raised.value))
    assert [entry.outcome for entry in ledger.entries()] == [Outcome.RELEASED if call else Outcome.WITHHELD]
    assert ledger.total().epsilon == 8.0


def test_test_labels_and_unlabelled_nodes_change_nothing(nodes, dense):
    model = trained(nodes, dense)
    known = nodes.train_mask | nodes.validation_mask
    blind = replace(nodes, labels=torch.where(known, nodes.labels, -1), test_mask=torch.zeros_like(known))
    assert release_files(trained(blind, dense))["model.safetensors"] == release_files(model)["model.safetensors"]


@pytest.mark.slow
@pytest.mark.parametrize("change", ["no edges", "no validation", "features of zero", "two nodes", "every node known"])
def test_unusual_input(nodes, dense, change):
    edges, given = dense, nodes
    if change == "no edges":
        edges = dense[:, :0]
    elif change == "no validation":
        given = replace(nodes, validation_mask=torch.zeros_like(nodes.validation_mask))
    elif change == "features of zero":
        given = replace(nodes, features=torch.zeros_like(nodes.features))
    elif change == "every node known":
        nobody = torch.zeros_like(nodes.train_mask)
        given = replace(nodes, train_mask=~nobody, validation_mask=nobody, test_mask=nobody)
    else:
        nobody = torch.zeros(2, dtype=torch.bool)
        masks = {"train_mask": ~nobody, "validation_mask": nobody, "test_mask": nobody}
        given = replace(nodes, features=nodes.features[:2], labels=torch.tensor([0, 1]), **masks)
        edges = torch.tensor([[0], [1]])
    for epsilon in (0.3, 8.0, math.inf):
        model = trained(given, edges, epsilon=epsilon)
        assert model.best_answers.isfinite().all()
        assert float((model.best_answers.sum(dim=1) - 1).abs().max()) < 1e-5
        assert model.encoder.probabilities(given.features).isfinite().all()
        assert release_files(model)


@pytest.mark.parametrize(
    "change",
    [{"epsilon": 0.0}, {"epsilon": math.nan}, {"delta": 0.0}, {"delta": 1.0}, {"seed": -1}, {"seed": 1.5}],
    ids=str,
)
def test_wrong_settings_are_refused_when_they_are_made(change):
    with pytest.raises(InputError):
        Moments(**{"epsilon": 1.0, **change})


def test_the_seed_of_the_networks_is_not_that_of_the_noise(nodes, dense):
    one, two = (trained(nodes, dense, seed=0, randomness=SystemRandomness()) for _ in range(2))
    for first, second in zip(one.statistics, two.statistics, strict=True):
        assert not torch.equal(first.value, second.value)


def test_edges_come_in_as_private_ones_only():
    assert "Private" in str(inspect.signature(Moments.train).parameters["edges"].annotation)


def test_the_device_is_checked_before_anything_is_paid():
    assert Moments(epsilon=1.0).device == "auto"
    assert Moments(epsilon=1.0, device="cpu").device == "cpu"
    with pytest.raises(InputError, match="device"):
        Moments(epsilon=1.0, device="tpu")
