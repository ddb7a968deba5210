"""One small graph, and the parts that it is made of."""

from __future__ import annotations

import pytest

from gcon.files.datasets.synthetic import social_circles_parts


@pytest.fixture(scope="session")
def parts():
    """Public nodes and a bare edge_index: every undirected edge once."""
    return social_circles_parts(30, num_classes=3, mean_degree=4, num_features=5, per_class=4, seed=8)
