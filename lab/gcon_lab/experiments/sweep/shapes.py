"""Made-up graphs of shapes that people have: a hundred classes, a thousand nodes, features of many scales, uneven classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from gcon.edges.graph import PrivateGraph, private_graph
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.files.splits import fraction_split, per_class_split
from gcon.nodes import PublicNodes

SHARES = (0.7, 0.2, 0.07, 0.03)


@dataclass(frozen=True, kw_only=True)
class Shape:
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


def _both(name: str, *, dense_homophily: float = 0.5, **options: float | bool | tuple[float, ...]) -> dict[str, Shape]:
    """Sparse, where moments are released, and dense, where neighbours are counted."""
    return {
        f"{name}-{words}": Shape(degree=degree, homophily=homophily, **options)  # type: ignore[arg-type]
        for words, degree, homophily in (("sparse", 5, 0.8), ("dense", 40, dense_homophily))
    }


SHAPES = (
    _both("hundred-classes-20-features", nodes=5000, classes=100, features=20, signal=3.0, dense_homophily=0.1)
    | _both("hundred-classes-200-features", nodes=5000, classes=100, features=200, signal=4.0, dense_homophily=0.1)
    | _both("thousand-nodes", nodes=1000, signal=1.5)
    | _both("mixed-scales", features=128, classes=5, signal=2.0, mixed=True)
    | _both("uneven-classes", nodes=12000, signal=1.5, shares=SHARES)
    | _both("uneven-classes-as-they-come", nodes=12000, signal=1.5, shares=SHARES, labelled=80)
)
