"""The same edges, however they are written."""

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch
from tests.opened import open_private

from gcon.edges.edge_list import private_edges
from gcon.errors import InputError
from gcon.files.edges import as_edge_index


def neighbours(edges, num_nodes=30, **options):
    opened = open_private(private_edges(as_edge_index(edges, num_nodes=num_nodes, **options), num_nodes)[0])
    return [opened.neighbours(node).tolist() for node in range(num_nodes)]


def adjacency(edge_index, **options):
    ends = edge_index.numpy()
    return scipy.sparse.coo_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(30, 30), **options)


def as_networkx(edge_index, kind=networkx.Graph):
    graph = kind()
    graph.add_nodes_from(range(30))
    graph.add_edges_from(edge_index.T.tolist())
    return graph


FORMS = {
    "tensor": lambda edges: edges,
    "32-bit tensor": lambda edges: edges.int(),
    "array": lambda edges: edges.numpy(),
    "unsigned array": lambda edges: edges.numpy().astype(np.uint16),
    "both directions": lambda edges: torch.cat([edges, edges.flip(0)], dim=1),
    "with loops": lambda edges: torch.cat([edges, torch.arange(30).repeat(2, 1)], dim=1),
    "list of pairs": lambda edges: [tuple(pair) for pair in edges.T.tolist()],
    "list of lists": lambda edges: edges.T.tolist(),
    "array of pairs": lambda edges: edges.T.numpy(),
    "coo": adjacency,
    "csr": lambda edges: adjacency(edges).tocsr(),
    "csc matrix": lambda edges: scipy.sparse.csc_matrix(adjacency(edges)),
    "lil": lambda edges: adjacency(edges).tolil(),
    "symmetric": lambda edges: adjacency(edges) + adjacency(edges).T,
    "weights": lambda edges: -0.5 * adjacency(edges),
    "truth": lambda edges: adjacency(edges).astype(bool),
    "networkx": as_networkx,
    "directed networkx": lambda edges: as_networkx(edges, networkx.DiGraph),
    "networkx multigraph": lambda edges: as_networkx(torch.cat([edges, edges], dim=1), networkx.MultiGraph),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_gives_the_same_graph(parts, form):
    _, edge_index = parts
    assert neighbours(form(edge_index)) == neighbours(edge_index)
    assert sum(map(len, neighbours(edge_index))) == 2 * edge_index.shape[1] > 0


def test_stored_zeros_are_not_edges(parts):
    matrix = adjacency(parts[1])
    matrix.data[0] = 0.0
    assert neighbours(matrix) == neighbours(parts[1][:, 1:])


@pytest.mark.parametrize(
    "nothing",
    [None, [], (), torch.empty(2, 0), np.empty((0, 2)), scipy.sparse.coo_array((4, 4)), networkx.empty_graph(4)],
)
def test_no_edges(nothing):
    assert as_edge_index(nothing, num_nodes=4).shape == (2, 0)
    assert neighbours(nothing, 4) == [[], [], [], []]


def test_the_meaning_of_an_array_never_depends_on_the_number_of_edges():
    """A neighbouring graph has one edge more or less: it must be read the same way, or be refused."""
    assert neighbours(torch.tensor([[0, 1], [2, 3]]), 4) == [[2], [3], [0], [1]]
    with pytest.raises(InputError, match="can be read both ways"):
        neighbours(np.array([[0, 1], [2, 3]]), 4)
    for count in (1, 3, 4):
        pairs = [(node, node + 1) for node in range(count)]
        with pytest.raises(InputError, match="edges"):
            neighbours(torch.tensor(pairs), 8)  # a tensor is an edge_index
        with pytest.raises(InputError, match="edges"):
            neighbours(np.array(pairs).T.tolist(), 8) if count != 2 else None  # a list is a list of pairs


def test_two_edges_as_a_list_are_pairs():
    for pairs in ([(0, 1), (2, 3)], [[0, 1], [2, 3]], ((0, 1), (2, 3))):
        assert neighbours(pairs, 4) == [[1], [0], [3], [2]]


@pytest.mark.parametrize("count", [1, 3, 4])
def test_other_numbers_of_pairs_are_clear(count):
    pairs = [(node, node + 1) for node in range(count)]
    expected = neighbours(pairs, 8)
    assert neighbours(np.array(pairs).T, 8) == neighbours(torch.tensor(pairs).T, 8) == expected
    assert neighbours(np.array(pairs), 8) == expected


def test_networkx_order_never_chooses_rows():
    """The order of a graph's nodes is that in which its edges were added."""
    with pytest.raises(InputError, match="named by their row") as raised:
        neighbours(networkx.Graph([("a", "b"), ("d", "c")]), 4)
    assert "'a'" not in str(raised.value)
    for order in ([(0, 1), (2, 3)], [(2, 3), (0, 1)], [(3, 2), (1, 0)]):
        assert neighbours(networkx.Graph(order), 4) == [[1], [0], [3], [2]]


def test_networkx_numbers_are_rows_whatever_the_order():
    graph = networkx.Graph([(3, 1), (2, 0)])
    assert neighbours(graph, 4) == [[2], [3], [0], [1]]
    assert neighbours(graph, 6) == [[2], [3], [0], [1], [], []]


def test_networkx_edges_to_unknown_nodes_are_refused():
    graph = networkx.Graph([(0, 1), (0, "stranger")])
    with pytest.raises(InputError, match=r"^edges: nodes of a networkx graph") as raised:
        neighbours(graph, 2)
    assert "stranger" not in str(raised.value)


@pytest.mark.parametrize(
    ("edges", "num_nodes"),
    [
        (scipy.sparse.coo_array((3, 3)), 4),
        (scipy.sparse.coo_array((4, 3)), 4),
        (networkx.Graph([("a", "b")]), 3),
        (networkx.path_graph(5), 4),
        ("edges", 4),
        ({"edges": 1}, 4),
        ([["a", "b"]], 4),
        ([(0, 1), (1, 2, 3)], 4),
        (object(), 4),
        (3, 4),
        (np.zeros((3, 3), dtype=int), 4),
        (np.zeros((2, 3)), 4),
        (torch.tensor([[0, 4], [1, 2]]), 4),
        (torch.tensor([[0, -1], [1, 2]]), 4),
    ],
)
def test_bad_edges(edges, num_nodes):
    with pytest.raises(InputError, match=r"^edges: "):
        neighbours(edges, num_nodes)


def test_the_input_is_left_alone(parts):
    edge_index = parts[1].clone()
    matrix = adjacency(edge_index)
    before = matrix.copy()
    neighbours(edge_index)
    neighbours(matrix)
    assert torch.equal(edge_index, parts[1])
    assert (matrix != before).nnz == 0
