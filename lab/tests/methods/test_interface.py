"""What every competitor keeps: one face, and no edge read before it is paid for."""

import dataclasses
import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from tests.opened import open_private

import gcon_lab.methods
import gcon_lab.methods.progap
from gcon.edges.edge_list import public_edges
from gcon.edges.graph import PrivateGraph, PublicGraph, private_graph
from gcon.errors import AccessRefusedError, BudgetExceededError, InputError
from gcon.files.datasets import social_circles_parts
from gcon.methods.method import Method, PrivateMethod
from gcon.privacy.account import transcript
from gcon.privacy.boundary import Private
from gcon.privacy.budget import NOTHING, Budget, compose
from gcon.privacy.ledger import Kind, MemoryLedger, Outcome
from gcon.privacy.randomness import SeededRandomness
from gcon.privacy.statement import ACCESS_PROMISES
from gcon_lab.methods import GAP, GCN, MLP, LPGNet, ProGAP
from gcon_lab.methods.competitor import RANGES, CompetitorMethod, PrivateCompetitorMethod, settings_of
from gcon_lab.methods.fitted import fit
from gcon_lab.methods.gap import unit

pytestmark = pytest.mark.slow

NODES, EDGE_INDEX = social_circles_parts(
    100, num_classes=3, per_class=6, num_validation=25, num_test=50, mean_degree=4.0, seed=3
)
METHODS = tuple(gcon_lab.methods.METHODS.values())
PAYING = tuple(method for method in METHODS if issubclass(method, PrivateMethod))


def graph(edge_index=EDGE_INDEX):
    return private_graph(NODES, edge_index, name="circles")


def another(edge_index=EDGE_INDEX):
    """Other nodes, as many as in the training graph."""
    return private_graph(dataclasses.replace(NODES, features=NODES.features + 1), edge_index, name="circles")


def public(features):
    return PublicGraph(features, public_edges(EDGE_INDEX, 100))


def small(method, **settings):
    given = {"epochs": 4, "hidden": 8, "epsilon": 2.0, "delta": 1e-4} | settings
    known = {field.name for field in dataclasses.fields(method)}
    return method(**{name: value for name, value in given.items() if name in known})


class GuardedEdges:
    """Edges that may be touched only while the ledger holds an entry, and that count how often they are."""

    def __init__(self, edges, ledger):
        self.__dict__.update(_edges=edges, _ledger=ledger, touched=0)

    @property
    def __class__(self):  # competitors take edges in memory only, and ask
        return type(self._edges)

    def __getattr__(self, name):
        if not self._ledger.entries():
            raise AssertionError(f"{name} of the edges was read before the ledger was charged")
        self.touched += 1
        return getattr(self._edges, name)

    def __setattr__(self, name, value):
        self.__dict__[name] = value


def guarded(ledger):
    plain = graph()
    edges = GuardedEdges(open_private(plain.edges), ledger)
    return PrivateGraph(NODES, Private(edges, "guarded edges"), plain.hygiene, "circles"), edges


def test_the_guard_guards():
    ledger = MemoryLedger("circles")
    _, edges = guarded(ledger)
    with pytest.raises(AssertionError, match="before the ledger was charged"):
        _ = edges.degrees
    fit(LPGNet(epsilon=1.0, epochs=1), graph(), ledger=ledger)
    assert len(edges.degrees) == 100


@pytest.mark.parametrize("kind", METHODS)
def test_settings_are_frozen_public_numbers(kind):
    method = small(kind)
    assert issubclass(kind, Method)
    assert isinstance(method.name, str)
    assert method.about.endswith(".")
    with pytest.raises(dataclasses.FrozenInstanceError):
        method.seed = 3
    for value in dataclasses.asdict(method).values():
        assert value is None or isinstance(value, int | float | str)


@pytest.mark.parametrize("kind", METHODS)
def test_fit_then_predict_under_every_access(kind):
    ledger = MemoryLedger("circles")
    fitted = fit(small(kind), graph(), ledger=ledger)
    assert fitted.trained.score_functions
    first = next(iter(fitted.trained.score_functions))
    for access in fitted.trained.score_functions:
        asked = public(NODES.features + 1) if access == "public-graph" else graph()
        found = fitted.predictions(asked, access=access)
        assert found.access == access
        assert found.probabilities.shape == (100, 3)
        assert found.probabilities.sum(dim=1).tolist() == pytest.approx([1.0] * 100, abs=1e-5)
        assert found.publishable == (kind.private and access not in ("own-edges", "full"))
        assert fitted.predict(asked, access=access).tolist() == found.labels
        if access == "public-graph":
            continue
        right = (found.classes == NODES.labels)[NODES.test_mask].double().mean()
        assert fitted.score(graph(), NODES.test_mask, access=access) == pytest.approx(float(right))
    assert np.array_equal(fitted.predict(graph()), fitted.predict(graph(), access=first))
    # Predictions cost nothing; whatever reads edges is recorded.
    releases = [entry for entry in ledger.entries() if entry.request.kind is Kind.RELEASE]
    assert bool(releases) == (kind in PAYING)
    assert len(fitted.receipts) == len(releases)


@pytest.mark.parametrize("kind", METHODS)
def test_an_access_that_a_method_does_not_have(kind):
    fitted = fit(small(kind), graph())
    missing = {"none", "cached", "own-edges", "public-graph", "full"} - set(fitted.trained.score_functions)
    for access in missing:
        with pytest.raises(AccessRefusedError) as refusal:
            fitted.predictions(graph(), access=access)
        assert access in str(refusal.value)
        assert next(iter(fitted.trained.score_functions)) in str(refusal.value)  # what there is instead
    with pytest.raises(InputError, match="access"):
        fitted.predictions(graph(), access="everything")


@pytest.mark.parametrize("kind", METHODS)
def test_no_edge_is_read_before_it_is_paid_for(kind):
    ledger = MemoryLedger("circles")
    private, edges = guarded(ledger)
    fitted = fit(small(kind), private, ledger=ledger)
    if kind in PAYING:
        assert edges.touched > 0
        assert ledger.total() == compose(receipt.budget for receipt in fitted.receipts)
        assert ledger.total().epsilon <= 2.0
        assert all(receipt.keeps_promise for receipt in fitted.receipts)
    elif kind.private:
        assert edges.touched == 0
        assert ledger.total() == NOTHING
    else:
        assert math.isinf(ledger.total().epsilon)
    touched = edges.touched
    for access in set(fitted.trained.score_functions) & {"none", "cached"}:
        fitted.predict(private, access=access)
    assert edges.touched == touched


@pytest.mark.parametrize("kind", PAYING)
def test_a_full_ledger_keeps_the_edges_shut(kind):
    ledger = MemoryLedger("circles", ceiling=Budget(1.0, 1e-3))
    private, edges = guarded(ledger)
    with pytest.raises(BudgetExceededError):
        fit(small(kind), private, ledger=ledger)
    assert edges.touched == 0
    assert ledger.total() == NOTHING
    with pytest.raises(BudgetExceededError):  # neither without noise nor with noise from a seed
        fit(small(kind, epsilon=math.inf), private, ledger=ledger)
    with pytest.raises(BudgetExceededError):
        fit(small(kind, epsilon=0.5), private, ledger=ledger, randomness=SeededRandomness(0))
    assert edges.touched == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", PAYING)
def test_noise_has_nothing_to_do_with_the_seed_of_the_weights(kind):
    fitted = [fit(small(kind, seed=3), graph()) for _ in range(2)]
    first, second = (model.predictions(graph()).probabilities for model in fitted)
    assert not torch.equal(first, second)
    assert fitted[0].receipts[0].randomness == "operating system"


@pytest.mark.parametrize("kind", PAYING)
def test_noise_from_a_seed_repeats_and_promises_nothing(kind):
    results = []
    for _ in range(2):
        ledger = MemoryLedger("circles")
        fitted = fit(small(kind), graph(), ledger=ledger, randomness=SeededRandomness(7))
        results.append(fitted.predictions(graph()).probabilities)
        assert math.isinf(ledger.total().epsilon)
        assert not fitted.receipts[0].keeps_promise
    assert torch.equal(*results)


@pytest.mark.parametrize("kind", METHODS)
@pytest.mark.parametrize(
    ("changes", "randomness", "why"),
    [({}, 7, "drawn from a seed"), ({"epsilon": math.inf}, None, "no noise was added")],
)
def test_predictions_promise_no_more_than_the_release_behind_them(kind, changes, randomness, why):
    source = None if randomness is None else SeededRandomness(randomness)
    fitted = fit(small(kind, **changes), graph(), randomness=source)
    kept = kind.private and kind not in PAYING
    why = why if kind in PAYING else "the method is not private"
    assert (fitted.no_promise is None) == kept
    for access in fitted.trained.score_functions:
        found = fitted.predictions(public(NODES.features + 1) if access == "public-graph" else graph(), access=access)
        if kept:
            assert found.publishable == (access != "own-edges")
            assert found.promise == ACCESS_PROMISES[access]
        else:
            assert not found.publishable
            assert found.audience == "operator only"
            assert (why if access != "full" else "Nothing is promised") in found.promise
            assert "may be published" not in found.promise
            assert "keeps the promise" not in found.promise


def test_one_release_without_a_promise_is_enough_to_lose_it():
    kept = fit(GAP(epsilon=1.0, epochs=1), graph())
    void = fit(GAP(epsilon=1.0, epochs=1), graph(), randomness=SeededRandomness(0))
    for receipts in (kept.receipts + void.receipts, void.receipts + kept.receipts):
        both = dataclasses.replace(kept, trained=dataclasses.replace(kept.trained, receipts=receipts))
        assert not both.predictions(graph()).publishable
    assert kept.predictions(graph()).publishable


@pytest.mark.parametrize("kind", [kind for kind in METHODS if kind.name in ("dp-sgd", "gcn", "gpr-gnn")])
def test_edges_of_the_training_nodes_are_never_public(kind):
    fitted = fit(small(kind, steps=5), graph())
    if not kind.private:  # nothing was promised about them
        assert len(fitted.predictions(public(NODES.features), access="public-graph").classes) == 100
        return
    with pytest.raises(AccessRefusedError, match="its edges are private") as refusal:
        fitted.predictions(public(NODES.features), access="public-graph")
    assert "own-edges, none" in str(refusal.value)
    assert len(fitted.predictions(public(NODES.features + 1), access="public-graph").classes) == 100


@pytest.mark.parametrize("kind", METHODS)
def test_private_edges_are_read_for_the_training_nodes_only(kind):
    """The ledger that pays belongs to them, and what is kept of training nodes is theirs."""
    ledger = MemoryLedger("circles")
    fitted = fit(small(kind), graph(), ledger=ledger)
    before = len(ledger.entries())
    for access in set(fitted.trained.score_functions) - {"none", "public-graph"}:
        for ask in (fitted.predictions, lambda given, access: fitted.score(given, NODES.test_mask, access=access)):
            with pytest.raises(InputError, match="trained on"):
                ask(another(), access=access)
        with pytest.raises((InputError, AccessRefusedError)):
            fitted.predictions(public(NODES.features), access=access)
    assert len(ledger.entries()) == before


NUMBERS = [math.nan, math.inf, -math.inf, -1, 10**400, True, "1", None, 1j, [1]]


# Of methods whose settings are ranges by name; those of the product check their own.
IN_RANGES = tuple(kind for kind in METHODS if issubclass(kind, CompetitorMethod | PrivateCompetitorMethod))


@pytest.mark.parametrize("kind", [kind for kind in METHODS if kind not in IN_RANGES])
def test_settings_of_the_product_are_checked_too(kind):
    for name in settings_of(kind):
        wrong = [math.nan, -1, "all", [1], None]
        for value in wrong[: -1 if name == "class_shares" else None]:  # None: nobody told them
            with pytest.raises(InputError, match=f"^{name}: must "):
                small(kind, **{name: value})


@pytest.mark.parametrize("kind", IN_RANGES)
def test_every_setting_is_checked_when_a_method_is_built(kind):
    for name, setting in settings_of(kind).items():
        assert getattr(small(kind), name) is not None or setting.optional
        wrong = [value for value in NUMBERS if not (setting.optional and value is None)]
        if setting.kind is bool:
            wrong = [0, 1, "true", None]
        elif setting.kind is str:
            wrong = ["", "all", 1, None]
        elif name == "least_agreement":
            wrong = [-1.1 if value == -1 else value for value in wrong]
        if setting.kind is int:
            wrong += [1.5, 2.0]
        for value in wrong:
            with pytest.raises(InputError, match=f"^{name}: must be ") as refusal:
                small(kind, **{name: value})
            assert "The default is" in str(refusal.value)


@pytest.mark.parametrize("kind", IN_RANGES)
def test_every_number_has_a_range_whose_ends_are_right(kind):
    for name, setting in settings_of(kind).items():
        if setting.kind not in (int, float):
            continue
        found = RANGES[name]
        for end, included, step in ((found.least, found.least_too, -1), (found.most, found.most_too, 1)):
            if included:
                assert getattr(small(kind, **{name: end}), name) == end
                beyond = end + step if setting.kind is int else math.nextafter(end, step * math.inf)
            else:
                beyond = end
            with pytest.raises(InputError, match=name):
                small(kind, **{name: beyond})


@pytest.mark.parametrize(
    "wrong",
    [
        {"hidden": 0},
        {"hidden": 10**9},
        {"layers": 0},
        {"dropout": 1.0},
        {"learning_rate": 0.0},
        {"weight_decay": -1e-9},
        {"epochs": 0},
        {"stacked": 3},
        {"seed": -1},
        {"seed": 0.5},
    ],
)
def test_wrong_settings_cost_nothing(wrong):
    ledger = MemoryLedger("circles")
    with pytest.raises(InputError, match=next(iter(wrong))):
        fit(LPGNet(epsilon=1.0, **wrong), graph(), ledger=ledger)
    assert not ledger.entries()


def test_an_error_between_two_releases_is_told_as_it_is_and_what_was_released_stays_charged(monkeypatch):
    """Later stages are trained on released numbers, which are public: so is whatever goes wrong there."""
    next_stage = ProGAP._next_stage

    def failing(method, blocks, inputs, nodes):
        if len(inputs) == 2:  # features, and the first noisy sums
            raise ArithmeticError("the second stage is lost")
        return next_stage(method, blocks, inputs, nodes)

    monkeypatch.setattr(ProGAP, "_next_stage", failing)
    ledger = MemoryLedger("circles")
    with transcript() as lines, pytest.raises(ArithmeticError, match="the second stage is lost"):
        fit(small(ProGAP, depth=3), graph(), ledger=ledger)
    assert len(lines) == 1
    assert [entry.outcome for entry in ledger.entries()] == [Outcome.RELEASED]
    assert ledger.total() == Budget(2.0, 1e-4)


def test_an_error_before_the_first_release_costs_nothing(monkeypatch):
    def failing(*_):
        raise ArithmeticError("no rows")

    monkeypatch.setattr(gcon_lab.methods.progap, "unit", failing)
    ledger = MemoryLedger("circles")
    with pytest.raises(ArithmeticError, match="no rows"):
        fit(small(ProGAP), graph(), ledger=ledger)
    assert [entry.outcome for entry in ledger.entries()] == [Outcome.WITHDRAWN]
    assert ledger.total() == NOTHING


@pytest.mark.slow
def test_a_training_that_diverges_is_released_all_the_same():
    """The rounds are paid for together: a refusal in the middle would waste what is left of the budget."""
    lost = torch.tensor([[math.nan, 1.0], [math.inf, 1.0], [3.0, 4.0], [0.0, 0.0]])
    assert unit(lost).tolist() == [[0, 0], [0, 0], [0.6, 0.8], [0, 0]]
    method = ProGAP(epsilon=1.0, learning_rate=1e6, base_layers=16, hidden=256, epochs=20)
    fitted = fit(method, graph(), randomness=SeededRandomness(0))
    assert len(fitted.predict(graph())) == 100


def test_none_is_for_optional_settings():
    assert GCN(patience=None).patience is None
    with pytest.raises(InputError, match="patience"):
        GCN(patience=0)
    with pytest.raises(InputError, match="hidden"):
        MLP(hidden=None)


@pytest.mark.parametrize(
    ("text", "value"), [("10", 10), ("1e1", 10), ("+3", 3), ("1_0", 10), ("1.5", None), ("inf", None), ("²", None)]
)
def test_whole_numbers_from_text(text, value):
    hops = settings_of(GAP)["hops"]
    if value is None:
        with pytest.raises(InputError, match="hops"):
            hops.read(text)
    else:
        assert hops.read(text) == value
        assert isinstance(hops.read(text), int)


@pytest.mark.parametrize("kind", METHODS)
def test_training_leaves_the_global_generator_alone(kind):
    torch.manual_seed(11)
    before = torch.get_rng_state()
    fit(small(kind), graph())
    assert torch.equal(before, torch.get_rng_state())


WORKERS = """
import hashlib, os, sys, torch
torch.set_num_threads(1)
from gcon.files.datasets import social_circles
from gcon_lab.methods import gap, lpgnet, progap
from gcon.privacy.randomness import SystemRandomness

graph = social_circles(60, num_classes=3, per_class=5, num_validation=10, num_test=20, seed=1)
randomness = SystemRandomness()  # made before the fork and shared by all workers
gap.GAP(epsilon=1.0, epochs=1, hidden=4).fit(graph)  # torch loads its optimisers once, before the fork
children = []
for _ in range(3):
    if os.fork() == 0:
        for module, method in ((gap, gap.GAP), (lpgnet, lpgnet.LPGNet), (progap, progap.ProGAP)):
            fitted = method(epsilon=1.0, delta=1e-4, epochs=2, hidden=4).fit(graph, randomness=randomness)
            scores = fitted.predictions(graph).probabilities
            os.write(1, f"{method.name} {hashlib.sha256(scores.numpy().tobytes()).hexdigest()}\\n".encode())
        os._exit(0)
for _ in range(3):
    assert os.wait()[1] == 0
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(subprocess.os, "fork"), reason="needs fork")
def test_worker_processes_draw_different_noise():
    done = subprocess.run([sys.executable, "-c", WORKERS], capture_output=True, text=True, timeout=300, check=True)
    lines = done.stdout.split("\n")[:-1]
    assert len(lines) == 9
    assert len(set(lines)) == 9
