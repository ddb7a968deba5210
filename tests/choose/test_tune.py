"""Tuning: free choices read no edge, the paid one is charged, and both together cost what was asked for."""

import json
import math
import sys
import tomllib
from dataclasses import replace

import networkx
import pytest
import scipy.stats
import torch
from tests.choose.sealed import Sealed
from tests.opened import open_private

import gcon
from gcon.choose import paid_restart as paid
from gcon.choose import rehearsal as rehearse
from gcon.choose import settings as choose
from gcon.choose.settings import tune, tune_paid
from gcon.edges.edge_list import public_edges
from gcon.edges.graph import PrivateGraph
from gcon.errors import BudgetExceededError, InputError
from gcon.methods.objective import Objective
from gcon.methods.own_edges import own_edge_predictions
from gcon.privacy.boundary import Private
from gcon.privacy.randomness import SeededRandomness, SystemRandomness

LEVEL = 1e-7  # of every statistical test here, which is the probability of a false alarm


@pytest.fixture(scope="module")
def graph():
    return gcon.datasets.social_circles(400, num_classes=3, per_class=10, num_validation=150, num_test=100, seed=3)


@pytest.fixture
def small_grid(monkeypatch):
    monkeypatch.setattr(rehearse, "HIDDEN", (8,))
    monkeypatch.setattr(rehearse, "LOSSES", ("soft-margin",))
    monkeypatch.setattr(rehearse, "RIDGES", (1.0, 1e6))


@pytest.fixture
def files(run, tmp_path):
    assert run("data", "make", "--out", tmp_path, "--nodes", 300, "--quiet")[0] == 0
    return ["--edges", tmp_path / "edges.csv", "--nodes", tmp_path / "nodes.csv"]


def test_free_tuning_takes_public_nodes_and_costs_nothing(graph, small_grid):
    found = tune(graph.nodes, Objective(epsilon=1.0), randomness=SystemRandomness, draws=2)
    assert found.cost == gcon.Budget(0.0, 0.0)
    assert {choice.how for choice in found.choices} == {"free", "default"}
    assert found.settings.epsilon == 1.0
    assert len(found.rehearsals) == 2


def test_rehearsal_prefers_the_settings_that_survive_the_noise(graph):
    """At epsilon 0.05 a weak ridge drowns in noise; what is chosen scores best on the validation nodes without edges."""
    candidates = [Objective(epsilon=0.05, ridge=ridge) for ridge in (0.001, 1.0)]
    found = rehearse.rehearse(graph.nodes, candidates, draws=5, randomness=SystemRandomness)
    assert rehearse.best(found).mean == max(rehearsal.mean for rehearsal in found)
    assert all(len(rehearsal.scores) == 5 for rehearsal in found)


def test_paid_choice_is_charged_and_leaves_the_rest(graph, small_grid):
    ledger = gcon.MemoryLedger("circles", ceiling=gcon.Budget(0.4, 1e-5))
    found = tune_paid(graph, Objective(epsilon=0.4), pay=0.1, ledger=ledger, randomness=SystemRandomness, draws=1)
    assert ledger.total() == gcon.Budget(0.1, 0.0) == found.cost
    assert found.settings.epsilon == 0.3  # not 0.30000000000000004, which the ceiling would refuse
    assert found.settings.inference_restart in paid.RESTARTS
    assert [choice.how for choice in found.choices if choice.setting == "inference_restart"] == ["paid"]


def test_paid_choice_reads_no_edge_before_it_is_charged(graph, small_grid):
    ledger = gcon.MemoryLedger("circles")
    edges = Sealed(open_private(graph.edges), ledger)
    sealed = PrivateGraph(graph.nodes, Private(edges, "edges"), graph.hygiene)
    tune_paid(sealed, Objective(epsilon=1.0), pay=0.1, ledger=ledger, randomness=SystemRandomness, draws=1)
    assert edges.read


def test_the_ledger_holds_the_plan_of_the_paid_choice(graph, small_grid):
    ledger = gcon.MemoryLedger("circles")
    tune_paid(graph, Objective(epsilon=1.0), pay=0.1, ledger=ledger, randomness=SystemRandomness, draws=1)
    (entry,) = ledger.entries()
    assert entry.request.plan == {
        "epsilon": 0.1,
        "sensitivity": 2,
        "noise": "permute and flip, sampled exactly",
    }
    assert entry.request.mechanism == "private selection"
    assert entry.request.cost == gcon.Budget(0.1, 0.0)
    assert entry.outcome == "released"


def test_a_choice_with_seeded_noise_costs_what_the_ledger_says(graph, small_grid):
    ledger = gcon.MemoryLedger("circles")
    found = tune_paid(
        graph, Objective(epsilon=1.0), pay=0.1, ledger=ledger, randomness=lambda: SeededRandomness(1), draws=1
    )
    assert found.cost == ledger.total()
    assert math.isinf(found.cost.epsilon)


@pytest.mark.parametrize("ceiling", [gcon.Budget(0.39, 1e-5), gcon.Budget(0.4, 1e-6)])
def test_a_ceiling_without_room_for_the_training_refuses_before_any_work(graph, ceiling):
    ledger = gcon.MemoryLedger("circles", ceiling=ceiling)

    def no_rehearsal():
        raise AssertionError("rehearsed")

    with pytest.raises(BudgetExceededError, match=r"asked epsilon=0\.4"):
        tune_paid(graph, Objective(epsilon=0.4), pay=0.1, ledger=ledger, randomness=no_rehearsal)
    assert ledger.entries() == ()


@pytest.mark.parametrize("pay", [0.0, 1.0, 2.0, -0.1, math.nan])
def test_a_payment_must_leave_something(graph, pay):
    with pytest.raises(InputError, match="pay"):
        tune_paid(graph, Objective(epsilon=1.0), pay=pay, ledger=gcon.MemoryLedger(), randomness=SystemRandomness)


def test_tuning_needs_validation_nodes():
    bare = gcon.datasets.social_circles(60, num_classes=2, per_class=5, num_validation=0, num_test=20, seed=3)
    with pytest.raises(InputError, match="validation"):
        tune(bare.nodes, Objective(epsilon=1.0), randomness=SystemRandomness)


@pytest.mark.parametrize("noise_edges", [False, True])
def test_a_large_budget_finds_the_largest_count(graph, noise_edges):
    """At epsilon 200 a candidate that is right one time less often is chosen with probability below e^-50."""
    model = rehearse.rehearse(graph.nodes, [Objective(epsilon=4.0)], draws=1, randomness=SystemRandomness)[0].model
    generator = torch.Generator().manual_seed(0)
    random_edges = public_edges(torch.randint(0, 400, (2, 4000), generator=generator), 400)
    edges = Private(random_edges, "edges") if noise_edges else graph.edges
    nodes = graph.nodes
    answers = [
        own_edge_predictions(model, model.encoder.encode(nodes.features), open_private(edges), restart=restart).classes
        for restart in paid.RESTARTS
    ]
    counts = [int((classes == nodes.labels)[nodes.validation_mask].sum()) for classes in answers]
    found = paid.choose_inference_restart(
        model,
        PrivateGraph(nodes, edges, graph.hygiene),
        epsilon=200.0,
        ledger=gcon.MemoryLedger("circles"),
        randomness=SystemRandomness(),
    )
    assert counts[found.value] == max(counts)
    assert len(set(counts)) > 1  # otherwise every choice would pass


def test_the_paid_choice_between_two_has_the_law_of_sensitivity_two(graph):
    """The worse of two candidates, d right answers behind, is chosen with probability e^(-epsilon d / 4) / 2."""
    model = rehearse.rehearse(graph.nodes, [Objective(epsilon=4.0)], draws=1, randomness=lambda: SeededRandomness(0))[
        0
    ].model
    nodes, restarts, draws = graph.nodes, (1.0, 0.1), 1500
    known = torch.zeros(nodes.num_nodes, dtype=torch.bool)
    alone, together = (
        own_edge_predictions(model, model.encoder.encode(nodes.features), open_private(graph.edges), restart=restart)
        for restart in restarts
    )
    # Validation nodes crafted so that the first candidate is 10 answers behind the second.
    gained = ((together.classes == nodes.labels) & (alone.classes != nodes.labels)).nonzero()[:10, 0]
    both = ((together.classes == nodes.labels) & (alone.classes == nodes.labels)).nonzero()[:10, 0]
    assert len(gained) == len(both) == 10
    known[gained] = known[both] = True
    off = torch.zeros_like(known)
    crafted = replace(nodes, validation_mask=known, train_mask=nodes.train_mask & ~known, test_mask=off)
    behind = 10
    chosen = [
        paid.choose_inference_restart(
            model,
            PrivateGraph(crafted, graph.edges, graph.hygiene),
            epsilon=0.4,
            ledger=gcon.MemoryLedger("circles"),
            randomness=SystemRandomness(),
            restarts=restarts,
        ).value
        for _ in range(draws)
    ]

    def p_value(sensitivity):
        worse = math.exp(-0.4 * behind / (2 * sensitivity)) / 2
        return scipy.stats.binomtest(chosen.count(0), draws, worse).pvalue

    assert p_value(2) > LEVEL
    assert p_value(1) < LEVEL  # power: fails at half the noise with probability above 1 - 1e-7
    assert p_value(4) < LEVEL


def test_one_edge_changes_every_count_by_at_most_two(graph):
    """All graphs of up to five nodes, every edge, every restart: the counts that are compared move by at most 2."""
    model = rehearse.rehearse(graph.nodes, [Objective(epsilon=4.0)], draws=1, randomness=SystemRandomness)[0].model
    features, labels = graph.nodes.features[:5], graph.nodes.labels[:5]
    largest = 0
    for atlas in networkx.graph_atlas_g()[1:53]:
        size = atlas.number_of_nodes()
        encoded = model.encoder.encode(features[:size])
        ends = torch.tensor(list(atlas.edges), dtype=torch.int64).reshape(-1, 2)

        def counts(kept, size=size, encoded=encoded):
            opened = public_edges(kept.T, size)
            answers = [own_edge_predictions(model, encoded, opened, restart=value).classes for value in paid.RESTARTS]
            return [int((classes == labels[:size]).sum()) for classes in answers]

        full = counts(ends)
        for dropped in range(len(ends)):
            less = counts(ends[torch.arange(len(ends)) != dropped])
            largest = max(largest, *(abs(a - b) for a, b in zip(full, less, strict=True)))
    assert largest <= paid.ENDS_OF_AN_EDGE


def test_command_writes_a_configuration_that_train_takes(run, files, small_grid, tmp_path):
    out = tmp_path / "settings.toml"
    code, printed, _ = run("tune", *files, "--epsilon", 1, "--pay", 0.1, "--draws", 1, "--out", out, "--json")
    assert code == 0
    found, written = json.loads(printed), tomllib.loads(out.read_text())
    assert found["settings"] == written
    assert found["cost"] == {"epsilon": 0.1, "delta": 0.0}
    assert run("train", *files, "--config", out, "--out", tmp_path / "model", "--quiet")[0] == 0
    shown = json.loads(run("ledger", "show", tmp_path / "edges.csv.ledger", "--json")[1])
    assert shown["total"]["epsilon"] == 1.0
    assert [entry["mechanism"] for entry in shown["entries"]] == ["private selection", "objective perturbation (GCON)"]
    # An existing file is never replaced, and nothing is paid then.
    assert run("tune", *files, "--epsilon", 1, "--pay", 0.1, "--out", out, "--json")[0] == 2
    assert json.loads(run("ledger", "show", tmp_path / "edges.csv.ledger", "--json")[1])["total"]["epsilon"] == 1.0


def test_every_choice_says_what_it_rests_on(graph, small_grid):
    found = tune(graph.nodes, Objective(epsilon=1.0), randomness=SystemRandomness, draws=1)
    assert all(choice.how in choose.How.__args__ and choice.why for choice in found.choices)


def test_free_command_neither_needs_nor_opens_the_edges(run, files, small_grid, tmp_path):
    (tmp_path / "edges.csv").unlink()
    for given in (files, files[2:]):
        code, printed, _ = run("tune", *given, "--epsilon", 1, "--draws", 1, "--json")
        assert code == 0
        assert json.loads(printed)["cost"] == {"epsilon": 0.0, "delta": 0.0}
    assert run("tune", *files[:2], "--epsilon", 1, "--json")[0] == 2  # but it needs nodes
    assert {path.name for path in tmp_path.iterdir()} == {"nodes.csv"}


@pytest.mark.parametrize("pay", [0, 1, "nan", -1])
def test_command_makes_no_ledger_for_a_payment_that_it_refuses(run, files, tmp_path, pay):
    before = set(tmp_path.iterdir())
    code, printed, _ = run("tune", *files, "--epsilon", 1, "--pay", pay, "--json")
    assert (code, json.loads(printed)["error"]) == (2, "InputError")
    assert set(tmp_path.iterdir()) == before


def test_command_checks_that_it_can_write_before_it_pays(run, files, small_grid, tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("gcon.cli.checks.tempfile.TemporaryFile", refuse)
    out = tmp_path / "settings.toml"
    code, printed, _ = run("tune", *files, "--epsilon", 1, "--pay", 0.1, "--draws", 1, "--out", out, "--json")
    assert code == 2
    assert "Permission denied" in json.loads(printed)["message"]
    assert not (tmp_path / "edges.csv.ledger").exists()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
@pytest.mark.parametrize("verb", [["tune", "--pay", 0.1], ["train"]], ids=["tune", "train"])
def test_a_folder_that_takes_no_files_is_refused_before_anything_is_paid(run, files, tmp_path, verb):
    code, printed, _ = run(*verb, *files, "--epsilon", 1, "--out", "/proc/settings.toml", "--json")
    assert (code, json.loads(printed)["error"]) == (2, "InputError")
    assert not (tmp_path / "edges.csv.ledger").exists()


def test_a_choice_that_was_paid_for_is_not_lost_when_writing_fails(run, files, small_grid, tmp_path, monkeypatch):
    def full(path, text):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gcon.cli.tune.write_whole", full)
    out = tmp_path / "settings.toml"
    code, printed, _ = run("tune", *files, "--epsilon", 1, "--pay", 0.1, "--draws", 1, "--out", out, "--json")
    message = json.loads(printed)["message"]
    assert code == 9
    assert "No space left" in message
    assert "Charged: epsilon 0.1, delta 0, entry 0 (released) of" in message
    written = tomllib.loads(message.split(":\n", 1)[1])
    assert written["epsilon"] == 0.9
    assert written["inference-restart"] in paid.RESTARTS
