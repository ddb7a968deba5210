"""Other libraries' graphs: the same public nodes and private edges come out."""

import warnings

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch
from tests.opened import open_private

from gcon.edges.graph import private_graph
from gcon.errors import InputError
from gcon.files.inputs import as_features, as_private_graph, public_graph, read_columns
from gcon.privacy.boundary import Private

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # PyG still uses torch.jit
    from torch_geometric.data import Data


def as_data(nodes, edge_index):
    return Data(
        x=nodes.features,
        y=nodes.labels,
        edge_index=edge_index,
        train_mask=nodes.train_mask,
        val_mask=nodes.validation_mask,
        test_mask=nodes.test_mask,
    )


def as_networkx(nodes, edge_index, name=lambda number: number):
    graph = networkx.Graph()
    for number in range(nodes.num_nodes):
        split = "train" if nodes.train_mask[number] else "val" if nodes.validation_mask[number] else "test"
        graph.add_node(
            name(number), x=nodes.features[number].tolist(), y=int(nodes.labels[number]), split=split, colour="red"
        )
    graph.add_edges_from((name(first), name(second)) for first, second in edge_index.T.tolist())
    return graph


def loose(nodes, edges, features=None):
    return {
        "data": nodes.features.numpy() if features is None else features,
        "labels": nodes.labels.numpy(),
        "edges": edges,
        "train_mask": nodes.train_mask.numpy(),
        "validation_mask": nodes.validation_mask,
        "test_mask": nodes.test_mask.tolist(),
    }


SOURCES = {
    "PyG": lambda nodes, edges: read_columns(as_data(nodes, edges)),
    "networkx, numbers": lambda nodes, edges: read_columns(as_networkx(nodes, edges)),
    "networkx, words": lambda nodes, edges: read_columns(
        as_networkx(nodes, edges, lambda number: f"person {number:03d}")
    ),
    "networkx, tuples": lambda nodes, edges: read_columns(as_networkx(nodes, edges, lambda number: (number, "x"))),
    "arrays": lambda nodes, edges: read_columns(**loose(nodes, edges.numpy())),
    "arrays and pairs": lambda nodes, edges: read_columns(**loose(nodes, edges.T.tolist())),
    "sparse": lambda nodes, edges: read_columns(
        **loose(
            nodes,
            scipy.sparse.coo_array((np.ones(edges.shape[1]), tuple(edges.numpy())), shape=(30, 30)),
            scipy.sparse.csr_array(nodes.features.numpy()),
        )
    ),
    "lists": lambda nodes, edges: read_columns(**loose(nodes, edges.T.tolist(), nodes.features.tolist())),
    "named arguments win": lambda nodes, edges: read_columns(
        as_data(nodes, torch.tensor([[0], [1]])), edges=edges, labels=nodes.labels
    ),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_every_source_gives_the_same_private_graph(parts, source):
    nodes, edge_index = parts
    expected = private_graph(nodes, edge_index)
    found = as_private_graph(source(nodes, edge_index), name="circles")
    assert found.name == "circles"
    assert isinstance(found.edges, Private)
    first, second = open_private(found.edges), open_private(expected.edges)
    assert torch.equal(first.columns, second.columns)
    assert torch.equal(first.row_pointers, second.row_pointers)
    torch.testing.assert_close(found.nodes.features.float(), nodes.features)
    for name in ("train_mask", "validation_mask", "test_mask"):
        assert torch.equal(getattr(found.nodes, name), getattr(nodes, name))
    used = nodes.train_mask | nodes.validation_mask | nodes.test_mask
    assert torch.equal(found.nodes.labels[used], nodes.labels[used])
    assert (found.nodes.labels[~used] == -1).all()
    assert found.nodes.num_classes == 3
    assert found.nodes.class_names == (0, 1, 2)


def columns(features=None, labels=(0, 1, 0, 1), **given):
    features = np.arange(8.0).reshape(4, 2) if features is None else features
    return read_columns(features, labels=labels, **given)


def test_without_masks_every_node_is_labelled():
    nodes = as_private_graph(columns(), name="x").nodes
    assert nodes.train_mask.all()
    assert not nodes.validation_mask.any()
    assert not nodes.test_mask.any()


def test_without_edges_the_graph_is_empty():
    assert open_private(as_private_graph(columns(), name="x").edges).columns.numel() == 0


def test_classes_may_have_names():
    nodes = as_private_graph(columns(labels=["yes", "no", "yes", "maybe"]), name="x").nodes
    assert nodes.class_names == ("maybe", "no", "yes")
    assert nodes.labels.tolist() == [2, 1, 2, 0]


def test_the_class_list_may_be_given():
    nodes = as_private_graph(columns(labels=[5, 7, 5, 7]), classes=[7, 6, 5], name="x").nodes
    assert nodes.class_names == (7, 6, 5)
    assert nodes.num_classes == 3
    assert nodes.labels.tolist() == [2, 0, 2, 0]


def test_labels_outside_all_masks_are_never_read():
    masks = {"train_mask": [True, True, False, False], "test_mask": [False, False, True, False]}
    nodes = as_private_graph(columns(labels=[0, 1, 0, 99], **masks), name="x").nodes
    assert nodes.labels.tolist() == [0, 1, 0, -1]
    assert nodes.class_names == (0, 1)


UNLABELLED = {
    "-1": [0, 1, -1, 0],
    "-1.0": [0.0, 1.0, -1.0, 0.0],
    "None": ["a", "b", None, "a"],
    "NaN": [0.0, 1.0, np.nan, 0.0],
    "NaN among words": np.array(["a", "b", np.nan, "a"], dtype=object),
    "all at once": np.array([0, 1, None, -1], dtype=object),
    "tensor": torch.tensor([0, 1, -1, 0]),
}


@pytest.mark.parametrize("labels", UNLABELLED.values(), ids=UNLABELLED)
def test_a_missing_label_is_never_a_class(labels):
    nodes = as_private_graph(columns(labels=labels), name="x").nodes
    assert nodes.num_classes == 2
    assert nodes.train_mask.tolist()[:3] == [True, True, False]
    assert nodes.labels.tolist()[:3] == [0, 1, -1]
    for name in ("train_mask", "validation_mask", "test_mask"):
        masks = {"train_mask": [True, True, False, False], name: [name == "train_mask"] * 2 + [True, False]}
        with pytest.raises(InputError, match=rf"^y: every node of {name} needs a label.* in row 2"):
            as_private_graph(columns(labels=labels, **masks), name="x")


def test_whole_numbers_with_gaps_name_whole_numbers():
    for labels, names in (([3.0, 5.0, np.nan, 3.0], "(3, 5)"), ([3.0, 5.0, 3.0, 3.0], "(3.0, 5.0)")):
        assert str(as_private_graph(columns(labels=labels), name="x").nodes.class_names) == names


def test_minus_one_beside_one_class_says_what_it_means():
    with pytest.raises(InputError, match=r"^y: .*Name that class otherwise"):
        as_private_graph(columns(labels=[-1, 1, -1, 1]), name="x")
    for classes in ([-1, 1], ["a", None]):
        with pytest.raises(InputError, match=r"^classes: .*no classes"):
            as_private_graph(columns(labels=[-1, 1, -1, 1]), classes=classes, name="x")


def test_nothing_but_missing_labels_is_refused():
    with pytest.raises(InputError, match=r"^train_mask: needs at least one labelled node"):
        as_private_graph(columns(labels=[-1, -1, -1, -1]), name="x")


def test_masks_may_be_rows_or_one_of_several_splits():
    several = torch.tensor([[True, False], [True, True], [False, True], [False, False]])
    given = {"train_mask": several, "test_mask": np.array([3]), "split": 1}
    nodes = as_private_graph(columns(**given), name="x").nodes
    assert nodes.train_mask.tolist() == [False, True, True, False]
    assert nodes.test_mask.tolist() == [False, False, False, True]
    nodes = as_private_graph(columns(**given | {"split": np.int64(0), "validation_mask": [2]}), name="x").nodes
    assert nodes.train_mask.tolist() == [True, True, False, False]
    assert nodes.validation_mask.tolist() == [False, False, True, False]


def test_a_label_without_a_class_is_refused():
    masks = {"train_mask": [True, True, False, False], "test_mask": [False, False, True, True]}
    with pytest.raises(InputError, match=r"^y: .*got 99 in row 3"):
        as_private_graph(columns(labels=[0, 1, 0, 99], **masks), name="x")


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({"labels": None}, "y"),
        ({"labels": [0, 1]}, "y"),
        ({"labels": [[0, 1]] * 4}, "y"),
        ({"labels": [0, 0, 0, 0]}, "labels"),
        ({"train_mask": [True, True]}, "train_mask"),
        ({"train_mask": [1, 1, 0, 0]}, "train_mask"),
        ({"train_mask": [True] * 4, "test_mask": [True, False, False, False]}, "train_mask, test_mask"),
        ({"train_mask": [False] * 4}, "train_mask"),
        ({"features": np.array([[np.nan, 1.0]] * 4)}, "features"),
        ({"features": np.zeros((4, 0))}, "features"),
        ({"features": np.zeros(4)}, "features"),
        ({"edges": [(0, 9)]}, "edges"),
    ],
    ids=str,
)
def test_bad_parts(given, parameter):
    with pytest.raises(InputError, match=rf"^{parameter}: "):
        as_private_graph(columns(**given), name="x")


def test_graphs_without_features_are_refused(parts):
    with pytest.raises(InputError, match=r"^features"):
        read_columns(Data(edge_index=parts[1], y=parts[0].labels))
    with pytest.raises(InputError, match=r"^features: every node needs an attribute 'x'"):
        read_columns(networkx.path_graph(3))
    with pytest.raises(InputError, match=r"^X"):
        read_columns(private_graph(*parts))


def test_networkx_nodes_without_a_label_are_not_a_class():
    graph = networkx.path_graph(5)
    for node in graph:
        graph.nodes[node]["x"] = [float(node)]
        if node < 4:
            graph.nodes[node]["y"] = node % 2
    nodes = as_private_graph(read_columns(graph), name="x").nodes
    assert nodes.class_names == (0, 1)
    assert nodes.train_mask.tolist() == [True, True, True, True, False]


def with_features(graph):
    for row, node in enumerate(sorted(graph, key=str)):
        graph.nodes[node].update(x=[float(row)], y=row % 2)
    return graph


def test_networkx_names_of_several_kinds():
    """Whatever edge came first, rows are in the order of kinds and names."""
    edges = [("b", 2), (1, "a"), ("a", 2.5), ((1, "x"), 1)]
    found = [read_columns(with_features(networkx.Graph(order))) for order in (edges, edges[::-1])]
    for one in found:
        assert one.ids == [2.5, 1, 2, "a", "b", (1, "x")]
        assert as_features(one.features).tolist() == as_features(found[0].features).tolist()


def test_networkx_names_without_an_order_are_refused():
    """Sets can be sorted, and the result depends on the order of the edges."""
    for names in ([frozenset("a"), frozenset("b")], [object(), object()], [1j, 2j]):
        with pytest.raises(InputError, match=r"^X: node names must have an order"):
            read_columns(with_features(networkx.Graph([names])))


def test_networkx_without_labels_can_still_be_read_for_prediction():
    graph = networkx.path_graph(3)
    for node in graph:
        graph.nodes[node]["x"] = [float(node), 1.0]
    found = read_columns(graph)
    assert as_features(found.features).tolist() == [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]


@pytest.mark.parametrize(
    "features",
    [
        torch.tensor([[1, 2], [3, 4]]),
        np.array([[1, 2], [3, 4]], dtype=np.int8),
        np.array([[1.0, 2.0], [3.0, 4.0]])[:, ::1],
        np.asfortranarray(np.array([[1.0, 2.0], [3.0, 4.0]])),
        scipy.sparse.csr_matrix(np.array([[1.0, 2.0], [3.0, 4.0]])),
        [[1, 2], [3, 4]],
        torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True),
    ],
    ids=["tensor", "small integers", "array", "fortran", "sparse", "list", "with gradient"],
)
def test_features_of_any_kind(features):
    found = as_features(features)
    assert found.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert found.is_floating_point()
    assert not found.requires_grad


def test_public_graphs(parts):
    nodes, edge_index = parts
    expected = open_private(private_graph(nodes, edge_index).edges)
    for found in (
        public_graph(nodes.features, edge_index),
        public_graph(as_data(nodes, edge_index)),
        public_graph(as_networkx(nodes, edge_index)),
        public_graph(nodes.features.numpy(), expected),
    ):
        assert not isinstance(found.edges, Private)
        assert torch.equal(found.edges.columns, expected.columns)
        torch.testing.assert_close(found.features.float(), nodes.features)


def test_a_private_graph_cannot_be_declared_public(parts):
    graph = private_graph(*parts)
    with pytest.raises((InputError, TypeError)):
        public_graph(graph)
    with pytest.raises((InputError, TypeError)):
        public_graph(graph.nodes.features, graph.edges)
