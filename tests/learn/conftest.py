"""Small public node tables; no edge comes near this folder."""

from __future__ import annotations

import pytest

from gcon.files.datasets.synthetic import social_circles_parts
from gcon.nodes import PublicNodes


@pytest.fixture(scope="session")
def nodes() -> PublicNodes:
    return social_circles_parts(
        120, num_classes=3, mean_degree=2, num_features=8, feature_signal=3.0, per_class=10, seed=2
    )[0]
