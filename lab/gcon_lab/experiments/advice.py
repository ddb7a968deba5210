"""The tables behind the advice: what the default gained over what is free, on graphs whose edges are nobody's secret.

    python -m gcon_lab.experiments.default_method --graphs real --first-run 70 --runs 10 --out DIR
    python -m gcon_lab.experiments.advice --results DIR --first-run 70 --out src/gcon/choose

The first command measures accuracy on real graphs, and this one adds a grid of made-up graphs and the facts of every graph; all
of it is kept in DIR, one file per graph and run, so that interrupted work goes on where it was. Then three tables are written:
`graphs.csv`, one line per graph; `expectations.csv`, what was gained there at every budget; and `intervals.csv`, how wide an
interval must be, and how often it held for real graphs that were left out. Noise is seeded: nothing here is private.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from gcon.choose.public_facts import public_facts
from gcon.machine import one_thread
from gcon.methods.evidence import above_chance
from gcon.methods.moments import Moments
from gcon.privacy.gates import declassify
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.experiments.advice_tables import expectation_lines, graph_lines, interval_lines, measured_graphs
from gcon_lab.experiments.default_method import DELTA, REAL, measured
from gcon_lab.experiments.sweep.graphs import Circles, OpenGraph, open_graph
from gcon_lab.experiments.unit_store import UnitStore
from gcon_lab.tables import records

DEGREES, HOMOPHILIES, SIGNALS = (3, 10, 30, 80), (0.0, 0.2, 0.5, 0.8), (1.0, 2.0)
GRID = {
    f"grid-{degree}-{homophily:g}-{signal:g}": Circles(degree=degree, homophily=homophily, signal=signal)
    for degree, homophily, signal in product(DEGREES, HOMOPHILIES, SIGNALS)
}


def opened(name: str, run: int) -> OpenGraph:
    """A real graph, or one of the grid."""
    if name not in GRID:
        return open_graph(name, run)
    graph = GRID[name].draw(name, seed=run)
    edges = declassify(graph.edges, reason="made up: measuring accuracy", ledger=MemoryLedger(name))
    return OpenGraph(graph, edges, len(edges.columns))


def _measured(name: str, run: int) -> list[dict[str, float]]:
    return measured(name, run, opened=opened(name, run))


def facts(name: str, run: int) -> dict[str, float]:
    """What is public about the nodes, what the edges are like, and the seconds of one core that a training takes."""
    found = opened(name, run)
    nodes, settings = found.graph.nodes, Moments(epsilon=1.0, delta=DELTA, device="cpu")
    with one_thread():
        started = time.process_time()
        settings.train(nodes, found.graph.edges, ledger=MemoryLedger(found.graph.name), randomness=SeededRandomness(0))
        seconds = time.process_time() - started
        public = public_facts(nodes)  # from memory: the training has just learned it
    ends = found.edges.edge_index()
    alike = float((nodes.labels[ends[0]] == nodes.labels[ends[1]]).double().mean())
    return {
        "nodes": nodes.num_nodes,
        "features": public.num_features,
        "classes": nodes.num_classes,
        "labels": sum(public.labels_a_class),
        "validation": public.num_validation,
        "edge_free_accuracy": public.edge_free_accuracy,
        "edge_free_strength": public.edge_free_strength,
        "mean_degree": ends.shape[1] / nodes.num_nodes,
        "homophily_above_chance": above_chance(alike, nodes.num_classes),
        "seconds": seconds,
    }


def kept(folder: Path, name: str, run: int, make: Callable[[], Any]) -> Any:
    """A result of its own file, made if it is not there."""
    store, unit = UnitStore(folder), f"{name.replace('/', '-')}-run{run}"
    if (found := store.read(unit)) is None:
        found = make()
        store.write(unit, found)
        print(folder / unit, file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True, help="the folder that default_method wrote to")
    parser.add_argument("--first-run", type=int, default=50)
    parser.add_argument("--runs", type=int, default=10, help="of default_method on real graphs")
    parser.add_argument(
        "--facts-runs", type=int, default=1, help="runs of which facts are taken, and intervals checked"
    )
    parser.add_argument("--out", type=Path, required=True, help="the folder of the three tables")
    given = parser.parse_args()
    first, results = given.first_run, given.results
    place: dict[str, list[dict[str, float]]] = {}
    rows: dict[str, list[list[dict[str, float]]]] = {}
    for name in (*REAL, *GRID):
        runs = range(first, first + (given.runs if name in REAL else 1))
        place[name] = [
            kept(results / "facts", name, run, partial(facts, name, run)) for run in runs[: given.facts_runs]
        ]
        rows[name] = [kept(results / "store", name, run, partial(_measured, name, run)) for run in runs]
    graphs = measured_graphs(place, rows)
    tables = {
        "graphs.csv": graph_lines(graphs),
        "expectations.csv": expectation_lines(graphs),
        "intervals.csv": interval_lines(graphs, place, rows, real=REAL),
    }
    for name, lines in tables.items():
        (given.out / name).write_text(records(list(lines)))


if __name__ == "__main__":
    main()
