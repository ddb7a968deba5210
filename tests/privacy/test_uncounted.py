"""Where no ledger is given nobody counts: the statement says so, and one process adds up what it knows, and warns."""

import os
import signal
import threading
import warnings

import pytest

import gcon
from gcon.edges.graph import private_graph
from gcon.errors import PromiseWarning
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.methods.objective import Objective
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import Kind, MemoryLedger, Outcome, Request
from gcon.release.read import load_release
from gcon.release.store import save_release
from gcon.verify.verify import verify_release
from gcon_lab.methods.fitted import fit


def graph_of(seed):
    nodes, edges = social_circles_parts(40, num_classes=2, seed=seed)
    return private_graph(nodes, edges, name="circles")


def fitted(graph, **options):
    return gcon.GCON(epochs=1, hidden=2, **options).fit(graph)


def told(model):
    (sentence,) = [each for each in model.statement().sentences if "basic composition" in each]
    return sentence


def test_the_statement_says_that_nobody_counted(tmp_path):
    graph = graph_of(101)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PromiseWarning)  # a first fit says nothing
        first = fitted(graph)
    assert told(first) == (
        "Nobody counted other releases of data set 'circles': no ledger was given. All that is known is what one process "
        "released from the same node table without a ledger: epsilon 1, delta 1e-05 (basic composition)."
    )
    assert first.statement().fields["total"]["counted"] is False
    with pytest.warns(PromiseWarning, match=r"now spent epsilon 3, delta 2e-05 on the same node table.*FileLedger"):
        second = fitted(graph, epsilon=2.0)
    assert "epsilon 3, delta 2e-05" in told(second)
    save_release(second.model_, tmp_path / "model")
    assert load_release(tmp_path / "model").receipt.counted is False
    assert "Nobody counted" in (tmp_path / "model" / "privacy.md").read_text()
    assert verify_release(tmp_path / "model").holds


def test_other_nodes_and_other_ledgers_are_counted_apart():
    graph, other, ledger = graph_of(102), graph_of(103), MemoryLedger("circles")
    with warnings.catch_warnings():
        warnings.simplefilter("error", PromiseWarning)
        fitted(graph)
        fitted(other)
        for _ in range(2):
            counted = fitted(graph, ledger=ledger)
        fit(Objective(epsilon=1.0), graph, ledger=ledger)
    assert told(counted).startswith("Spent on data set 'circles' so far, as its ledger knows: epsilon 2")
    with pytest.warns(PromiseWarning):
        fit(Objective(epsilon=1.0), graph)


def request(epsilon=1.0):
    return Request(kind=Kind.RELEASE, mechanism="test", purpose="test", cost=Budget(epsilon, 0.0))


def test_what_was_withdrawn_or_free_is_not_added():
    first, second = (MemoryLedger("circles", uncounted="a table of this test") for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error", PromiseWarning)
        first.settle(first.reserve(request()), Outcome.WITHDRAWN)
        paid = second.reserve(request())
        second.settle(paid, Outcome.RELEASED)
        free = first.reserve(Request(kind=Kind.DELIVERY, mechanism="test", purpose="test"))  # costs nothing
    assert paid.total == free.total == Budget(1.0, 0.0)
    assert (first.counted, len(second.entries())) == (False, 1)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # it has threads, and forks: on purpose
def test_a_fork_waits_for_no_thread_of_its_parent():
    first, held, done = (
        MemoryLedger("circles", uncounted="a table that is forked"),
        threading.Event(),
        threading.Event(),
    )
    first.reserve(request())

    def hold():
        with first._lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # ends it if it waits
        found = MemoryLedger("circles", uncounted="a table that is forked").reserve(request())
        os._exit(0 if found.total == Budget(1.0, 0.0) else 1)
    status = os.waitpid(child, 0)[1]
    done.set()
    thread.join()
    assert status == 0
