"""The graph on which methods that release sums over neighbours are tried."""

import torch

from gcon.edges.graph import private_graph
from gcon.files.datasets import social_circles_parts

NODES, EDGE_INDEX = social_circles_parts(
    120, num_classes=3, per_class=6, num_validation=30, num_test=60, mean_degree=4.0, seed=3
)
FEATURES = NODES.features.float()


def graph(edge_index=EDGE_INDEX):
    return private_graph(NODES, edge_index, name="circles")


def adjacency(edge_index):
    dense = torch.zeros(120, 120, dtype=torch.float64)
    dense[edge_index[0], edge_index[1]] = dense[edge_index[1], edge_index[0]] = 1
    return dense


def length_one(rows):
    lengths = rows.norm(dim=1, keepdim=True)
    return torch.where(lengths > 0, rows / lengths.clamp(min=1e-12), rows)
