"""Moments on neighbouring graphs with one seed: only what is released with noise, and what follows from it, differs."""

import json
import logging
import warnings

import pytest
import torch

from gcon import MemoryLedger, NodeClassifier
from gcon.edges.edge_list import EdgeList
from gcon.errors import PrivateComputationError
from gcon.mechanisms.counts import NeighbourCounts
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.methods import moments
from gcon.privacy.ledger import Outcome
from gcon.release.layout import release_files

pytestmark = pytest.mark.slow


def told(model, ledger, stages):
    """All that is said of a run but the numbers that follow from the noisy statistics."""
    statistics = [
        (each.name, each.value.shape, each.standard_deviation, each.symmetric, each.sensitivity, each.share)
        for each in model.statistics
    ] + [(each.value.shape, each.rate, each.rounds) for each in model.tables]
    chosen = ("weights", "regressions")  # so many as released counts say
    return (
        model.receipt,
        (model.class_names, model.training_nodes, model.asked),
        str(model.statement()),
        model.statement().fields,
        statistics,
        {name: (tensor.dtype, tensor.shape[name in chosen :]) for name, tensor in model.tensors().items()},
        model.labels.tolist(),
        ledger.entries(),
        stages,
    )


@pytest.mark.parametrize(("epsilon", "counts"), [(0.5, False), (6.0, True)], ids=["moments", "counts"])
def test_only_noisy_numbers_differ(neighbours, run_moments, caplog, capfd, epsilon, counts):
    caplog.set_level(logging.DEBUG)
    seen, released, counted = [], [], []
    for graph in neighbours.pairs:
        caplog.clear()
        model, ledger, stages = run_moments(graph, epsilon)
        assert bool(model.tables) == counts
        printed = capfd.readouterr()
        assert printed.out == printed.err == ""
        logged = [(record.name, record.levelno, record.getMessage()) for record in caplog.records]
        seen.append((told(model, ledger, stages), logged))
        # All of it: one-way counts are the same where the edge joins two nodes that nobody counts.
        released.append(b"".join(each.value.numpy().tobytes() for each in (*model.statistics, *model.tables)))
        counted.append(b"".join(each.value.numpy().tobytes() for each in model.tables))
    assert all(other == seen[0] for other in seen)
    assert len(set(released)) == len(released)  # the test can see a difference
    assert (len(set(counted)) > 1) == counts  # in the tables too


def test_the_same_graph_repeats_to_the_last_byte(neighbours, run_moments):
    files = [release_files(run_moments(neighbours.full)[0]) for _ in range(2)]
    assert files[0] == files[1]


def test_how_the_edges_were_written_does_not_matter(neighbours, run_moments):
    order = torch.randperm(neighbours.edge_index.shape[1], generator=torch.Generator().manual_seed(0))
    shuffled = type(neighbours)(neighbours.nodes, neighbours.edge_index[:, order].flip(0).repeat(1, 2))
    assert release_files(run_moments(neighbours.full)[0]) == release_files(run_moments(shuffled.full)[0])


@pytest.mark.parametrize("epsilon", [0.1, 8.0, float("inf")])
def test_no_number_of_the_plan_depends_on_an_edge(neighbours, run_moments, epsilon):
    receipts = [run_moments(graph, epsilon)[0].receipt for graph in neighbours.pairs]
    for receipt in receipts:
        assert len(receipt.plan["releases"]) in ((4, 5) if epsilon > 1 else (4,))
        assert receipt.plan["releases"][-1]["sensitivity"] == 2  # of the count of right answers
    assert all(receipt == receipts[0] for receipt in receipts)
    assert len({json.dumps(receipt.plan, sort_keys=True, default=str) for receipt in receipts}) == 1


@pytest.mark.parametrize("where", ["EdgeMoments.precisely", "NeighbourCounts.apply", "_right_answers"])
def test_a_failed_run_tells_the_same_on_both_graphs(neighbours, run_moments, monkeypatch, where):
    def failing(*given):
        raise ArithmeticError(f"{next(each for each in given if isinstance(each, EdgeList)).num_edges} edges")

    owner = {"EdgeMoments.precisely": EdgeMoments, "NeighbourCounts.apply": NeighbourCounts, "_right_answers": moments}
    monkeypatch.setattr(owner[where], where.rpartition(".")[2], failing)
    messages = set()
    for graph in neighbours.pairs:
        with pytest.raises(PrivateComputationError) as raised:
            run_moments(graph, 6.0)
        assert raised.value.__cause__ is None
        messages.add((str(raised.value), raised.value.args))
    assert len(messages) == 1


def test_training_tells_no_warning(neighbours, run_moments):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run_moments(neighbours.full)
    assert not caught


def test_the_estimator_keeps_nothing_else(neighbours):
    for graph in (neighbours.full, neighbours.without(3)):
        ledger = MemoryLedger("circles")
        model = NodeClassifier(random_state=5, ledger=ledger).fit(graph)
        assert [name for name in vars(model) if name.endswith("_")] == ["model_"]
        assert [entry.outcome for entry in ledger.entries()] == [Outcome.RELEASED]
