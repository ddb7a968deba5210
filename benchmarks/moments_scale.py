"""Time, memory and accuracy of the default training on large synthetic graphs, each in a process of its own.

    .venv/bin/python benchmarks/moments_scale.py [--nodes 100000 300000 1000000 --degree 20 --features 64]

Above 50,000 nodes the ensemble is taught on a sample of the nodes and asked in blocks (docs/moments.md, Large graphs). A
table is printed: seconds of the edge-free model and of what comes after it, the processor's seconds for both (which other
programs on the machine change little), the highest resident memory of the process, that before training (interpreter
and graph), and the share of test nodes answered rightly: by the edge-free model, and with access `none` and `cached`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time

import torch
from torch import Tensor

from gcon.files.datasets import social_circles
from gcon.learn.edge_free import learn_without_edges
from gcon.methods.moments import Moments
from gcon.nodes import PublicNodes
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SystemRandomness


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[100_000, 300_000, 1_000_000])
    parser.add_argument("--degree", type=float, default=20.0)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--signal", type=float, default=2.0, help="length of a class mean; the noise of a feature is 1")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def peak() -> float:
    """The highest resident memory so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def right(answers: Tensor, nodes: PublicNodes) -> float:
    """The share of test nodes answered rightly."""
    return float((answers.argmax(dim=1) == nodes.labels)[nodes.test_mask].double().mean())


def one(given: argparse.Namespace) -> dict[str, float]:
    """Train on one graph in this process."""
    (size,) = given.nodes
    graph = social_circles(
        size,
        mean_degree=given.degree,
        num_features=given.features,
        feature_signal=given.signal,
        num_validation=1000,
        num_test=min(50_000, size // 2),
    )
    nodes, before = graph.nodes, peak()
    start, used = time.perf_counter(), time.process_time()

    def told(stage: str) -> None:
        print(f"  {time.perf_counter() - start:6.1f} s  {peak():5.2f} GiB  {stage}", file=sys.stderr, flush=True)

    told("edge-free model")
    free = learn_without_edges(nodes, seed=0)
    middle = time.perf_counter()
    model = Moments(epsilon=given.epsilon).train(
        nodes,
        graph.edges,
        ledger=MemoryLedger(graph.name),
        randomness=SystemRandomness(),
        progress=told,
    )
    stop = time.perf_counter()
    told("done")
    return {
        "edge-free s": middle - start,
        "after s": stop - middle,
        "processor s": time.process_time() - used,
        "before GiB": before,
        "peak GiB": peak(),
        "without edges": right(free.answers, nodes),
        "none": right(model.answers, nodes),
        "cached": right(model.best_answers, nodes),
    }


def main() -> int:
    """Print the table."""
    given = arguments()
    if given.alone:
        print(json.dumps(one(given)))
        return 0
    print(f"load {os.getloadavg()[0]:.1f}, {torch.get_num_threads()} threads, mean degree {given.degree:g}, ", end="")
    print(f"{given.features} features, epsilon {given.epsilon:g}")
    for place, size in enumerate(given.nodes):
        options = [f"--{name}={getattr(given, name)}" for name in ("degree", "features", "signal", "epsilon")]
        child = [sys.executable, __file__, "--alone", "--nodes", str(size), *options]
        line = json.loads(subprocess.run(child, check=True, stdout=subprocess.PIPE, text=True).stdout)
        if place == 0:
            print("| nodes | " + " | ".join(line) + " |\n|" + "---|" * (len(line) + 1))
        print(f"| {size:,} | " + " | ".join(f"{value:.3g}" for value in line.values()) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
