"""The ledger in a file: what is kept there, who reads it again, and an estimator that pays into it."""

import copy
import json
import math
import os
import pickle
import stat
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from gcon import GCON
from gcon.errors import BudgetExceededError, InputError
from gcon.mechanisms.composition import gaussian_total
from gcon.privacy.budget import Budget, compose
from gcon.privacy.ledger import Outcome
from gcon.privacy.ledger_file import FileLedger

# --- what is kept in the file -----------------------------------------------------------------------------------------


def test_another_object_reads_what_the_first_wrote(path, small_ledger):
    ledger = small_ledger(path)
    again = FileLedger(path)
    assert again.data_set == "friendships"
    assert again.entries() == ledger.entries()
    assert again.ceiling() == Budget(9.0, 1e-3)
    assert again.total() == ledger.total() == Budget(3.0, 2e-5)
    assert again.entries()[0].request.plan == {"noise": [1.5, None, "words", math.inf]}
    assert again.entries()[1].request.purpose == "Übung"
    assert FileLedger(path, data_set="friendships").verify().ok


def test_the_lines(path, head, small_ledger):
    small_ledger(path)
    data = path.read_bytes()
    assert data.isascii()
    assert data.endswith(b"\n")
    lines = data.decode().splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["line"] for record in records] == ["header", "ceiling", "reserve", "reserve", "settle"]
    for line, record in zip(lines, records, strict=True):
        assert line == json.dumps(record, sort_keys=True, separators=(",", ":"))
        assert len(record["hash"]) == 64
    assert records[0]["data_set"] == "friendships"
    assert records[0]["version"] == 1
    assert records[1]["ceiling"] == {"epsilon": 9.0, "delta": 1e-3}
    assert records[2]["number"] == records[4]["number"] == 0
    assert records[4]["outcome"] == "released"
    assert json.loads(head(path).read_bytes()) == {"lines": 5, "last_hash": records[-1]["hash"]}


def test_infinity_is_a_word(path, release):
    ledger = FileLedger(path, data_set="friendships")
    ledger.set_ceiling(Budget(math.inf, 1e-5))
    ledger.reserve(release(math.inf, 0.0))
    text = path.read_text()
    assert text.count('"epsilon":"inf"') == 2
    assert "Infinity" not in text
    assert FileLedger(path).ceiling() == Budget(math.inf, 1e-5)
    assert FileLedger(path).total() == Budget(math.inf, 0.0)


def test_the_settlement_does_not_show_the_run_time(path, release):
    times = iter([datetime(2031, 1, day, tzinfo=UTC) for day in (1, 2)])
    ledger = FileLedger(path, data_set="friendships", clock=lambda: next(times))  # asking a third time would raise
    ledger.settle(ledger.reserve(release()), Outcome.RELEASED)
    assert json.loads(path.read_bytes().splitlines()[-1])["time"] == "2031-01-02T00:00:00+00:00"


def test_the_ceiling_can_be_changed_and_lifted(path, release):
    ledger = FileLedger(path, data_set="friendships")
    assert ledger.ceiling() is None
    ledger.reserve(release(3.0))
    ledger.set_ceiling(Budget(2.0, 1e-3))
    with pytest.raises(BudgetExceededError):
        FileLedger(path).reserve(release(0.1))
    ledger.set_ceiling(Budget(4.0, 1e-3))
    FileLedger(path).reserve(release(1.0))
    FileLedger(path).set_ceiling(None)
    ledger.reserve(release(50.0))
    assert ledger.total().epsilon == 54.0
    with pytest.raises(InputError, match="ceiling: must be a Budget or None"):
        ledger.set_ceiling(2.0)


def test_only_the_owner_may_read_the_files(path, release, small_ledger):
    path.touch(mode=0o666)
    small_ledger(path)
    path.write_bytes(path.read_bytes() + b"{")
    FileLedger(path).reserve(release())
    files = sorted(path.parent.iterdir())
    assert [file.name.removeprefix(path.name) for file in files] == ["", ".head", ".lock", ".torn"]
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600] * 4


def test_an_entry_is_on_the_disk_before_it_is_acknowledged(path, monkeypatch, release, head):
    ledger = FileLedger(path, data_set="friendships")
    synced, fsync = [], os.fsync

    def watch(descriptor):
        synced.append((os.readlink(f"/proc/self/fd/{descriptor}"), os.fstat(descriptor).st_size))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watch)
    ledger.reserve(release())
    assert synced[0] == (str(path), path.stat().st_size)
    assert [name for name, _ in synced] == [str(path), str(head(path)) + ".new", str(path.parent)]


def test_a_reservation_may_be_settled_by_another_process(path, release, small_ledger):
    reservation = small_ledger(path).reserve(release())
    FileLedger(path).settle(pickle.loads(pickle.dumps(reservation)), Outcome.RELEASED)
    assert FileLedger(path).entries()[-1].outcome is Outcome.RELEASED


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda ledger: pickle.loads(pickle.dumps(ledger))])
def test_copies_pay_the_same_account(path, duplicate, release, small_ledger):
    ledger = small_ledger(path)
    other = duplicate(ledger)
    other.reserve(release(4.0))
    assert ledger.total().epsilon == 7.0
    assert other.entries() == ledger.entries()
    with pytest.raises(BudgetExceededError):
        ledger.reserve(release(3.0))


def test_a_pickle_holds_the_path_alone_and_never_starts_anew(path, small_ledger):
    stored = pickle.dumps(small_ledger(path))
    assert b"noisy thing" not in stored
    for file in path.parent.iterdir():
        file.unlink()
    with pytest.raises(InputError, match="no ledger at"):
        pickle.loads(stored)
    assert not list(path.parent.iterdir())


def test_the_repr_names_file_and_data_and_what_is_spent(path, small_ledger):
    ledger = small_ledger(path)
    words = f"FileLedger({str(path)!r}, data_set='friendships'"
    assert repr(ledger) == f"{words}, spent={ledger.total()}, ceiling={ledger.ceiling()})"
    path.write_text("damaged")
    assert repr(ledger) == f"{words}, which cannot be read now)"


@settings(max_examples=40, deadline=None)
@given(
    epsilon=st.floats(0) | st.just(math.inf),
    delta=st.floats(0, 1, exclude_max=True),
    purpose=st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=200).filter(
        str.strip
    ),
    plan=st.dictionaries(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.just("words"),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
            max_leaves=5,
        ),
        max_size=4,
    ),
)
def test_what_is_written_is_what_is_read(epsilon, delta, purpose, plan, release):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        ledger = FileLedger(Path(folder) / "ledger", data_set=purpose)
        request = release(epsilon, delta, purpose, plan=plan)
        ledger.reserve(request)
        (entry,) = FileLedger(Path(folder) / "ledger").entries()
        assert entry.request == request
        assert entry.data_set == purpose
        assert ledger.total() == compose([request.cost])


@pytest.mark.parametrize("distance", [0.1, 1 / 3, 5e-324, 1e300, np.float64(0.7), None])
def test_the_gaussian_distance_comes_back_exactly(path, distance, release):
    ledger = FileLedger(path, data_set="friendships")
    request = release(gaussian_distance=distance)
    ledger.settle(ledger.reserve(request), Outcome.WITHHELD)
    (entry,) = FileLedger(path).entries()
    assert entry.request == request
    assert entry.request.gaussian_distance == distance
    totals = [gaussian_total(books.entries(), extra_delta=1e-6) for books in (ledger, FileLedger(path))]
    assert totals[0] == totals[1]


def test_plans_with_numbers_of_numpy_and_tuples(path, release):
    ledger = FileLedger(path, data_set="friendships")
    ledger.reserve(release(np.float64(0.5), plan={"a": np.float32(0.5), "b": np.int64(3), "c": (1, 2)}))
    assert ledger.entries()[0].request.plan == {"a": 0.5, "b": 3, "c": [1, 2]}
    assert ledger.total() == Budget(0.5, 1e-5)


# --- together with the rest -------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings(r"ignore:`torch\.jit\.script` is deprecated:DeprecationWarning")
def test_an_estimator_pays_into_the_file(path):
    ledger = FileLedger(path, data_set="friendships")
    features = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    labels, edges = np.arange(20) % 2, [(0, 1), (1, 2)]
    model = GCON(epsilon=0.5, epochs=1, hidden=None, expand="labelled", ledger=ledger)
    model.fit(features, labels, edges=edges)
    assert model.model_.receipt.total == FileLedger(path).total() == ledger.entries()[0].request.cost
    assert ledger.entries()[0].request.plan == model.model_.receipt.plan
    pickle.loads(pickle.dumps(clone(model))).set_params(epsilon=math.inf).fit(features, labels, edges=edges)
    assert ledger.total().epsilon == math.inf
    ledger.set_ceiling(Budget(1.0, 0.1))
    with pytest.raises(BudgetExceededError):
        model.fit(features, labels, edges=edges)
    assert {entry.outcome for entry in ledger.entries()} == {Outcome.RELEASED}
    assert ledger.verify().ok
