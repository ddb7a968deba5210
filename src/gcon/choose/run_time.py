"""How long a training of the default takes, from public sizes: a power law through the measured graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gcon.choose.expectations import MADE_UP, MeasuredGraph, measured
from gcon.choose.public_facts import PublicFacts

WITHIN = 5.0  # a factor: no graph that was left out of the fit was further off


@dataclass(frozen=True, kw_only=True)
class RunTime:
    """Seconds of one core; another machine may be twice as fast or as slow.

    Attributes:
        seconds: what the law says.
        least, most: within a factor of five.
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
    """By the law that fits these graphs: nodes, classes and labels, each to a power of its own.

    The number of features is not in it: what a training takes depends on how many are set in a row, and with it in the law a
    graph that was left out was further off (7.5 times instead of 4.1).
    """
    made_up = [graph for graph in graphs if graph.name.startswith(MADE_UP)]
    # All made-up graphs have the same sizes: one of them stands for all, as one place among the real ones.
    used = [graph for graph in graphs if not graph.name.startswith(MADE_UP)] + made_up[:1]
    least = np.min([graph.sizes for graph in used], axis=0)  # smaller ones were not measured
    rows, asked = _terms([graph.sizes for graph in used]), _terms([np.maximum(sizes, least)])
    powers = np.linalg.lstsq(rows, np.log([graph.seconds for graph in used]), rcond=None)[0]
    return float(np.exp(asked @ powers)[0])


def _terms(sizes: Sequence[Sequence[float] | np.ndarray]) -> np.ndarray:
    nodes, _, classes, labels = np.log(np.array(sizes)).T
    return np.stack([np.ones(len(sizes)), nodes, classes, labels], axis=1)
