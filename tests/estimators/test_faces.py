"""What a notebook shows: sizes, what is spent, the promise, the stages; nothing that an edge could change."""

import math
import sys
from types import SimpleNamespace

import pytest
import torch

import gcon


@pytest.fixture(scope="module")
def nodes_words(parts):
    counts = [int(mask.sum()) for mask in parts.masks.values()]
    return "PublicNodes(120 nodes, 8 features, 3 classes: {} train, {} validation, {} test)".format(*counts)


def test_a_graph_shows_its_public_sizes(parts, nodes_words):
    assert repr(parts.nodes) == nodes_words
    assert repr(parts.private()) == f"PrivateGraph('circles', {nodes_words}, private edges)"
    assert repr(gcon.public_graph(parts.features, parts.pairs())) == "PublicGraph(120 nodes, 8 features, public edges)"


def test_a_ledger_shows_what_is_spent(parts):
    ledger = gcon.MemoryLedger("circles", ceiling=gcon.Budget(2.0, 1e-4))
    words = "MemoryLedger('circles', spent=Budget(epsilon={}, delta={}), ceiling=Budget(epsilon=2.0, delta=0.0001))"
    assert repr(ledger) == words.format(0.0, 0.0)
    gcon.GCON(epsilon=0.5, epochs=1, ledger=ledger).fit(parts.private())
    assert repr(ledger) == words.format(0.5, 1e-05)


def test_a_model_shows_its_promise(parts):
    def shown(**settings):
        return repr(gcon.GCON(epochs=1, **settings).fit(parts.private()).model_)

    sizes = "8 features, 3 classes"
    assert shown() == f"<ObjectiveModel: (1.0, 1e-05)-differentially private for 1 edge; {sizes}>"
    assert shown(epsilon=math.inf) == f"<ObjectiveModel: no promise: no noise was added in training; {sizes}>"
    assert "no promise" in shown(random_state=3)
    model = gcon.NodeClassifier(epsilon=2.0, protect_edges=3).fit(parts.private()).model_
    assert repr(model) == f"<MomentsModel: (2.0, 1e-05)-differentially private for 3 edges; {sizes}>"


@pytest.mark.parametrize("kind", [gcon.GCON, gcon.NodeClassifier])
def test_stages_and_shares_are_told(parts, capsys, kind):
    told, threads, before = [], [], torch.get_num_threads()

    def note(stage, share):
        told.append((stage, share))
        threads.append(torch.get_num_threads())

    few = {"epochs": 1} if kind is gcon.GCON else {}
    torch.set_num_threads(2)
    try:
        kind(**few, callback=note).fit(parts.private())
    finally:
        torch.set_num_threads(before)
    assert set(threads[:-1]) == {1}  # the graph is small
    assert threads[-1] == 2
    assert len(told) > 3
    assert told[-1] == ("done", 1.0)
    assert {stage for stage, _ in told[:-1]} <= set(kind.shares)
    shares = [share for _, share in told]
    assert shares[0] == 0
    assert shares == sorted(set(shares))
    assert capsys.readouterr() == ("", "")


def test_stages_are_shown(parts, capsys, monkeypatch):
    gcon.GCON(epochs=1, verbose=True).fit(parts.private())
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "gcon:   0% encode"
    assert said[-1] == "gcon: 100% done"
    shown = []
    bar = SimpleNamespace(update=shown.append)
    display = SimpleNamespace(HTML=str, display=lambda what, display_id: (shown.append(what), bar)[1])
    shell = SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=display))
    gcon.GCON(epochs=1, verbose=True).fit(parts.private())
    assert [text.rpartition("gcon: ")[2] for text in shown] == [line.split("% ")[1] for line in said]
    assert 'value="1.00"' in shown[-1]
    assert capsys.readouterr() == ("", "")


def test_a_callback_may_end_the_fit(parts):
    def stop(stage, share):
        raise KeyboardInterrupt

    model = gcon.GCON(epochs=1, callback=stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(parts.private())
    assert not hasattr(model, "model_")
