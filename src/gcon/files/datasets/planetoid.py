"""CiteSeer, PubMed and Cora: citation graphs with a public split.

The raw files are Python pickles, which can run code when they are read: load them only from a source you
trust.
"""

from __future__ import annotations

import os

import torch
from torch import Tensor

from gcon.edges.graph import PrivateGraph
from gcon.errors import InputError
from gcon.files.datasets.facts import DatasetFacts
from gcon.files.datasets.reader import graph_from, read
from gcon.files.splits import per_class_split


def load(
    facts: DatasetFacts,
    *,
    folder: str | os.PathLike[str] | None = None,
    split: int = 0,
    download: bool = False,
) -> PrivateGraph:
    """One of the three graphs.

    Args:
        facts: which one.
        folder: the data folder, by default GCON_DATA.
        split: 0 is the public split (20 a class, 500, 1000); k >= 1 draws one of the same sizes with seed k.
        download: fetch the files into the cache when the folder does not have them.

    Privacy:
        Features, labels and split are public; the edges come wrapped.
    """
    graph = read(
        facts,
        "Planetoid",
        lambda kind, root: kind(str(root), facts.folder),
        folder=folder,
        download=download,
    )
    if graph.split is None:
        raise InputError(
            "folder",
            rule="must hold the public split",
            got="files from which torch_geometric made none",
            fix=f"Take the files from {facts.source}.",
        )
    labels = known_labels(graph.labels, graph.split.test)
    parts = graph.split if split == 0 else per_class_split(labels, seed=split, eligible=labels >= 0)
    return graph_from(facts, graph, labels=labels, split=parts)


def known_labels(labels: Tensor, test_mask: Tensor) -> Tensor:
    """The labels, with -1 where the files have none.

    Fifteen nodes of CiteSeer lie between the test nodes but are not listed: they have neither label nor
    features, and PyG gives them class 0.

    Args:
        labels: the labels as PyG returns them.
        test_mask: the test nodes of the public split.
    """
    listed = test_mask.nonzero().flatten()
    unlisted = ~test_mask
    unlisted[: int(listed.min())] = False
    unlisted[int(listed.max()) + 1 :] = False
    return torch.where(unlisted, -1, labels)
