"""The tables behind the advice: what the default gained over what is free, on graphs whose edges are nobody's secret.

    python -m gcon_lab.experiments.default_method --graphs real --first-run 70 --runs 10 --out DIR
    python -m gcon_lab.experiments.advice --results DIR --first-run 70 --out src/gcon/choose

The first command measures accuracy on real graphs, and this one adds a grid of made-up graphs and the facts of every graph; all
of it is kept in DIR, one file per graph and run, so that interrupted work goes on where it was. Then three tables are written:
`graphs.csv`, one line per graph; `expectations.csv`, what was gained there at every budget; and `intervals.csv`, how wide an
interval must be, and how often it held for real graphs that were left out. Noise is seeded: nothing here is private.
"""

from __future__ import annotations

import time
from pathlib import Path

from gcon.choose.public_facts import public_facts
from gcon.machine import one_thread
from gcon.methods.evidence import above_chance
from gcon.methods.moments import Moments
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.experiments.advice_tables import expectation_lines, graph_lines, interval_lines, measured_graphs
from gcon_lab.experiments.command import command, write_all
from gcon_lab.experiments.default_method import DELTA, REAL, default_unit
from gcon_lab.experiments.sweep.graphs import GRID, open_graph
from gcon_lab.experiments.units import Call, finished
from gcon_lab.tables import records


def facts(name: str, run: int) -> dict[str, float]:
    """What is public about the nodes, what the edges are like, and the seconds of one core that a training takes."""
    found = open_graph(name, run)
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


def main() -> None:
    parser = command(__doc__, "first-run", "runs", first_run=50)
    parser.add_argument("--results", type=Path, required=True, help="the folder that default_method wrote to")
    parser.add_argument(
        "--facts-runs", type=int, default=1, help="runs of which facts are taken, and intervals checked"
    )
    given = parser.parse_args()
    place: dict[str, list[dict[str, float]]] = {}
    rows: dict[str, list[list[dict[str, float]]]] = {}
    for name in (*REAL, *GRID):
        runs = range(given.first_run, given.first_run + (given.runs if name in REAL else 1))
        # One after the other: what a training takes is measured.
        units = [Call(default_unit(name, run).name, facts, (name, run)) for run in runs[: given.facts_runs]]
        place[name] = finished(units, given.results / "facts", workers=1)
        rows[name] = finished([default_unit(name, run) for run in runs], given.results / "store", workers=1)
    graphs = measured_graphs(place, rows)
    tables = {
        "graphs.csv": graph_lines(graphs),
        "expectations.csv": expectation_lines(graphs),
        "intervals.csv": interval_lines(graphs, place, rows, real=REAL),
    }
    write_all(given.out, {name: records(list(lines)) for name, lines in tables.items()})


if __name__ == "__main__":
    main()
