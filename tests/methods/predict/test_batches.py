"""Predictions a batch at a time: the same rows, and a file that is there whole or not at all."""

import os
import stat
from dataclasses import replace

import numpy as np
import polars
import pytest
import torch
from polars.testing import assert_frame_equal

from gcon.errors import AccessRefusedError, InputError, PrivateComputationError
from gcon.files.node_ids import as_node_ids
from gcon.methods import model as models
from gcon.methods import moments, no_edges, own_edges
from gcon.methods.model import joined
from gcon.methods.no_edges import batches_without_edges, predict_without_edges
from gcon.methods.own_edges import deliver_from_own_edges, predict_from_own_edges
from gcon.methods.predictions import Predictions
from gcon.nodes import row_slices
from gcon.privacy.boundary import Private
from gcon.privacy.gates import answer_owners
from gcon.privacy.ledger import MemoryLedger, Outcome
from gcon.release.prediction_files import prediction_writer, write_predictions

SUFFIXES = (".csv", ".tsv", ".parquet")


@pytest.fixture
def small_batches(monkeypatch):
    """Batches of seven nodes."""
    for module in (no_edges, own_edges, models):
        monkeypatch.setattr(module, "row_slices", lambda count: row_slices(count, 7))
    for module in (models, moments):
        monkeypatch.setattr(module, "BATCH_ROWS", 7)


def rows(count, start=0, **changes):
    generator = torch.Generator().manual_seed(start)
    found = Predictions(
        classes=torch.randint(0, 3, (count,), generator=generator),
        probabilities=torch.rand(count, 3, generator=generator, dtype=torch.float64),
        class_names=("red", "a, blue", 7),
        access="none",
    )
    return replace(found, **changes)


def read(path):
    return (
        polars.read_parquet(path)
        if path.suffix == ".parquet"
        else polars.read_csv(path, separator=",\t"[path.suffix == ".tsv"])
    )


def write_all(path, parts):
    with prediction_writer(path, range(20), owner_only=False) as write:
        for part in parts:
            if isinstance(part, Exception):
                raise part
            write(part)


def same(one, other):
    torch.testing.assert_close(one.probabilities, other.probabilities, rtol=0, atol=1e-12)
    assert torch.equal(one.classes, other.classes)
    assert (one.access, one.class_names, one.no_promise) == (other.access, other.class_names, other.no_promise)


def test_batches_are_the_whole(model, graph, small_batches, monkeypatch):
    parts = list(batches_without_edges(model, graph.nodes.features))
    assert [len(part.classes) for part in parts] == [7] * 6 + [6]
    monkeypatch.undo()
    same(joined(parts), predict_without_edges(model, graph.nodes.features))


def test_only_a_batch_is_read_at_a_time(model, graph, small_batches):
    read = []

    class Watched(torch.Tensor):
        def __getitem__(self, chosen):
            found = self.as_subclass(torch.Tensor)[chosen]
            read.extend([chosen] if len(found) else [])  # no row at all tells the width, and reads nothing
            return found

    batches = batches_without_edges(model, graph.nodes.features.as_subclass(Watched))
    assert read == []
    next(batches)
    next(batches)
    assert read == [slice(0, 7), slice(7, 14)]


def test_own_edges_in_batches(model, graph, small_batches, monkeypatch):
    parts, ledger = [], MemoryLedger()
    deliver_from_own_edges(model, graph.nodes.features, graph.edges, parts.append, ledger=ledger, restart=0.4)
    assert [len(part.classes) for part in parts] == [7] * 6 + [6]
    assert [entry.outcome for entry in ledger.entries()] == [Outcome.RELEASED]
    monkeypatch.undo()
    expected = predict_from_own_edges(model, graph.nodes.features, graph.edges, ledger=MemoryLedger(), restart=0.4)
    same(joined(parts), expected)


def test_own_edges_in_batches_refuse_public_edges(model, graph):
    with pytest.raises(AccessRefusedError, match="private edges"):
        deliver_from_own_edges(model, graph.nodes.features, object(), print, ledger=MemoryLedger())


def test_a_delivery_that_fails_is_withheld(model, graph, tmp_path, small_batches):
    ledger, path = MemoryLedger(), tmp_path / "own.csv"
    with (
        pytest.raises(PrivateComputationError),
        prediction_writer(path, range(20), owner_only=True) as write,  # there are more nodes than ids
    ):
        deliver_from_own_edges(model, graph.nodes.features, graph.edges, write, ledger=ledger)
    assert [entry.outcome for entry in ledger.entries()] == [Outcome.WITHHELD]
    assert list(tmp_path.iterdir()) == []


def test_no_nodes_at_all(model):
    assert len(predict_without_edges(model, torch.empty(0, 6)).classes) == 0


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "ids",
    [
        range(20),
        [f"n{k}" for k in range(20)],
        as_node_ids(list(range(100, 120))),
        as_node_ids([f"n{k}" for k in range(20)]),
    ],
)
def test_batches_are_written_as_one_table(tmp_path, suffix, ids):
    parts = [rows(7), rows(7, 1), rows(6, 2)]
    whole, pieces = tmp_path / f"whole{suffix}", tmp_path / f"pieces{suffix}"
    write_predictions(whole, ids, joined(parts))
    with prediction_writer(pieces, ids, owner_only=False) as write:
        for part in parts:
            write(part)
        assert not pieces.exists()  # before it is complete
    if suffix != ".parquet":
        assert pieces.read_bytes() == whole.read_bytes()
    assert_frame_equal(read(pieces), read(whole))
    expected = joined(parts)
    frame = read(whole)
    assert frame.columns == ["id", "label", "probability_red", "probability_a, blue", "probability_7", "audience"]
    assert frame["id"].to_list() == (list(ids) if not hasattr(ids, "tolist") else ids.tolist())
    assert frame["label"].to_list() == [str(label) for label in expected.labels]
    assert np.array_equal(frame[:, 2:5].to_numpy(), expected.probabilities.numpy())
    assert set(frame["audience"]) == {"public"}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("old", [None, b"what was there"])
def test_a_failure_in_between_leaves_what_was_there(tmp_path, suffix, old):
    path = tmp_path / f"labels{suffix}"
    if old is not None:
        path.write_bytes(old)
    with pytest.raises(OSError, match="unplugged"):
        write_all(path, [rows(7), OSError("unplugged")])
    assert [entry.name for entry in tmp_path.iterdir()] == ([] if old is None else [path.name])
    assert old is None or path.read_bytes() == old


@pytest.mark.parametrize("counts", [[], [7], [7, 12], [7, 14], [21]])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_another_number_of_rows_than_ids(tmp_path, counts, suffix):
    with pytest.raises(InputError, match="ids: one a prediction; got 20"):
        write_all(tmp_path / f"labels{suffix}", [rows(count) for count in counts])
    assert list(tmp_path.iterdir()) == []


def test_too_many_rows_for_owners_leave_no_way_to_the_edges(tmp_path):
    """The error that a gate withheld has frames with opened edges: nobody may keep it."""
    opened = ["opened edges"]

    def answers(edges):
        write(rows(7, access="own-edges"))
        write(rows(len(edges), access="own-edges"))

    with (
        pytest.raises(PrivateComputationError),
        prediction_writer(tmp_path / "labels.csv", range(7), owner_only=True) as write,
    ):
        answer_owners(answers, Private(opened, "edges"), ledger=MemoryLedger(), purpose="test")
    kept = [cell.cell_contents for cell in write.__closure__]
    assert [each for each in kept if isinstance(each, BaseException) and each.__traceback__ is not None] == []


def test_what_may_not_be_published_is_not_written_for_everybody(tmp_path):
    with (
        pytest.raises(ValueError, match="may not be published"),
        prediction_writer(tmp_path / "labels.csv", range(7), owner_only=False) as write,
    ):
        write(rows(7, access="own-edges"))
    assert list(tmp_path.iterdir()) == []


def test_half_a_table_is_never_readable_by_others(tmp_path):
    before = os.umask(0o022)
    try:
        with prediction_writer(tmp_path / "labels.csv", range(14), owner_only=True) as write:
            write(rows(7, access="own-edges"))
            assert [stat.S_IMODE(entry.stat().st_mode) for entry in tmp_path.iterdir()] == [0o600]
            write(rows(7, access="own-edges"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "labels.csv").stat().st_mode) == 0o600
