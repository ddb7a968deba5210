"""How long a training of the default takes, from public sizes: a power law through the measured graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gcon.choose.expectations import MADE_UP, MeasuredGraph, measured
from gcon.choose.public_facts import PublicFacts

WITHIN = 8.0  # a factor: no graph that was left out of the fit was further off


@dataclass(frozen=True, kw_only=True)
class RunTime:
    """Seconds of one core; another machine may be twice as fast or as slow.

    Attributes:
        seconds: what the law says.
        least, most: within a factor of eight.
        largest: nodes of the largest graph that was measured.
    """

    seconds: float
    least: float
    most: float
    largest: int


def run_time(facts: PublicFacts) -> RunTime:
    """Of a graph with such sizes. Reading its edges is not in it: that is a small part up to some million of them."""
    labels = sum(facts.labels_a_class)
    seconds = seconds_of((facts.num_nodes, facts.num_features, facts.num_classes, labels), measured())
    largest = int(max(graph.sizes[0] for graph in measured()))
    return RunTime(seconds=seconds, least=seconds / WITHIN, most=seconds * WITHIN, largest=largest)


def seconds_of(sizes: Sequence[float], graphs: Sequence[MeasuredGraph]) -> float:
    """By the law that fits these graphs: nodes, features, classes and labels, each to a power of its own."""
    made_up = [graph for graph in graphs if graph.name.startswith(MADE_UP)]
    # All made-up graphs have the same sizes: one of them stands for all, as one place among the real ones.
    used = [graph for graph in graphs if not graph.name.startswith(MADE_UP)] + made_up[:1]
    rows = np.array([[1.0, *np.log(graph.sizes)] for graph in used])
    powers = np.linalg.lstsq(rows, np.log([graph.seconds for graph in used]), rcond=None)[0]
    least = np.min([graph.sizes for graph in used], axis=0)  # smaller ones were not measured
    return float(np.exp(np.array([1.0, *np.log(np.maximum(sizes, least))]) @ powers))
