"""What people are told at their own line: warnings, what a Ctrl-C has cost, and what a loaded model is."""

import errno
import os
import warnings

import numpy as np
import pytest
from sklearn.exceptions import DataConversionWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gcon
from gcon.errors import AnswersWarning, LedgerRefusedError, PromiseWarning
from gcon.privacy.ledger import Outcome


def line_of(function):
    return function.__code__.co_filename, function.__code__.co_firstlineno


CASES = {
    "no edges": (PromiseWarning, lambda parts, _: gcon.GCON(epochs=1).fit(parts.features, parts.labels)),
    "a large delta": (PromiseWarning, lambda parts, _: gcon.GCON(epochs=1, delta=0.1).fit(parts.private())),
    "scales": (
        AnswersWarning,
        lambda parts, _: gcon.GCON(epochs=1).fit(
            np.asarray(parts.features) * ([1e6] + [1] * 7), parts.labels, edges=[]
        ),
    ),
    "no ledger": (PromiseWarning, lambda parts, model: model.fit(parts.private())),
    "a column of labels": (
        DataConversionWarning,
        lambda parts, _: gcon.GCON(epochs=1).fit(
            np.asarray(parts.features), np.asarray(parts.labels)[:, None], edges=[]
        ),
    ),
    "a part of the table": (AnswersWarning, lambda parts, model: model.predict(np.asarray(parts.features)[:60])),
    "its probabilities": (AnswersWarning, lambda parts, model: model.predict_proba(np.asarray(parts.features)[:60])),
    "its score": (
        AnswersWarning,
        lambda parts, model: model.score(np.asarray(parts.features)[:60], np.asarray(parts.labels)[:60]),
    ),
    "its report": (
        AnswersWarning,
        lambda parts, model: model.report(
            np.asarray(parts.features)[:60], np.asarray(parts.labels)[:60], test_mask=np.arange(60) < 40, control=False
        ),
    ),
    "small classes": (UserWarning, lambda *_: list(gcon.model_selection.node_folds([0, 0, 0, 1, 1, 1, 2], 3))),
    "in a pipeline": (
        PromiseWarning,
        lambda parts, _: make_pipeline(StandardScaler(), gcon.GCON(epochs=1)).fit(parts.features, parts.labels),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_warnings_point_at_the_line_of_the_caller(parts, case):
    kind, action = CASES[case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = gcon.NodeClassifier().fit(parts.private())
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        action(parts, model)
    told = [each for each in heard if issubclass(each.category, kind)]
    file, first = line_of(action)
    assert told
    assert [(each.filename, each.lineno - first in range(4)) for each in told] == [(file, True)] * len(told)


def interrupting(stage):
    def stop(now, _):
        if now == stage:
            raise KeyboardInterrupt

    return stop


@pytest.mark.parametrize("kept", ["in a file", "in memory", "nowhere"])
@pytest.mark.parametrize("stage", ["learn from the first release", "second release", "learn from what was released"])
def test_a_stop_after_the_charge_says_what_it_cost(parts, tmp_path, stage, kept):
    ledger = {
        "in a file": lambda: gcon.FileLedger(tmp_path / "friends.ledger", data_set="friends"),
        "in memory": lambda: gcon.MemoryLedger("friends"),
        "nowhere": lambda: None,
    }[kept]()
    if ledger is not None:
        gcon.GCON(epsilon=0.5, epochs=1, ledger=ledger).fit(parts.private())
    model = gcon.NodeClassifier(epsilon=16.0, ledger=ledger, callback=interrupting(stage))  # counts are bought for sure
    with pytest.raises(KeyboardInterrupt) as caught:
        model.fit(parts.private())
    where = f"the ledger {tmp_path / 'friends.ledger'}" if kept == "in a file" else "the ledger of 'friends'"
    assert caught.value.__notes__ == [
        "Spent: epsilon 16, delta 1e-05. No ledger was given, so nobody has it written down."
        if ledger is None
        else f"Charged: epsilon 16, delta 1e-05, entry 1 of {where}; it stays spent."
    ]
    if ledger is not None:
        assert ledger.total().epsilon == 16.5


def test_a_stop_before_the_charge_says_that_nothing_was_charged(parts):
    ledger = gcon.MemoryLedger("friends")
    for stage in ("learn without edges", "first release"):  # before the block, and in it, before anything is opened
        with pytest.raises(KeyboardInterrupt) as caught:
            gcon.NodeClassifier(ledger=ledger, callback=interrupting(stage)).fit(parts.private())
        assert caught.value.__notes__ == ["Nothing was charged."]
    assert ledger.total().epsilon == 0


def test_a_ledger_on_a_full_disk_says_that_nothing_was_charged(parts, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    ledger = gcon.FileLedger(tmp_path / "friends.ledger", data_set="friends")
    monkeypatch.setattr("gcon.privacy.ledger_file._write", full)
    with pytest.raises(LedgerRefusedError, match="No space left on device") as caught:
        gcon.NodeClassifier(ledger=ledger).fit(parts.private())
    monkeypatch.undo()
    assert caught.value.__notes__ == ["Nothing was charged."]
    assert ledger.total().epsilon == 0


class Interrupted:
    """A ledger whose `reserve`, or whose `settle`, ends otherwise than it should."""

    counted, data_set = True, "friends"

    def __init__(self, *, reserve=None, settle=None):
        self.books = gcon.MemoryLedger("friends")
        self.check, self.entries = self.books.check, self.books.entries
        self.failures = {"reserve": reserve, "settle": settle}

    def reserve(self, request):
        made = self.books.reserve(request)
        if self.failures["reserve"]:
            raise self.failures["reserve"]
        return made

    def settle(self, reservation, outcome):
        if self.failures["settle"]:
            raise self.failures["settle"]
        self.books.settle(reservation, outcome)


def test_a_stop_in_the_charge_itself_claims_neither(parts):
    ledger = Interrupted(reserve=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt) as caught:
        gcon.NodeClassifier(ledger=ledger).fit(parts.private())
    said = "Stopped while epsilon 1, delta 1e-05 was being charged: the ledger of 'friends' tells whether it is."
    assert caught.value.__notes__ == [said]


@pytest.mark.parametrize("failure", [LedgerRefusedError("no room"), KeyboardInterrupt()])
@pytest.mark.filterwarnings("ignore::gcon.errors.UnsettledWarning")
def test_what_could_not_be_withdrawn_counts_as_charged(parts, failure):
    ledger = Interrupted(settle=failure)
    with pytest.raises(KeyboardInterrupt) as caught:
        gcon.NodeClassifier(ledger=ledger, callback=interrupting("first release")).fit(parts.private())
    assert ledger.entries()[0].outcome is Outcome.RESERVED
    assert caught.value.__notes__ == [
        "Charged: epsilon 1, delta 1e-05, entry 0 of the ledger of 'friends'; it stays spent."
    ]


@pytest.mark.parametrize("failure", [MemoryError(), PromiseWarning("released again")])
def test_an_error_that_comes_after_the_charge_hides_nothing(parts, failure):
    """A library's, or a warning that was made an error: such errors do not say what was charged themselves."""
    with pytest.raises(type(failure)) as caught:
        gcon.NodeClassifier(ledger=Interrupted(reserve=failure)).fit(parts.private())
    said = "Stopped while epsilon 1, delta 1e-05 was being charged: the ledger of 'friends' tells whether it is."
    assert caught.value.__notes__ == [said]


def test_a_training_inside_another_one_is_told_as_well(parts):
    ledger = gcon.MemoryLedger("friends")

    def another(stage, _):
        if stage == "learn without edges":  # nothing is charged yet for the training that calls this
            gcon.NodeClassifier(epsilon=2.0, ledger=ledger).fit(parts.private())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        gcon.NodeClassifier(ledger=ledger, callback=another).fit(parts.private())
    assert ledger.total().epsilon == 2
    assert caught.value.__notes__ == [
        "Charged: epsilon 2, delta 1e-05, entry 0 of the ledger of 'friends'; it stays spent."
    ]


def test_an_error_of_a_callback_says_it_too(parts):
    def fail(stage, _):
        if stage == "learn from what was released":
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        gcon.NodeClassifier(ledger=gcon.MemoryLedger("friends"), callback=fail).fit(parts.private())
    assert caught.value.__notes__[0].startswith("Charged: epsilon 1")


def test_a_loaded_model_shows_that_it_is_fitted(parts, tmp_path):
    model = gcon.NodeClassifier(epsilon=2.0)
    assert repr(model) == "NodeClassifier(epsilon=2.0)"
    gcon.save_release(model.fit(parts.private()).model_, tmp_path / "model")
    promise = "<MomentsModel: (2.0, 1e-05)-differentially private for 1 edge; 8 features, 3 classes>"
    assert repr(model) == f"NodeClassifier(epsilon=2.0), fitted: {promise}"
    loaded = gcon.load(tmp_path / "model")
    assert repr(loaded) == str(loaded) == f"NodeClassifier(delta=1e-05, epsilon=2.0), fitted: {promise}"
    assert "Fitted" in loaded._repr_html_()


def test_nodes_of_other_masks_are_not_learned_from(parts):
    X, y, test = np.asarray(parts.features), np.asarray(parts.labels), np.arange(120) % 3 == 0
    seen = []
    for train in (None, ~test):
        model = gcon.GCON(epochs=2, random_state=1).fit(X, y, edges=[], train_mask=train, test_mask=test)
        seen.append(model.predict_proba(X))
    assert np.array_equal(*seen)
