"""Data frames: everything follows the ids in the index of the features."""

import networkx
import numpy as np
import polars
import pytest
import torch
from tests.frames import EVERY_FRAME
from tests.opened import open_private

from gcon.errors import InputError
from gcon.files.inputs import as_private_graph, public_graph, read_columns

IDS = ["eve", "ann", "bob", "dan"]
FEATURES = np.arange(8.0).reshape(4, 2)
PAIRS = [("ann", "bob"), ("dan", "ann")]
ROWS = [[], [2, 3], [1], [1]]  # neighbours of every row

pytestmark = pytest.mark.parametrize("frame", EVERY_FRAME)


def graph_of(features, **given):
    return as_private_graph(read_columns(features, **{"labels": [0, 1, 0, 1], **given}), name="x")


def neighbours(graph):
    opened = open_private(graph.edges)
    return [opened.neighbours(node).tolist() for node in range(opened.num_nodes)]


def test_edges_by_id(frame):
    features = frame(FEATURES, index=IDS)
    named = networkx.Graph(PAIRS)
    for edges in (frame(PAIRS), polars.DataFrame(PAIRS, orient="row"), named, networkx.Graph([*PAIRS, ("eve", "eve")])):
        assert neighbours(graph_of(features, edges=edges)) == ROWS
    assert [public_graph(features, named).edges.neighbours(row).tolist() for row in range(4)] == ROWS


def test_ids_may_be_numbers_in_any_order(frame):
    features = frame(FEATURES, index=[30, 10, 20, 40])
    assert neighbours(graph_of(features, edges=frame([(10, 20), (40, 10)]))) == ROWS
    # Arrays, tensors and lists hold numbers of rows, whatever the index.
    for edges in ([(1, 2), (3, 1)], torch.tensor([[1, 3], [2, 1]])):
        assert neighbours(graph_of(features, edges=edges)) == ROWS


def test_without_an_index_a_frame_of_edges_holds_rows(frame):
    for features in (FEATURES, frame(FEATURES)):
        assert neighbours(graph_of(features, edges=frame([(1, 2), (3, 1)]))) == ROWS
    assert neighbours(graph_of(FEATURES, edges=frame(np.empty((0, 2), dtype=int)))) == [[], [], [], []]


def test_labels_and_masks_follow_the_index(frame):
    order = [2, 0, 3, 1]
    index = [IDS[row] for row in order]
    labels, train = np.array(["x", "y", "x", "y"]), np.array([True, True, False, False])
    nodes = graph_of(
        frame(FEATURES, index=IDS),
        labels=frame(labels[order], index=index),
        train_mask=frame(train[order], index=index),
        test_mask=frame(~train, index=IDS),
    ).nodes
    assert nodes.labels.tolist() == [0, 1, 0, 1]
    assert nodes.train_mask.tolist() == train.tolist()
    assert nodes.test_mask.tolist() == (~train).tolist()


def test_another_index_is_refused(frame):
    features = frame(FEATURES, index=IDS)
    for index in (None, [*IDS[:3], "fay"], ["eve", "ann", "bob", "bob"]):
        with pytest.raises(InputError, match=r"^y: must have the index of the features"):
            graph_of(features, labels=frame(np.array([0, 1, 0, 1]), index=index))
    with pytest.raises(InputError, match=r"^features: the index must name every node once"):
        graph_of(frame(FEATURES, index=["eve", "ann", "ann", "dan"]), edges=frame(PAIRS))


def test_ids_that_nobody_has_are_refused_in_the_same_words(frame):
    features, words = frame(FEATURES, index=IDS), set()
    strangers = [("ann", "stranger"), ("stranger", "stranger 2")]
    for edges in (strangers[:1], strangers, [*PAIRS, *strangers], [("1", "2")], [(1, 2)], [(None, "ann")]):
        cells = np.array(edges, dtype=object)
        for kind in (frame(cells), networkx.Graph([(str(first), str(second)) for first, second in edges])):
            with pytest.raises(InputError, match=r"^edges: .*named by an id in the index") as raised:
                graph_of(features, edges=kind)
            words.add(str(raised.value))
    assert len(words) == 1
    assert "stranger" not in words.pop()


def test_a_third_column_is_not_dropped(frame):
    with pytest.raises(InputError, match=r"^edges: a data frame must have two columns"):
        graph_of(FEATURES, edges=frame([(1, 2, 5), (3, 1, 7)]))
