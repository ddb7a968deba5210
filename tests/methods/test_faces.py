"""What a notebook shows: sizes, what is spent, the promise, the stages; nothing that an edge could change."""

import math

import pytest

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


def test_stages_are_told(parts, capsys):
    stages = []
    gcon.GCON(epochs=1, callback=stages.append).fit(parts.private())
    assert stages[0] == "encode"
    assert len(stages) > 2
    assert capsys.readouterr() == ("", "")
    gcon.GCON(epochs=1, verbose=True).fit(parts.private())
    assert capsys.readouterr() == ("", "".join(f"gcon: {stage}\n" for stage in stages))


def test_a_callback_may_end_the_fit(parts):
    def stop(stage):
        raise KeyboardInterrupt

    model = gcon.GCON(epochs=1, callback=stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(parts.private())
    assert not hasattr(model, "model_")
