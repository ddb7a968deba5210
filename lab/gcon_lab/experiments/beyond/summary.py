"""Means with standard errors, and our method against each other one, paired over the runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass

import polars as pl
from scipy.stats import ttest_rel

from gcon_lab.experiments.beyond.compared import ANY
from gcon_lab.experiments.beyond.scores import OURS
from gcon_lab.methods import GCN, GPRGNN
from gcon_lab.tables import sheet

WITHOUT_NOISE = "moments-without-noise"
INFINITE = "inf"
# Models that promise nothing, as they are compared with answers from own edges: the method in the scores, epsilon, access.
NON_PRIVATE = {
    GCN.name: (GCN.name, ANY, "full"),
    GPRGNN.name: (GPRGNN.name, ANY, "full"),
    WITHOUT_NOISE: (OURS, INFINITE, "own-edges"),
}
_KEYS = ("graph", "method", "epsilon", "access")


@dataclass(frozen=True)
class Mean:
    """The mean test score of a method, and its standard error over the runs."""

    graph: str
    method: str
    epsilon: str
    access: str
    mean: float
    standard_error: float
    runs: int


@dataclass(frozen=True)
class Difference:
    """Our method minus another one under comparable access, run by run.

    Attributes:
        p: of a two-sided paired t-test; 0 if all differences are the same and not 0, 1 if all are 0.
    """

    graph: str
    epsilon: str
    access: str
    other: str
    difference: float
    standard_error: float
    p: float
    runs: int


def means(scores: pl.DataFrame) -> list[Mean]:
    grouped = scores.group_by(_KEYS, maintain_order=True).agg(
        pl.col("test").mean().alias("mean"),
        (pl.col("test").std().fill_null(0.0) / pl.len().sqrt()).alias("error"),
        pl.len().alias("runs"),
    )
    return [Mean(*row) for row in grouped.iter_rows()]


def best_non_private(rows: Sequence[Mean]) -> dict[str, tuple[str, Mean]]:
    """Of every graph the non-private model with the highest mean test score: chosen with hindsight, in its favour.

    The name is the one that `differences` has for it.
    """
    found = {(row.graph, row.method, row.epsilon, row.access): row for row in rows}
    best: dict[str, tuple[str, Mean]] = {}
    for graph in dict.fromkeys(row.graph for row in rows):
        here = [(name, found[graph, *key]) for name, key in NON_PRIVATE.items() if (graph, *key) in found]
        if here:
            best[graph] = max(here, key=lambda each: each[1].mean)
    return best


def differences(scores: pl.DataFrame) -> Iterator[Difference]:
    """Ours against every other method that is used in the same way, and against ours without noise.

    Non-private models, which have all edges, are compared with answers from own edges.
    """
    ours = scores.filter(pl.col("method") == OURS)
    for (graph, epsilon, access), own in ours.group_by("graph", "epsilon", "access", maintain_order=True):
        for other, theirs in _rivals(scores, str(graph), str(epsilon), str(access)):
            pairs = own.select("run", "test").join(theirs.select("run", "test"), on="run", suffix="_other").sort("run")
            gaps = (pairs["test"] - pairs["test_other"]).to_list()
            if gaps:
                yield _difference(str(graph), str(epsilon), str(access), other, gaps)


def _rivals(scores: pl.DataFrame, graph: str, epsilon: str, access: str) -> Iterator[tuple[str, pl.DataFrame]]:
    same = scores.filter(
        (pl.col("graph") == graph)
        & pl.col("epsilon").is_in([epsilon, ANY])
        & (pl.col("method") != OURS)
        & (
            (pl.col("access") == access)
            | ((pl.col("access") == "full") & (access == "own-edges"))
            | ((pl.col("access") == "none") & (access == "cached"))
        )
    )
    for (method,), theirs in same.group_by("method", maintain_order=True):
        exactly = theirs.filter(pl.col("access") == access)  # what is comparable counts where a method has not the same
        yield str(method), theirs if exactly.is_empty() else exactly
    if epsilon != INFINITE:
        ours = (pl.col("method") == OURS) & (pl.col("graph") == graph)
        yield WITHOUT_NOISE, scores.filter(ours & (pl.col("epsilon") == INFINITE) & (pl.col("access") == access))


def _difference(graph: str, epsilon: str, access: str, other: str, gaps: Sequence[float]) -> Difference:
    count = len(gaps)
    middle = math.fsum(gaps) / count
    spread = math.sqrt(math.fsum((gap - middle) ** 2 for gap in gaps) / (count - 1)) if count > 1 else 0.0
    return Difference(graph, epsilon, access, other, middle, spread / math.sqrt(count), _paired_p(gaps, spread), count)


def _paired_p(gaps: Sequence[float], spread: float) -> float:
    if spread > 0:
        return float(ttest_rel(gaps, [0.0] * len(gaps)).pvalue)
    return 1.0 if len(gaps) == 1 or gaps[0] == 0 else 0.0


def means_csv(rows: Sequence[Mean]) -> str:
    head = ["graph", "method", "epsilon", "access", "mean", "standard error", "runs"]
    return sheet(head, [(*astuple(row)[:4], f"{row.mean:.4f}", f"{row.standard_error:.4f}", row.runs) for row in rows])


def differences_csv(rows: Sequence[Difference]) -> str:
    head = ["graph", "epsilon", "access", "other", "ours minus other", "standard error", "p", "runs"]
    return sheet(
        head,
        [
            (*astuple(row)[:4], f"{row.difference:+.4f}", f"{row.standard_error:.4f}", f"{row.p:.2g}", row.runs)
            for row in rows
        ],
    )
