"""What the default training costs beside training the non-private GCN, on the eight real graphs, in one run.

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/training_cost.py [--graphs NAMES] [--repeats 3]    # needs GCON_DATA

Times are processor seconds on one thread (the median of the repeats): a busy machine does not change them much. The GCN is ours
(`gcon_lab`, 16 hidden units, at most 200 epochs, stops after 10 without a better validation loss). Exits with 1 if the default
takes more than 1.5 times as long on any graph.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial

import torch

from gcon.edges.graph import PrivateGraph
from gcon.learn import edge_free
from gcon.methods.moments import Moments
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.experiments.sweep.graphs import open_graph
from gcon_lab.methods.gcn import GCN

GRAPHS = (
    "cora-ml,citeseer,pubmed,actor,social/fb100-johns-hopkins,social/flickr-groups,social/amazon-photo,social/twitch-de"
)
MOST = 1.5


def processor_seconds(work: Callable[[], object]) -> float:
    """Of this process."""
    start = time.process_time()
    work()
    return time.process_time() - start


def train_default(graph: PrivateGraph) -> object:
    """All of it: nothing is remembered from the last time."""
    edge_free._kept.cache_clear()
    return Moments(epsilon=1.0, delta=1e-5).train(
        graph.nodes, graph.edges, ledger=MemoryLedger(graph.name), randomness=SystemRandomness()
    )


def train_gcn(graph: PrivateGraph) -> object:
    """Until it stops early."""
    return GCN(seed=0).train(graph.nodes, graph.edges, ledger=MemoryLedger(graph.name), randomness=SystemRandomness())


def main() -> int:
    """Print a table; 1 if the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", default=GRAPHS)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    ratios = []
    print("| graph | nodes | default, s | GCN, s | ratio |\n|---|---|---|---|---|")
    for name in given.graphs.split(","):
        graph = open_graph(name, 0).graph
        default, gcn = partial(train_default, graph), partial(train_gcn, graph)
        default(), gcn()  # imports, compiled kernels
        times = [(processor_seconds(default), processor_seconds(gcn)) for _ in range(given.repeats)]
        ours, theirs = (statistics.median(each) for each in zip(*times, strict=True))
        ratios.append(ours / theirs)
        print(f"| {name} | {graph.nodes.num_nodes} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} |", flush=True)
    return 0 if max(ratios) <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
