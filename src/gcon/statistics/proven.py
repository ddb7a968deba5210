"""The statistics whose sensitivity has a proof page. Nothing else is released."""

from __future__ import annotations

from gcon.statistics.bilinear_sums import BilinearSums
from gcon.statistics.class_sums import ClassSums
from gcon.statistics.edge_moments import EdgeMoments
from gcon.statistics.neighbour_rows import NeighbourRows
from gcon.statistics.statistic import Statistic
from gcon.statistics.walk_moments import WalkMoments

PROVEN: frozenset[type[Statistic]] = frozenset({BilinearSums, ClassSums, EdgeMoments, NeighbourRows, WalkMoments})
