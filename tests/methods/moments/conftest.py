"""Two small graphs on the same public nodes: a dense one, whose neighbour counts are heard, and a sparse one."""

from __future__ import annotations

import pytest
import torch
from tests.labelled import labelled_circles

from gcon.files.datasets.synthetic import social_circles_parts


@pytest.fixture(scope="session")
def nodes():
    return social_circles_parts(100, num_classes=3, mean_degree=18, num_features=6, per_class=8, seed=1)[0]


@pytest.fixture(scope="session")
def dense():
    return social_circles_parts(100, num_classes=3, mean_degree=18, num_features=6, per_class=8, seed=1)[1]


@pytest.fixture(scope="session")
def sparse(dense):
    return dense[:, ::10]


@pytest.fixture(scope="session")
def unsure():
    """Nodes whose features say little, and dense edges: the first counts make better codes for a second table."""
    return social_circles_parts(
        100, num_classes=3, mean_degree=18, num_features=6, feature_signal=0.3, per_class=8, seed=1
    )


@pytest.fixture(scope="session")
def labelled():
    """Six nodes in ten have a label, and features say little."""
    return labelled_circles()


@pytest.fixture(scope="session")
def misled():
    """Nodes whose features say everything, and edges inside their classes; those of validation nodes lead to another class.

    What is learned about neighbours is wrong for the nodes that are asked.
    """
    nodes, edge_index = social_circles_parts(
        150, num_classes=3, mean_degree=12, num_features=6, feature_signal=6.0, per_class=20, homophily=0.9, seed=1
    )
    wrong = []
    for node in nodes.validation_mask.nonzero()[:, 0].tolist():
        others = (nodes.labels == (nodes.labels[node] + 1) % 3) & ~nodes.validation_mask
        wrong += [[node, other] for other in others.nonzero()[:10, 0].tolist()]
    kept = edge_index[:, ~nodes.validation_mask[edge_index].any(dim=0)]
    return nodes, torch.cat([kept, torch.tensor(wrong).T], dim=1)
