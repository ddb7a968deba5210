"""A collector of errors records the local names of every frame; after a mistake in the edges none of ours holds an edge."""

import traceback
from dataclasses import fields, is_dataclass

import networkx
import numpy as np
import pytest
import torch
from tests.frames import StandIn

import gcon
from gcon.edges.edge_list import private_edges
from gcon.edges.graph import private_graph
from gcon.errors import AnswersWarning, InputError, PromiseWarning
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.files.edge_files import read_edges
from gcon.files.edge_store import write_edge_store

UNKNOWN = 987_654  # no node has this number, so wherever it is, an edge is


@pytest.fixture(scope="module")
def nodes():
    return social_circles_parts(40, num_classes=2, seed=1)[0]


def bare():
    return torch.tensor([[0, 1, 2], [1, 2, UNKNOWN]])


def holds_an_edge(value, depth=4):
    """What a collector would find in a local value."""
    if isinstance(value, torch.Tensor | np.ndarray):
        return bool((torch.as_tensor(np.asarray(value)) == UNKNOWN).any()) if value.dtype != object else False
    if depth == 0 or isinstance(value, type):
        return False
    if isinstance(value, dict):
        return any(holds_an_edge(each, depth - 1) for each in value.values())
    if isinstance(value, list | tuple | set):
        return any(holds_an_edge(each, depth - 1) for each in value)
    if isinstance(value, networkx.Graph):
        return holds_an_edge(list(value.nodes), depth - 1)
    if isinstance(value, StandIn):
        return holds_an_edge(value.values, depth - 1)
    if is_dataclass(value):
        return any(holds_an_edge(getattr(value, one.name, None), depth - 1) for one in fields(value))
    return (
        value == UNKNOWN
        if isinstance(value, int | float)
        else str(UNKNOWN) in value
        if isinstance(value, str)
        else False
    )


def collected(error):
    """The functions whose frames hold an edge, along the whole chain of errors; the test's own left out."""
    found, seen = [], set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        assert str(UNKNOWN) not in str(error)
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_filename != __file__ and holds_an_edge(dict(frame.f_locals)):
                found.append(frame.f_code.co_name)
        error = error.__cause__ or error.__context__
    return found


def test_the_collector_sees_what_a_frame_holds():
    with pytest.raises(InputError) as raised:
        private_edges.__wrapped__(bare(), 40)
    assert collected(raised.value) == ["private_edges", "simple_undirected"]


def named(nodes):
    """Features whose index holds the names of nodes."""
    return StandIn(nodes.features.numpy(), index=np.arange(nodes.num_nodes))


def fitted(nodes):
    return gcon.NodeClassifier().fit(nodes.features.numpy(), nodes.labels.numpy(), edges=[(0, 1)])


@pytest.mark.parametrize(
    "enter",
    [
        lambda nodes, path: private_edges(bare(), 40),
        lambda nodes, path: private_graph(nodes, bare()),
        lambda nodes, path: gcon.GCON().fit(nodes.features.numpy(), nodes.labels.numpy(), edges=bare()),
        lambda nodes, path: gcon.GCON().fit(nodes.features.numpy(), nodes.labels.numpy(), edges=bare().T.tolist()),
        lambda nodes, path: gcon.GCON().fit(named(nodes), nodes.labels.numpy(), edges=StandIn(bare().T.numpy())),
        lambda nodes, path: gcon.GCON().fit(named(nodes), nodes.labels.numpy(), edges=networkx.Graph([(0, UNKNOWN)])),
        lambda nodes, path: fitted(nodes).predict(nodes.features.numpy(), access="own-edges", edges=bare()),
        lambda nodes, path: fitted(nodes).score(
            nodes.features.numpy(), nodes.labels.numpy(), access="own-edges", edges=bare()
        ),
        lambda nodes, path: read_edges(path.with_suffix(".csv"), ids=np.arange(40)),
        lambda nodes, path: read_edges(path.with_suffix(".npz"), ids=np.arange(40)),
        lambda nodes, path: write_edge_store(
            iter([bare().numpy()[:, :2], bare().numpy()]), path.with_suffix(".csr"), num_nodes=40
        ),
    ],
    ids=[
        "private_edges",
        "private_graph",
        "fit",
        "fit from pairs",
        "fit by id",
        "fit from networkx",
        "predict",
        "score",
        "csv",
        "npz",
        "store",
    ],
)
def test_an_unknown_node_leaves_no_edge_in_any_frame(enter, nodes, tmp_path):
    path = tmp_path / "edges"
    np.savetxt(path.with_suffix(".csv"), bare().T.numpy(), fmt="%d", delimiter=",", header="source,target", comments="")
    np.savez(path.with_suffix(".npz"), edge_index=bare().numpy())
    with pytest.raises(InputError, match=r"node|id") as raised:
        enter(nodes, path)
    assert collected(raised.value) == []


@pytest.mark.parametrize(
    ("kind", "enter"),
    [
        (PromiseWarning, lambda model, given: gcon.GCON(delta=0.1).fit(**given)),  # above 1/n
        (PromiseWarning, lambda model, given: [gcon.GCON(epochs=1).fit(**given) for _ in range(2)]),  # without a ledger
        (AnswersWarning, lambda model, given: model.node_score(**given, access="own-edges", pay=1e-3)),
    ],
)
@pytest.mark.filterwarnings("error::UserWarning")
def test_a_warning_that_was_made_an_error_brings_no_frames_either(nodes, kind, enter):
    given = {"X": nodes.features.numpy(), "y": nodes.labels.numpy(), "edges": torch.tensor([[0, 1], [1, 2]])}
    model = gcon.GCON(epochs=1, ledger=gcon.MemoryLedger("friends")).fit(**given)
    with pytest.raises(kind) as raised:
        enter(model, given)
    frames = [frame for frame, _ in traceback.walk_tb(raised.tb) if frame.f_code.co_filename != __file__]
    assert [(frame.f_code.co_name, {*frame.f_locals}) for frame in frames] == [("checked", {"function", "failure"})]
