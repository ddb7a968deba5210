"""How far the time of a run tells neighbouring graphs apart, and how it grows with the edges.

    .venv/bin/python benchmarks/timing_channel.py [--nodes 2000 --degree 8 --repeats 40]

Trains with either mechanism, answers all nodes from their own edges, and answers one owner (the node with most edges), on
a graph, on that graph without one edge of that node, and on the graph with half of its edges. The runs are interleaved, in
a random order in every round, and the encoder or edge-free model is trained before: it reads no edge. Printed for each
pair: the difference of the medians and the AUC of guessing the graph from one time (0.5 is blind), each with a 95 %
bootstrap interval, by the wall clock and by the processor's (which is what a patient observer of a quiet machine would
see). The same graph once more is the control. Always exits with 0: this channel is measured, not closed.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcon.edges.graph import PrivateGraph, private_graph
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.learn.edge_free import learn_without_edges
from gcon.learn.perceptron import train_encoder
from gcon.methods.moments import Moments
from gcon.methods.objective import Objective
from gcon.methods.own_edges import predict_for_one_owner, predict_from_own_edges
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SystemRandomness

Times = NDArray[np.float64]


@dataclass(frozen=True)
class Given:
    """A graph, and the features of the neighbours of one of its nodes."""

    graph: PrivateGraph
    owner: Tensor
    friends: Tensor


Work = Callable[[Given], object]
SHORT = 0.05  # seconds; what is shorter is run ten times as often
CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}


def graphs(num_nodes: int, degree: float) -> dict[str, Given]:
    """The graph, a neighbour, the same graph once more (the control), and half of its edges."""
    nodes, index = social_circles_parts(num_nodes, mean_degree=degree, num_features=32, per_class=20, seed=1)
    busiest = int(index.flatten().bincount().argmax())
    missing = int((index == busiest).any(dim=0).nonzero()[0])
    fewer = torch.cat([index[:, :missing], index[:, missing + 1 :]], dim=1)
    half = index[:, torch.randperm(index.shape[1], generator=torch.Generator().manual_seed(0))[: index.shape[1] // 2]]
    parts = {"graph": index, "one edge less": fewer, "the same again": index.clone(), "half of the edges": half}

    def given(part: Tensor) -> Given:
        own = part[:, (part == busiest).any(dim=0)]
        friends = own[own != busiest]
        return Given(private_graph(nodes, part), nodes.features[busiest], nodes.features[friends])

    return {name: given(part) for name, part in parts.items()}


def works(first: PrivateGraph) -> dict[str, Work]:
    """What is timed; everything that reads no edge is done once, here."""
    settings = Objective(epsilon=1.0, device="cpu")
    encoder = train_encoder(first.nodes, settings.encoder)
    learn_without_edges(first.nodes, seed=0)
    noise = SystemRandomness()

    def by_moments(given: Given) -> object:
        training, graph = Moments(epsilon=1.0), given.graph
        return training.train(graph.nodes, graph.edges, ledger=MemoryLedger(), randomness=noise)

    def by_paper(given: Given) -> object:
        graph = given.graph
        return settings.train(graph.nodes, graph.edges, ledger=MemoryLedger(), randomness=noise, encoder=encoder)

    model = settings.train(first.nodes, first.edges, ledger=MemoryLedger(), randomness=noise, encoder=encoder)

    def answers(given: Given) -> object:
        return predict_from_own_edges(model, given.graph.nodes.features, given.graph.edges, ledger=MemoryLedger())

    def answer(given: Given) -> object:
        return predict_for_one_owner(model, given.owner, given.friends)

    return {"train moments": by_moments, "train paper": by_paper, "answer all": answers, "answer one owner": answer}


def measured(work: Work, given: dict[str, Given], repeats: int) -> dict[str, dict[str, Times]]:
    """Seconds of every run, by clock and graph."""
    found: dict[str, dict[str, list[float]]] = {clock: {name: [] for name in given} for clock in CLOCKS}
    start = time.process_time()
    for graph in given.values():
        work(graph)
    short = (time.process_time() - start) / len(given) < SHORT
    for _ in range(10 * repeats if short else repeats):
        for name in random.sample(list(given), len(given)):
            before = {clock: read() for clock, read in CLOCKS.items()}
            work(given[name])
            for clock, read in CLOCKS.items():
                found[clock][name].append(read() - before[clock])
    return {clock: {name: np.array(times) for name, times in part.items()} for clock, part in found.items()}


def with_interval(what: Callable[[Times, Times], float], one: Times, other: Times) -> tuple[float, float, float]:
    """The value and a 95 % bootstrap interval."""
    rng = np.random.default_rng(0)
    draws = [what(rng.choice(one, len(one)), rng.choice(other, len(other))) for _ in range(2000)]
    low, high = np.quantile(draws, [0.025, 0.975])
    return what(one, other), float(low), float(high)


def difference(one: Times, other: Times) -> float:
    """Of the medians, in milliseconds."""
    return 1000 * float(np.median(one) - np.median(other))


def auc(one: Times, other: Times) -> float:
    """The chance that a time of the first graph is above one of the second."""
    pairs = one[:, None] - other[None, :]
    return float((pairs > 0).mean() + (pairs == 0).mean() / 2)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--degree", type=float, default=8.0)
    parser.add_argument("--repeats", type=int, default=40)
    arguments = parser.parse_args()
    given = graphs(arguments.nodes, arguments.degree)
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    runs = arguments.repeats
    print(
        f"{arguments.nodes} nodes, mean degree about {arguments.degree:g}; {runs} runs of each, {10 * runs} of short ones,"
    )
    print(f"interleaved; {torch.get_num_threads()} threads, load {load:.1f} a core before the start")
    print(f"{'work':16s} {'clock':9s} {'against':17s} {'median ms':>9s}  {'difference ms':24s} AUC")
    for name, work in works(given["graph"].graph).items():
        for clock, times in measured(work, given, runs).items():
            first = times.pop("graph")
            for other, second in times.items():
                gap, low, high = with_interval(difference, first, second)
                shown = f"{gap:.3f} ({low:.3f} to {high:.3f})"
                found, least, most = with_interval(auc, first, second)
                print(
                    f"{name:16s} {clock:9s} {other:17s} {1000 * np.median(first):9.2f}  {shown:24s} "
                    f"{found:.2f} ({least:.2f} to {most:.2f})",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
