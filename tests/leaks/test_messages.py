"""What goes wrong on private edges says what is wrong, never where or how much."""

import pickle
import re
import traceback

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch

from gcon import GCON, MemoryLedger
from gcon.edges.edge_list import private_edges
from gcon.edges.graph import private_graph
from gcon.errors import GconError, InputError
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.files.edges import as_edge_index

BAD = {
    "too large": torch.tensor([[0, 977], [1, 2]]),
    "negative": torch.tensor([[0, 1], [-977, 2]]),
    "not whole": torch.tensor([[0.0, 977.5], [1.0, 2.0]]),
    "three rows": torch.full((3, 977), 1),
    "one row": torch.full((977,), 1),
    "truth": torch.ones(2, 977, dtype=torch.bool),
}


def numbers_in(text):
    return set(re.findall(r"\d+", text))


@pytest.mark.parametrize("edges", BAD.values(), ids=BAD)
def test_a_bad_edge_list_is_refused_without_its_numbers(edges):
    with pytest.raises(InputError, match=r"^edges") as raised:
        private_edges(edges, 8)
    error = raised.value
    assert numbers_in(str(error)) <= {"0", "2", "7"}  # node numbers 0 to 7 are public; "2 x 0" is advice
    assert "977" not in repr(error) + repr(error.args) + repr(vars(error))
    assert b"977" not in pickle.dumps(error)
    assert error.__cause__ is None
    assert error.__context__ is None
    assert "977" not in "".join(traceback.format_exception(error))


@pytest.mark.parametrize("edges", BAD.values(), ids=BAD)
def test_the_message_does_not_depend_on_how_bad_it_is(edges):
    texts = set()
    for repeats in (1, 3):
        with pytest.raises(InputError) as raised:
            private_edges(edges.repeat_interleave(repeats, dim=-1), 8)
        texts.add(str(raised.value))
    assert len(texts) == 1


FOREIGN = {
    "pairs": [(0, 1), (977, 2)],
    "array": np.array([[0, 977], [1, 2]]),
    "ragged": [(0, 1), (977, 2, 3)],
    "names": [("ann977", "bob"), ("bob", "eve")],
    "objects": [[object(), "977"]],
    "a word": "977",
    # Without a shape, scipy takes the largest end that occurs.
    "adjacency of another size": scipy.sparse.coo_array(([1], ([976], [1]))),
    "mapping": {977: [1, 2]},
}


@pytest.mark.parametrize("edges", FOREIGN.values(), ids=FOREIGN)
def test_edges_of_other_libraries_are_refused_without_their_numbers(edges):
    with pytest.raises(InputError, match=r"^edges") as raised:
        private_edges(as_edge_index(edges, num_nodes=8), 8)
    shown = "".join(traceback.format_exception(raised.value)) + repr(vars(raised.value))
    assert "977" not in shown
    assert raised.value.__context__ is None


def test_a_networkx_graph_with_unknown_nodes_is_refused_without_their_number():
    # Nodes that exist only because an edge names them: how many there are depends on the edges.
    texts = set()
    for edges in ([(0, 977)], [(0, 977), (1, 978), (2, 3)]):
        with pytest.raises(InputError, match=r"^edges") as raised:
            as_edge_index(networkx.Graph(edges), num_nodes=8)
        texts.add(str(raised.value))
    assert len(texts) == 1


def test_the_estimator_refuses_bad_edges_without_their_numbers():
    nodes, edge_index = social_circles_parts(24, num_classes=2, mean_degree=3, num_features=3, per_class=4, seed=0)
    edge_index[1, 5] = 977
    ledger = MemoryLedger()
    with pytest.raises(GconError) as raised:
        GCON(epochs=1, ledger=ledger).fit(nodes.features.numpy(), nodes.labels.numpy(), edges=edge_index)
    assert "977" not in "".join(traceback.format_exception(raised.value))
    assert not ledger.entries()


def test_a_private_graph_with_bad_edges_is_never_made():
    nodes, edge_index = social_circles_parts(24, num_classes=2, mean_degree=3, num_features=3, per_class=4, seed=0)
    with pytest.raises(InputError, match="numbered 0 to 23"):
        private_graph(nodes, edge_index + 977)
