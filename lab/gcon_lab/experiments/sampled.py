"""Learning from a sample beside learning from everybody, on graphs where both run.

    python -m gcon_lab.experiments.sampled --out DIR [--graphs NAMES] [--runs 5]

Above 50,000 nodes the default learns from a sample of 25,000. Here the sample is half of the nodes of each graph, at most 25,000,
whatever its size: a harder test than the product ever is, since the graphs are small. A made-up graph of 60,000 nodes is answered
both ways at the sizes that the product has.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from gcon.learn import sample
from gcon.learn.edge_free import forget_learned
from gcon.machine import one_thread
from gcon.methods.moments import Moments
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.experiments.command import command, write_all
from gcon_lab.experiments.default_method import ACCESSES, DELTA, share_right
from gcon_lab.experiments.sweep.graphs import LARGE_CIRCLES, open_graph
from gcon_lab.experiments.sweep.models import seed_of
from gcon_lab.experiments.sweep.social import SOCIAL
from gcon_lab.experiments.units import Call, finished
from gcon_lab.tables import markdown, mean_and_error

GRAPHS = ("cora-ml", "citeseer", "pubmed", "actor", *SOCIAL, LARGE_CIRCLES)
WAYS = ("everybody", "sample")
_EPSILON = 1.0


@contextmanager
def learning_from(way: str, num_nodes: int) -> Iterator[None]:
    """The sizes that make the default learn from everybody, or from half of the nodes."""
    before = sample.EXACT_NODES, sample.SAMPLE_NODES
    forget_learned()
    sample.EXACT_NODES = num_nodes if way == "everybody" else num_nodes - 1
    sample.SAMPLE_NODES = min(before[1], num_nodes // 2)
    try:
        yield
    finally:
        sample.EXACT_NODES, sample.SAMPLE_NODES = before
        forget_learned()


def measured(name: str, run: int) -> dict[str, float]:
    """What is right on the test nodes both ways, under each access, at one budget; and how many nodes learned."""
    opened, found = open_graph(name, run), {}
    nodes = opened.graph.nodes
    for way in WAYS:
        gc.collect()
        with one_thread(), learning_from(way, nodes.num_nodes):
            noise = SeededRandomness(seed_of(f"sampled|{name}|{run}"))
            method = Moments(epsilon=_EPSILON, delta=DELTA, seed=run, device="cpu")
            model = method.train(nodes, opened.graph.edges, ledger=MemoryLedger(name), randomness=noise)
            for access in ACCESSES:
                scores = model.score_functions[access](nodes.features, opened.edges)
                found[f"{way}, {access}"] = share_right(scores, nodes)
    return found | {"nodes": float(nodes.num_nodes)}


def main() -> None:
    """Measure and write `sampled.md`."""
    given = command(__doc__, "graphs", "runs", "workers", graphs=",".join(GRAPHS), runs=5).parse_args()
    names, rows = given.graphs.split(","), []
    units = [
        Call(f"sampled-{name.replace('/', '-')}-run{run}", measured, (name, run))
        for name in names
        for run in range(given.runs)
    ]
    results = iter(finished(units, given.out / "store", workers=given.workers))
    for name in names:
        runs = [next(results) for _ in range(given.runs)]
        size = int(runs[0]["nodes"])
        cells = [mean_and_error([run[f"{way}, {access}"] for run in runs]) for access in ACCESSES for way in WAYS]
        gaps = [
            np.array([run[f"sample, {access}"] - run[f"everybody, {access}"] for run in runs]) for access in ACCESSES
        ]
        rows.append(
            [
                name,
                str(size),
                str(min(sample.SAMPLE_NODES, size // 2)),
                *cells,
                *(mean_and_error(gap, sign="+") for gap in gaps),
            ]
        )
    head = [
        "# A sample beside everybody",
        "",
        f"Made by `python -m gcon_lab.experiments.sampled --graphs {given.graphs} --runs {given.runs} --out DIR`:",
        f"the share of right answers on test nodes, mean and standard error over {given.runs} runs, epsilon {_EPSILON:g}, delta",
        f"{DELTA:g}, seeded noise, the same in both. Everybody learns up to 50,000 nodes; above that a sample of 25,000 does.",
        "Here half of the nodes do, at most 25,000, so that both can be measured on the same graph. The last columns are the",
        "sample less everybody, run by run.",
        "",
    ]
    columns = ["graph", "nodes", "in the sample", *(f"{access}, {way}" for access in ACCESSES for way in WAYS)]
    columns += [f"{access}, difference" for access in ACCESSES]
    write_all(given.out, {"sampled.md": "\n".join([*head, markdown(columns, rows)])})


if __name__ == "__main__":
    main()
