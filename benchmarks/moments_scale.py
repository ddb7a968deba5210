"""Time, memory and accuracy of the whole default training on large made-up graphs, each in a process of its own.

    .venv/bin/python benchmarks/moments_scale.py [--nodes 100000 300000 1000000 --degree 20 --features 64 --device cpu]

Above 50,000 nodes a sample learns, and a network that it taught answers for all (docs/moments.md, Large graphs). A table is
printed: seconds of the whole training on the clock and of the processor (which other programs on the machine change little),
the highest resident memory of the process, that before training (interpreter and graph), on a GPU its highest memory, and the
share of test nodes answered rightly: by the edge-free model, and with access `none` and `cached`. `--profile` prints where the
time goes. `--disk` reads features and edges from files: memory before training is then that of the interpreter and labels.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gcon.edges.source import Edges
from gcon.edges.stored import StoredEdges
from gcon.learn.edge_free import learn_without_edges
from gcon.methods.moments import Moments
from gcon.nodes import PublicNodes
from gcon.privacy.boundary import Private
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.bench.graphs import KINDS, MadeRows, made_edges
from gcon_lab.bench.stores import write_rows

CLASSES = 10
ALIKE = 0.5  # of the edges join nodes of one kind


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[100_000, 300_000, 1_000_000])
    parser.add_argument("--degree", type=float, default=20.0)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--signal", type=float, default=2.0, help="length of a class mean; the noise of a feature is 1")
    parser.add_argument("--labelled", type=float, default=0.01, help="share of the nodes, at least 20 per class")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--disk", action="store_true", help="features and edges in files, read through 64 MiB")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def peak() -> float:
    """The highest resident memory so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def made_nodes(size: int, given: argparse.Namespace, folder: Path) -> PublicNodes:
    """Ten classes, by the number of a node modulo 16; a class mean and noise make its features."""
    generator = torch.Generator(given.device).manual_seed(1)
    labels = torch.arange(size) % KINDS % CLASSES
    means = torch.randn(CLASSES, given.features, device=given.device, generator=generator)
    means *= given.signal / torch.linalg.vector_norm(means, dim=1, keepdim=True)
    shape = (size, given.features)
    features = torch.empty(shape)
    if given.disk:
        file = np.lib.format.open_memmap(folder / "features.npy", mode="w+", dtype=np.float32, shape=shape)
        features = torch.from_numpy(file)
    for rows in torch.arange(size).split(2**18):
        part = slice(int(rows[0]), int(rows[-1]) + 1)
        noise = torch.randn(len(rows), given.features, device=given.device, generator=generator)
        features[part] = (means[labels[part].to(given.device)] + noise).cpu()
    order = torch.randperm(size, generator=torch.Generator().manual_seed(2))
    labelled = max(int(given.labelled * size), 20 * CLASSES)
    masks = torch.zeros(3, size, dtype=torch.bool)
    for mask, part in zip(masks, order.split([labelled, 1000, size - labelled - 1000]), strict=True):
        mask[part[:50_000] if mask is masks[2] else part] = True
    return PublicNodes(
        features=features,
        labels=labels,
        num_classes=CLASSES,
        train_mask=masks[0],
        validation_mask=masks[1],
        test_mask=masks[2],
    )


def right(answers: Tensor, nodes: PublicNodes) -> float:
    """The share of test nodes answered rightly."""
    return float((answers.argmax(dim=1) == nodes.labels)[nodes.test_mask].double().mean())


def one(given: argparse.Namespace) -> dict[str, float]:
    """Train on one graph in this process."""
    (size,) = given.nodes
    with tempfile.TemporaryDirectory() as folder:
        return trained(size, given, Path(folder))


def trained(size: int, given: argparse.Namespace, folder: Path) -> dict[str, float]:
    """The same, with a folder for what is on disk."""
    nodes, entries = made_nodes(size, given, folder), round(size * given.degree)
    edges: Edges
    if given.disk:
        write_rows(MadeRows(size, entries, alike=ALIKE), folder / "edges.csr")
        edges = StoredEdges(folder / "edges.csr", 2**26)
    else:
        edges = made_edges(size, entries, given.device, alike=ALIKE)
    before, on_gpu = peak(), given.device != "cpu"
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    start, used, profile = time.perf_counter(), time.process_time(), cProfile.Profile()

    def told(stage: str) -> None:
        memory = f"{peak():6.2f} GiB" + (
            f", GPU {torch.cuda.max_memory_allocated() / 2**30:6.2f} GiB" if on_gpu else ""
        )
        print(f"  {time.perf_counter() - start:6.1f} s  {memory}  {stage}", file=sys.stderr, flush=True)

    if given.profile:
        profile.enable()
    model = Moments(epsilon=given.epsilon, device=given.device).train(
        nodes,
        Private(edges, "made-up edges"),
        ledger=MemoryLedger("made up"),
        randomness=SystemRandomness(),
        progress=told,
    )
    profile.disable()
    stop, used_until = time.perf_counter(), time.process_time()
    told("done")
    if given.profile:
        pstats.Stats(profile, stream=sys.stderr).sort_stats("cumulative").print_stats(70)
    free = learn_without_edges(nodes, seed=0, device=given.device)  # kept
    found = {
        "seconds": stop - start,
        "processor s": used_until - used,
        "before GiB": before,
        "peak GiB": peak(),
        "without edges": right(free.answers, nodes),
        "none": right(model.answers, nodes),
        "cached": right(model.best_answers, nodes),
        "tables": float(len(model.tables)),
    }
    return found | ({"GPU GiB": torch.cuda.max_memory_allocated() / 2**30} if on_gpu else {})


def main() -> int:
    """Print the table."""
    given = arguments()
    if given.alone:
        print(json.dumps(one(given)))
        return 0
    print(f"load {os.getloadavg()[0]:.1f}, {torch.get_num_threads()} threads, mean degree {given.degree:g}, ", end="")
    print(
        f"{given.features} features, epsilon {given.epsilon:g}, {given.labelled:g} labelled, {given.device}", flush=True
    )
    names = ("degree", "features", "signal", "labelled", "epsilon", "device")
    for place, size in enumerate(given.nodes):
        options = (
            [f"--{name}={getattr(given, name)}" for name in names]
            + ["--profile"] * given.profile
            + ["--disk"] * given.disk
        )
        child = [sys.executable, __file__, "--alone", "--nodes", str(size), *options]
        line = json.loads(subprocess.run(child, check=True, stdout=subprocess.PIPE, text=True).stdout)
        if place == 0:
            print("| nodes | " + " | ".join(line) + " |\n|" + "---|" * (len(line) + 1))
        print(f"| {size:,} | " + " | ".join(f"{value:.3g}" for value in line.values()) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
