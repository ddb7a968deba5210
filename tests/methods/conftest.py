"""One small synthetic graph, in every form that the estimator takes."""

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch

from gcon.edges.graph import private_graph
from gcon.files.datasets.synthetic import social_circles_parts


class Parts:
    """Public nodes and bare edges of a synthetic graph, and the ways to write them."""

    def __init__(self, **changed):
        given = {"num_classes": 3, "num_features": 8, "per_class": 12, "mean_degree": 6, "seed": 0}
        self.nodes, self.edge_index = social_circles_parts(120, **(given | changed))
        self.features, self.labels = self.nodes.features.numpy(), self.nodes.labels.numpy()
        self.masks = {
            "train_mask": self.nodes.train_mask.numpy(),
            "validation_mask": self.nodes.validation_mask.numpy(),
            "test_mask": self.nodes.test_mask.numpy(),
        }
        self.arrays = {"X": self.features, "y": self.labels, **self.masks}

    def private(self):
        return private_graph(self.nodes, self.edge_index, name="circles")

    def pyg(self, **changed):
        from torch_geometric.data import Data

        nodes = self.nodes
        return Data(
            **{"x": nodes.features, "y": nodes.labels, "edge_index": self.edge_index} | changed,
            train_mask=nodes.train_mask,
            val_mask=nodes.validation_mask,
            test_mask=nodes.test_mask,
        )

    def scipy(self):
        ends = self.edge_index.numpy()
        return scipy.sparse.csr_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(120, 120))

    def torch_sparse(self):
        return torch.sparse_coo_tensor(
            self.edge_index, torch.ones(self.edge_index.shape[1]), (120, 120)
        ).to_sparse_csr()

    def pairs(self):
        return self.edge_index.T.tolist()

    def networkx(self):
        return networkx.Graph(self.pairs())  # its nodes are in the order of the edges

    def networkx_with_attributes(self):
        graph = networkx.DiGraph()
        split = np.select(list(self.masks.values()), ["train", "val", "test"], default="").tolist()
        for node in range(120):
            graph.add_node(f"person {node:03d}", x=self.features[node], y=int(self.labels[node]), split=split[node])
        graph.add_edges_from((f"person {first:03d}", f"person {second:03d}") for first, second in self.pairs())
        return graph


@pytest.fixture(scope="session")
def parts():
    return Parts()


@pytest.fixture(scope="session")
def other_parts():
    """Another graph of the same width, with nodes never seen."""
    return Parts(seed=1)
