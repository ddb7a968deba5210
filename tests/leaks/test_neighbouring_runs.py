"""Train on neighbouring graphs with one seed: nothing but the weights may differ."""

import io
import logging
import math
import pickle
import warnings
from dataclasses import fields, replace

import pytest
import torch
from tests.opened import open_private

import gcon.mechanisms.perturbed_objective
from gcon import GCON, MemoryLedger
from gcon.edges.schemes import Schemes
from gcon.errors import InputError, NoCertificateError
from gcon.learn.encoder import Encoder
from gcon.mechanisms.aggregates import Aggregates
from gcon.methods.objective import Objective
from gcon.privacy.ledger import Outcome
from gcon.privacy.randomness import SystemRandomness


def same_encoder(first: Encoder, second: Encoder) -> bool:
    values = [(getattr(first, entry.name), getattr(second, entry.name)) for entry in fields(Encoder)]
    return all(torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in values)


def test_only_the_weights_differ(neighbours, run, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    seen = []
    for graph in neighbours.pairs:
        caplog.clear()
        model, ledger, stages = run(graph)
        told = capfd.readouterr()
        logged = [(record.name, record.levelno, record.getMessage()) for record in caplog.records]
        seen.append((model, ledger.entries(), stages, told.out, told.err, logged))
    first = seen[0]
    for other in seen[1:]:
        assert other[0].receipt == first[0].receipt
        assert (other[0].record(), other[0].class_names) == (first[0].record(), first[0].class_names)
        assert torch.equal(other[0].training_rows, first[0].training_rows)
        assert same_encoder(other[0].encoder, first[0].encoder)
        assert str(other[0].statement()) == str(first[0].statement())
        assert other[0].statement().fields == first[0].statement().fields
        assert other[1:] == first[1:]
        assert not torch.equal(other[0].weights, first[0].weights)
        assert other[0].weights.shape == first[0].weights.shape
    assert first[3] == first[4] == ""


class Stored(pickle.Pickler):
    """Torch writes memory addresses beside a tensor's numbers; this writes the numbers alone."""

    def reducer_override(self, value):
        if isinstance(value, torch.Tensor):
            return torch.tensor, (value.tolist(), value.dtype)
        return NotImplemented


def stored(model) -> bytes:
    file = io.BytesIO()
    Stored(file).dump(model)
    return file.getvalue()


def test_every_stored_byte_but_the_weights_is_the_same(neighbours, run):
    models = [run(graph)[0] for graph in neighbours.pairs]
    blank = torch.zeros_like(models[0].weights)
    assert len({stored(replace(model, weights=blank)) for model in models}) == 1
    assert len({stored(model) for model in models}) == len(models)
    assert len({len(stored(model)) for model in models}) == 1


def test_the_same_graph_repeats_to_the_last_bit(neighbours, run):
    assert torch.equal(run(neighbours.full)[0].weights, run(neighbours.full)[0].weights)


def test_the_weights_do_not_depend_on_how_the_edges_were_written(neighbours, run):
    order = torch.randperm(neighbours.edge_index.shape[1], generator=torch.Generator().manual_seed(0))
    shuffled = replace(neighbours, edge_index=neighbours.edge_index[:, order].flip(0).repeat(1, 2))
    assert torch.equal(run(neighbours.full)[0].weights, run(shuffled.full)[0].weights)


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0.1},
        {"epsilon": math.inf},
        {"schemes": Schemes(restart=0.2, steps=(math.inf,))},
        {"schemes": Schemes(restart=0.0, steps=(2,), clip=0.25)},
        {"expand": "labelled", "ridge": 0.01},
        {"loss": "pseudo-huber:0.2"},
    ],
    ids=str,
)
def test_no_number_of_the_plan_depends_on_an_edge(neighbours, run, settings, change):
    """Section 3, item 9 of the analysis: delta, ridge, influence and every other planned number stay."""
    changed = replace(settings, **change)
    records = [run(graph, changed)[0].receipt for graph in (neighbours.full, neighbours.without(0))]
    assert records[0] == records[1]
    assert records[0].plan == records[1].plan
    assert {"edge_influence", "ridge", "extra_ridge", "noise_rate", "delta", "final_noise"} <= set(records[0].plan)


def test_the_bounds_do_not_depend_on_an_edge(neighbours):
    """They are computed from features alone, and reading edges afterwards changes nothing in them."""
    aggregates = Aggregates(neighbours.nodes.features, Schemes(restart=0.3, steps=(1, 4, math.inf)))
    assert not any("edges" in entry.name for entry in fields(aggregates) if entry.init)
    found = [repr(aggregates)]
    for graph in neighbours.pairs:
        aggregates.of(open_private(graph.edges))
        found.append(repr(aggregates))
    assert len(set(found)) == 1
    assert "edge_influence=" in found[0]


def test_the_default_delta_is_one_of_the_nodes(neighbours, run):
    assert run(neighbours.full)[0].receipt.budget.delta == 1e-5


def test_a_model_without_propagation_does_not_depend_on_edges_at_all(neighbours, run, settings):
    for schemes in (Schemes(restart=1.0, steps=(3,)), Schemes(restart=0.5, steps=(0,))):
        models = [run(graph, replace(settings, schemes=schemes))[0] for graph in neighbours.pairs]
        assert all(torch.equal(model.weights, models[0].weights) for model in models)


def test_a_failed_run_tells_the_same_on_both_graphs(neighbours, run, settings, monkeypatch):
    monkeypatch.setattr(gcon.mechanisms.perturbed_objective, "MOST_ITERATIONS", 1)
    messages = set()
    for graph in neighbours.pairs:
        with pytest.raises(NoCertificateError) as raised:
            run(graph)
        messages.add((str(raised.value), raised.value.args))
    assert len(messages) == 1


def test_training_tells_no_warning(neighbours, run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(neighbours.full)
    assert not caught


def test_graphs_and_aggregates_print_no_edge(neighbours):
    shown = {f"{graph.edges}{graph.hygiene}{graph.edges!r}" for graph in neighbours.pairs}
    assert len(shown) == 1
    assert len({repr(graph) for graph in neighbours.pairs}) == 1


def test_the_estimator_keeps_nothing_else(neighbours):
    fitted = []
    for graph in (neighbours.full, neighbours.without(3)):
        model = GCON(hidden=4, epochs=5, random_state=5, ledger=MemoryLedger("circles")).fit(graph)
        assert [name for name in vars(model) if name.endswith("_")] == ["model_"]
        fitted.append((model.classes_.tolist(), model.n_features_in_, model.model_.record(), model.model_.class_names))
    assert fitted[0] == fitted[1]


def test_a_secure_run_differs_in_the_weights_only(neighbours, settings):
    ledgers = [MemoryLedger("circles") for _ in range(2)]
    models = [
        settings.train(neighbours.full.nodes, neighbours.full.edges, ledger=ledger, randomness=SystemRandomness())
        for ledger in ledgers
    ]
    assert not torch.equal(models[0].weights, models[1].weights)
    assert models[0].receipt.plan == models[1].receipt.plan
    assert models[0].receipt.keeps_promise
    assert [ledger.entries()[0].outcome for ledger in ledgers] == [Outcome.RELEASED] * 2


def test_a_shared_encoder_changes_nothing(neighbours, run):
    model = run(neighbours.full)[0]
    assert torch.equal(run(neighbours.full, encoder=model.encoder)[0].weights, model.weights)


def test_settings_are_checked_before_anything_is_charged(neighbours, settings):
    for change in (
        {"epsilon": 0.0},
        {"delta": 0.0},
        {"loss": "hinge"},
        {"ridge": 0.0},
        {"noise_share": 1.0},
        {"margin": 0.0},
        {"expand": "some"},
        {"influence": "small"},
    ):
        ledger = MemoryLedger()
        with pytest.raises(InputError):
            replace(settings, **change).train(
                neighbours.full.nodes, neighbours.full.edges, ledger=ledger, randomness=SystemRandomness()
            )
        assert not ledger.entries()


def test_a_setting_that_prediction_would_refuse_is_refused_before_it_is_paid_for(neighbours, settings):
    ledger = MemoryLedger()
    with pytest.raises(InputError, match="inference_restart"):
        replace(settings, inference_restart=2.0).train(
            neighbours.full.nodes, neighbours.full.edges, ledger=ledger, randomness=SystemRandomness()
        )
    assert not ledger.entries()


def test_settings_hold_public_numbers_only():
    assert {entry.name for entry in fields(Objective)} == {
        "epsilon",
        "delta",
        "encoder",
        "schemes",
        "influence",
        "expand",
        "loss",
        "ridge",
        "noise_share",
        "margin",
        "inference_restart",
        "device",
        "protect_edges",
    }
