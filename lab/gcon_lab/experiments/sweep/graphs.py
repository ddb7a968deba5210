"""The graphs of an experiment with their edges opened: benchmarks that are in print for years, and made-up ones.

Shapes are made-up graphs as people have them: a hundred classes, a thousand nodes, features of many scales, uneven classes, edges
that tell nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList, public_edges
from gcon.edges.graph import PrivateGraph, private_graph
from gcon.files.datasets import load
from gcon.files.datasets.facts import FACTS
from gcon.files.datasets.synthetic import social_circles, social_circles_parts
from gcon.files.splits import fraction_split, per_class_split
from gcon.nodes import PublicNodes
from gcon.privacy.gates import declassify
from gcon.privacy.ledger import MemoryLedger
from gcon_lab.experiments.sweep.social import SOCIAL, load_social

SHARES = (0.7, 0.2, 0.07, 0.03)
MADE_UP = "made-up"  # small, and there on every machine
WITHOUT_LABELLED = "edges of labelled nodes removed"
INDUCTIVE = "inductive: training nodes and test nodes share no edge"
READINGS = (WITHOUT_LABELLED, INDUCTIVE)


@dataclass(frozen=True, kw_only=True)
class UnusualCircles:
    """A family of graphs; every run draws a new one.

    Attributes:
        degree, homophily, signal, nodes, classes, features: of the circles that it is drawn from.
        mixed: features are mixed with each other, and columns have scales from 0.1 to 10.
        shares: of the classes; of the larger ones all nodes are kept, of the others so many as give these shares.
        labelled: so many labelled nodes, as classes come; None for 20 per class.
    """

    degree: float
    homophily: float
    signal: float
    nodes: int = 3000
    classes: int = 4
    features: int = 64
    mixed: bool = False
    shares: tuple[float, ...] = ()
    labelled: int | None = None

    def draw(self, name: str, *, seed: int) -> PrivateGraph:
        """One graph."""
        rng = np.random.default_rng([seed, 1])
        nodes, edges = social_circles_parts(
            self.nodes,
            num_classes=self.classes,
            mean_degree=self.degree,
            homophily=self.homophily,
            feature_signal=self.signal,
            num_features=self.features,
            num_validation=0,
            num_test=0,
            seed=seed,
        )
        features, kept = nodes.features.numpy(), np.ones(self.nodes, dtype=bool)
        if self.mixed:
            scales = 10.0 ** rng.uniform(-1, 1, self.features)
            features = features @ rng.standard_normal((self.features, self.features)) * scales
        if self.shares:
            kept &= rng.random(self.nodes) < (np.array(self.shares) / max(self.shares))[nodes.labels.numpy()]
        rows = torch.from_numpy(np.flatnonzero(kept))
        places = torch.from_numpy(np.cumsum(kept) - 1)
        held = torch.from_numpy(kept)
        labels, edges = nodes.labels[rows], places[edges[:, held[edges[0]] & held[edges[1]]]]
        if self.labelled is None:
            split = per_class_split(labels, seed=seed, num_validation=min(500, len(rows) // 5))
        else:
            split = fraction_split(labels, seed=seed, train=self.labelled / len(rows), validation=500 / len(rows))
        return private_graph(
            PublicNodes(
                features=torch.from_numpy(features[kept].astype(np.float32)),
                labels=labels,
                num_classes=self.classes,
                train_mask=split.train,
                validation_mask=split.validation,
                test_mask=split.test,
            ),
            edges,
            name=name,
        )


def _both(
    name: str, *, dense_homophily: float = 0.5, **options: float | bool | tuple[float, ...]
) -> dict[str, UnusualCircles]:
    """Sparse, where moments are released, and dense, where neighbours are counted."""
    return {
        f"{name}-{words}": UnusualCircles(degree=degree, homophily=homophily, **options)  # type: ignore[arg-type]
        for words, degree, homophily in (("sparse", 5, 0.8), ("dense", 40, dense_homophily))
    }


SHAPES = (
    _both("hundred-classes-20-features", nodes=5000, classes=100, features=20, signal=3.0, dense_homophily=0.1)
    | _both("hundred-classes-200-features", nodes=5000, classes=100, features=200, signal=4.0, dense_homophily=0.1)
    | _both("thousand-nodes", nodes=1000, signal=1.5)
    | _both("mixed-scales", features=128, classes=5, signal=2.0, mixed=True)
    | _both("uneven-classes", nodes=12000, signal=1.5, shares=SHARES)
    | _both("uneven-classes-as-they-come", nodes=12000, signal=1.5, shares=SHARES, labelled=80)
    | {
        f"edges-by-chance-{words}": UnusualCircles(degree=degree, homophily=0.25, signal=2.0)  # of four classes
        for words, degree in (("sparse", 5), ("dense", 40))
    }
)


@dataclass(frozen=True, kw_only=True)
class Circles:
    """A family of synthetic social graphs; every run draws a new one."""

    degree: float
    homophily: float
    signal: float
    nodes: int = 2000

    def draw(self, name: str, *, seed: int) -> PrivateGraph:
        """One graph: five classes, 64 features, 20 labels per class."""
        return social_circles(
            self.nodes,
            num_classes=5,
            mean_degree=self.degree,
            homophily=self.homophily,
            feature_signal=self.signal,
            num_features=64,
            seed=seed,
            name=name,
        )


# Density 3 to 100, homophily 0.1 to 0.9, weak and strong features, two sizes.
CIRCLES = {
    "circles-3-0.8-strong": Circles(degree=3, homophily=0.8, signal=2.0),
    "circles-5-0.9-weak": Circles(degree=5, homophily=0.9, signal=1.0),
    "circles-10-0.5-weak": Circles(degree=10, homophily=0.5, signal=1.0),
    "circles-10-0.8-large": Circles(degree=10, homophily=0.8, signal=1.5, nodes=8000),
    "circles-20-0.1-strong": Circles(degree=20, homophily=0.1, signal=2.0),
    "circles-20-0.6-weak": Circles(degree=20, homophily=0.6, signal=1.0),
    "circles-50-0.2-strong": Circles(degree=50, homophily=0.2, signal=2.0),
    "circles-50-0.5-weak": Circles(degree=50, homophily=0.5, signal=1.0),
    "circles-75-0.4-weak": Circles(degree=75, homophily=0.4, signal=1.0),
    "circles-100-0.4-weak": Circles(degree=100, homophily=0.4, signal=1.0),
    "circles-100-0.3-large": Circles(degree=100, homophily=0.3, signal=1.0, nodes=8000),
}
LARGE_CIRCLES = "circles-20-0.5-sixty-thousand"  # a sample learns
# What the advice is looked up in.
GRID = {
    f"grid-{degree}-{homophily:g}-{signal:g}": Circles(degree=degree, homophily=homophily, signal=signal)
    for degree, homophily, signal in product((3, 10, 30, 80), (0.0, 0.2, 0.5, 0.8), (1.0, 2.0))
}
_LARGE = {LARGE_CIRCLES: Circles(degree=20, homophily=0.5, signal=1.0, nodes=60_000)}
_DRAWN: dict[str, Circles | UnusualCircles] = {**CIRCLES, **GRID, **SHAPES, **_LARGE}


@dataclass(frozen=True, eq=False)
class OpenGraph:
    """A benchmark graph.

    Attributes:
        graph: as the product sees it.
        edges: the same edges, opened.
        edge_count: |E| as the paper counts it, which its delta is one over.
    """

    graph: PrivateGraph
    edges: EdgeList
    edge_count: int


@lru_cache(maxsize=2)
def open_graph(name: str, run: int) -> OpenGraph:
    """The graph of one run: Actor has five splits, two runs each; social graphs one per run; the paper's others have one."""
    if name == MADE_UP:
        graph = social_circles(600, num_classes=3, mean_degree=6, feature_signal=2.0, num_validation=100, num_test=200)
    elif name in _DRAWN:
        graph = _DRAWN[name].draw(name, seed=run)
    elif name in SOCIAL:
        graph = load_social(name, run=run)
    else:
        graph = load(name, split=run % 10 // 2 if name == "actor" else 0)
    reason = "public benchmark graph: measuring accuracy"
    edges = declassify(graph.edges, reason=reason, ledger=MemoryLedger(graph.name))
    stored = FACTS[name].num_edges if name in FACTS else len(edges.columns)
    return OpenGraph(graph, edges, stored)


def restricted(edges: EdgeList, nodes: Tensor) -> EdgeList:
    """The edges with both ends among some nodes (a boolean mask); the node set stays."""
    index = edges.edge_index()
    return public_edges(index[:, nodes[index[0]] & nodes[index[1]]], edges.num_nodes)


def training_part(opened: OpenGraph) -> Tensor:
    """The nodes of the training graph in the inductive reading: the labelled ones, and half of those without any role."""
    nodes = opened.graph.nodes
    roleless = (~(nodes.train_mask | nodes.validation_mask | nodes.test_mask)).nonzero()[:, 0]
    order = torch.randperm(len(roleless), generator=torch.Generator().manual_seed(0))
    part = nodes.train_mask.clone()
    part[roleless[order[: len(roleless) // 2]]] = True
    return part


def public_test_graphs(opened: OpenGraph) -> Iterator[tuple[str, EdgeList]]:
    """Fig. 3's public graph "without the edges of the private training set", in its two readings."""
    yield WITHOUT_LABELLED, restricted(opened.edges, ~opened.graph.nodes.train_mask)
    yield INDUCTIVE, restricted(opened.edges, ~training_part(opened))
