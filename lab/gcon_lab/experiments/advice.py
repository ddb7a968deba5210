"""Measure what `moments` gains over its control, on made-up graphs: the table behind the advice.

`python -m gcon_lab.experiments.advice --out FILE` writes one line per graph, budget and access: gains on test nodes, with
their standard errors over runs. `gain` is over the control of the same access (`moments-without-edges`; for `cached` its
answers without edges). `gain_over_best` differs for `own-edges` alone: owners could also be given the control's answers
without edges, which are better where friends are not alike. Noise is seeded and the edges are nobody's: nothing here is
private.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, product
from pathlib import Path

from torch import Tensor

from gcon.choose.expectations import COLUMNS
from gcon.choose.public_facts import public_facts
from gcon.edges.graph import PrivateGraph, private_graph
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.methods.controls import MomentsWithoutEdges
from gcon.methods.evidence import above_chance
from gcon.methods.moments import Moments
from gcon.nodes import PublicNodes
from gcon.privacy.randomness import SeededRandomness

ACCESSES = ("none", "cached", "own-edges")
CLASSES = 4


@dataclass(frozen=True, kw_only=True)
class Grid:
    num_nodes: int = 1500
    runs: int = 3
    degrees: Sequence[float] = (3, 10, 30, 80)
    homophilies: Sequence[float] = (0.0, 0.2, 0.5, 0.8)
    signals: Sequence[float] = (1.0, 1.6, 2.5)  # lengths of class means: weak, middling and strong features
    epsilons: Sequence[float] = (0.5, 1.0, 4.0)


Key = tuple[float, float, float, float, str]  # degree, homophily, signal, epsilon, access


def measure(grid: Grid) -> Iterator[dict[str, str]]:
    """The lines of the table."""
    gains: dict[Key, list[tuple[float, float]]] = {}
    strengths: dict[float, list[float]] = {}
    noises = map(SeededRandomness, count())  # a fresh one for every release
    for signal, run in product(grid.signals, range(grid.runs)):
        # One edge-free model for all graphs of these nodes: labels depend on the seed alone.
        nodes, _ = _drawn(grid, seed=run, degree=3, homophily=0.5, signal=signal)
        strengths.setdefault(signal, []).append(public_facts(nodes).edge_free_strength)
        for degree, homophily in product(grid.degrees, grid.homophilies):
            others, edge_index = _drawn(grid, seed=run, degree=degree, homophily=homophily, signal=signal)
            assert others.labels.equal(nodes.labels)
            graph = private_graph(nodes, edge_index, name="social-circles")
            for epsilon, access, both in _gains(graph, grid.epsilons, noises):
                gains.setdefault((degree, homophily, signal, epsilon, access), []).append(both)
        sys.stderr.write(f"signal {signal:g}, run {run + 1} of {grid.runs}\n")
    for (degree, homophily, signal, epsilon, access), found in gains.items():
        place = (degree, above_chance(homophily, CLASSES), statistics.fmean(strengths[signal]))
        values = [*(f"{number:.4g}" for number in place), f"{epsilon:g}", access]
        for part in zip(*found, strict=True):
            error = statistics.stdev(part) / len(part) ** 0.5 if len(part) > 1 else math.inf
            values += [f"{statistics.fmean(part):.4f}", f"{error:.4f}"]
        yield dict(zip(COLUMNS, (*values, str(len(found))), strict=True))


def _drawn(grid: Grid, *, seed: int, degree: float, homophily: float, signal: float) -> tuple[PublicNodes, Tensor]:
    return social_circles_parts(
        grid.num_nodes, num_classes=CLASSES, mean_degree=degree, homophily=homophily, feature_signal=signal, seed=seed
    )


def _gains(
    graph: PrivateGraph, epsilons: Iterable[float], noises: Iterator[SeededRandomness]
) -> Iterator[tuple[float, str, tuple[float, float]]]:
    """Budget, access, and the two gains."""
    mask = graph.nodes.test_mask
    control = MomentsWithoutEdges().fit(graph)
    before = {access: control.score(graph, mask, access=access) for access in ("none", "own-edges")}
    for epsilon in epsilons:
        fitted = Moments(epsilon=epsilon).fit(graph, randomness=next(noises))
        for access in ACCESSES:
            score = fitted.score(graph, mask, access=access)
            same, best = before["none"], before["none"]
            if access == "own-edges":
                same, best = before["own-edges"], max(before.values())
            yield epsilon, access, (score - same, score - best)


def write(out: Path, lines: Iterable[dict[str, str]]) -> None:
    """A CSV file with one line a measurement, in a fixed order."""
    with out.open("w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, required=True, help="the CSV file")
    parser.add_argument("--nodes", type=int, default=Grid.num_nodes, help="nodes of every graph")
    parser.add_argument("--runs", type=int, default=Grid.runs, help="graphs and noises of every line")
    given = parser.parse_args()
    write(given.out, measure(Grid(num_nodes=given.nodes, runs=given.runs)))


if __name__ == "__main__":
    main()
