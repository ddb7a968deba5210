"""Two small graphs on the same public nodes: a dense one, whose neighbour sums are heard, and a sparse one."""

from __future__ import annotations

import pytest

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
