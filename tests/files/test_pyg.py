"""PyG: what is no single graph is refused with the way out, and nothing said of edges is lost silently."""

import warnings

import pytest
import torch

from gcon.errors import InputError
from gcon.files.inputs import as_private_graph, public_graph, read_columns

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # PyG still uses torch.jit
    from torch_geometric.data import Data, HeteroData
    from torch_geometric.loader import DataLoader

EDGES = torch.tensor([[0, 1], [1, 2]])


def data(**more):
    return Data(x=torch.eye(4), y=torch.tensor([0, 1, 0, 1]), edge_index=EDGES, **more)


def mixed():
    graph = HeteroData()
    graph["person"].x = torch.eye(2)
    return graph


def test_what_is_not_one_graph_is_refused():
    for other, way_out in (
        (mixed(), "to_homogeneous"),
        (DataLoader([data()]), "Pass the Data"),
        (Several(), r"\[0\]"),
        ([data(), data()], "Pass one of them"),
    ):
        with pytest.raises(InputError, match=rf"^X: .*got {type(other).__name__}.*{way_out}"):
            read_columns(other)


class Several(torch.utils.data.Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, place):
        return data()


@pytest.mark.parametrize("name", ["edge_weight", "edge_attr"])
def test_values_of_edges_are_not_dropped_silently(name):
    weighted = data(**{name: torch.ones(2)})
    assert read_columns(weighted).features.equal(weighted.x)  # for predictions that read no edge
    for join in (lambda graph: as_private_graph(read_columns(graph), name="x"), public_graph):
        with pytest.raises(InputError, match=rf"^{name}: is not used.*data\.{name} = None"):
            join(weighted)
    as_private_graph(read_columns(weighted, edges=EDGES), name="x")  # other edges were named
    weighted[name] = None
    as_private_graph(read_columns(weighted), name="x")
