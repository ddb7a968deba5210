"""Tuning: free choices read no edge, the paid one is charged, and both together cost what was asked for."""

import json
import math
import sys
import tomllib

import networkx
import pytest
import torch

import gcon
from gcon.cli import app as cli
from gcon.errors import InputError
from gcon.graphs.edges import public_edges
from gcon.graphs.graph import PrivateGraph
from gcon.pipeline import Settings
from gcon.predict.own_edges import own_edge_predictions
from gcon.privacy.boundary import Private
from gcon.privacy.opening import open_private
from gcon.privacy.randomness import SystemRandomness
from gcon.tune import choose, paid, rehearse
from gcon.tune.choose import tune


@pytest.fixture(scope="module")
def graph():
    return gcon.datasets.social_circles(400, num_classes=3, per_class=10, num_validation=150, num_test=100, seed=3)


@pytest.fixture
def small_grid(monkeypatch):
    monkeypatch.setattr(rehearse, "HIDDEN", (8,))
    monkeypatch.setattr(rehearse, "LOSSES", ("soft-margin",))
    monkeypatch.setattr(rehearse, "RIDGES", (1.0, 1e6))


class Untouchable:
    """Stands for edges that must not be read."""

    def __getattr__(self, name):
        raise AssertionError("edges were read")


def test_free_tuning_reads_no_edge_and_costs_nothing(graph, small_grid):
    sealed = PrivateGraph(graph.nodes, Private(Untouchable(), "edges"), graph.hygiene)
    ledger = gcon.MemoryLedger("circles")
    found = tune(sealed, Settings(epsilon=1.0), ledger=ledger, randomness=SystemRandomness, draws=2)
    assert ledger.entries() == ()
    assert found.cost == gcon.Budget(0.0, 0.0)
    assert {choice.how for choice in found.choices} == {"free", "default"}
    assert found.settings.epsilon == 1.0
    assert len(found.rehearsals) == 2


def test_rehearsal_prefers_the_settings_that_survive_the_noise(graph):
    """At epsilon 0.05 a weak ridge drowns in noise; what is chosen scores best on the validation nodes without edges."""
    candidates = [Settings(epsilon=0.05, ridge=ridge) for ridge in (0.001, 1.0)]
    found = rehearse.rehearse(graph.nodes, candidates, draws=5, randomness=SystemRandomness)
    assert rehearse.best(found).mean == max(rehearsal.mean for rehearsal in found)
    assert all(len(rehearsal.scores) == 5 for rehearsal in found)


def test_paid_choice_is_charged_and_leaves_the_rest(graph, small_grid):
    ledger = gcon.MemoryLedger("circles", ceiling=gcon.Budget(0.4, 0.0))
    found = tune(graph, Settings(epsilon=0.4), pay=0.1, ledger=ledger, randomness=SystemRandomness, draws=1)
    assert ledger.total() == gcon.Budget(0.1, 0.0) == found.cost
    assert found.settings.epsilon == 0.3  # not 0.30000000000000004, which the ceiling would refuse
    assert found.settings.inference_restart in paid.RESTARTS
    assert [choice.how for choice in found.choices if choice.setting == "inference_restart"] == ["paid"]


@pytest.mark.parametrize("pay", [0.0, 1.0, 2.0, -0.1, math.nan])
def test_a_payment_must_leave_something(graph, pay):
    with pytest.raises(InputError, match="pay"):
        tune(graph, Settings(epsilon=1.0), pay=pay, ledger=gcon.MemoryLedger(), randomness=SystemRandomness)


def test_tuning_needs_validation_nodes():
    bare = gcon.datasets.social_circles(60, num_classes=2, per_class=5, num_validation=0, num_test=20, seed=3)
    with pytest.raises(InputError, match="validation"):
        tune(bare, Settings(epsilon=1.0), randomness=SystemRandomness)


@pytest.mark.parametrize("noise_edges", [False, True])
def test_a_large_budget_finds_the_largest_count(graph, noise_edges):
    """At epsilon 200 a candidate that is right one time less often is chosen with probability below e^-50."""
    model = rehearse.rehearse(graph.nodes, [Settings(epsilon=4.0)], draws=1, randomness=SystemRandomness)[0].model
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


def test_one_edge_changes_every_count_by_at_most_two(graph):
    """All graphs of up to five nodes, every edge, every restart: the counts that are compared move by at most 2."""
    model = rehearse.rehearse(graph.nodes, [Settings(epsilon=4.0)], draws=1, randomness=SystemRandomness)[0].model
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


def test_command_writes_a_configuration_that_train_takes(small_grid, tmp_path, monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["gcon", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        return stopped.value.code, capsys.readouterr().out

    assert run("data", "make", "--out", tmp_path, "--nodes", 300, "--quiet")[0] == 0
    files = ["--edges", tmp_path / "edges.csv", "--nodes", tmp_path / "nodes.csv"]
    out = tmp_path / "settings.toml"
    code, printed = run("tune", *files, "--epsilon", 1, "--pay", 0.1, "--draws", 1, "--out", out, "--json")
    assert code == 0
    found, written = json.loads(printed), tomllib.loads(out.read_text())
    assert written == found["settings"]
    assert found["cost"] == {"epsilon": 0.1, "delta": 0.0}
    assert run("train", *files, "--config", out, "--out", tmp_path / "model", "--quiet")[0] == 0
    shown = json.loads(run("ledger", "show", tmp_path / "edges.csv.ledger", "--json")[1])
    assert shown["total"]["epsilon"] == 1.0
    assert [entry["mechanism"] for entry in shown["entries"]] == ["private selection", "objective perturbation (GCON)"]
    # An existing file is never replaced, and nothing is paid then.
    assert run("tune", *files, "--epsilon", 1, "--pay", 0.1, "--out", out, "--json")[0] == 2
    assert json.loads(run("ledger", "show", tmp_path / "edges.csv.ledger", "--json")[1])["total"]["epsilon"] == 1.0


def test_every_choice_says_what_it_rests_on(graph, small_grid):
    found = tune(graph, Settings(epsilon=1.0), randomness=SystemRandomness, draws=1)
    assert all(choice.how in choose.How.__args__ and choice.why for choice in found.choices)
