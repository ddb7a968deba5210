"""What the claims speak of: graphs, budgets, lines and margins, and how their numbers are written."""

from __future__ import annotations

from collections.abc import Sequence

from gcon_lab.experiments.reproduce.comparisons import Comparison, weigh
from gcon_lab.experiments.reproduce.points import Point

HOMOPHILOUS = ("cora-ml", "citeseer", "pubmed")
GRAPHS = (*HOMOPHILOUS, "actor")
EPSILONS = ("0.5", "1", "2", "3", "4")
STEPS = ("1", "2", "5", "10", "inf")
RESTARTS = ("0.2", "0.4", "0.6", "0.8")
COMPETITORS = ("DP-SGD", "DPGCN", "LPGNet", "GAP", "ProGAP")
MLP = "MLP"
CONTROLS = (MLP, "encoder", "encoder, one hop", "self-training", "self-training, one hop", "GCON without edges")
UPPER = "GCN (non-DP)"

LITTLE = 0.01  # a change that a plot does not show
CLOSE = 0.02
RAPID = 0.05  # a fall above this is rapid, below it slight


def step(upper: Point, lower: Point) -> Comparison:
    """Compares two places of one line."""
    return weigh(f"{upper.line} at {upper.place} > at {lower.place}", [(1.0, upper), (-1.0, lower)])


def at(graph: str, epsilon: str) -> str:
    return f"{graph}, epsilon {epsilon}"


def spread(point: Point) -> str:
    """Mean, deviation and number of runs."""
    return f"{point.mean:.4f} ± {point.deviation:.4f} (n = {point.runs})"


def listed(points: Sequence[Point]) -> str:
    """Several lines at one place."""
    return ", ".join(f"{point.line} {spread(point)}" for point in points)


def path(points: Sequence[Point], start: str = "") -> str:
    """One line over several places."""
    return start + " → ".join(f"{spread(point)} at {point.place}" for point in points)
