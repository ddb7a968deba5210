"""Cora-ML: a citation graph without a public split."""

from __future__ import annotations

import os

from gcon.edges.graph import PrivateGraph
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
    """Cora-ML with a drawn split: 20 nodes a class, then 500 for validation and 1000 for the test.

    Args:
        facts: the facts of Cora-ML.
        folder: the data folder, by default GCON_DATA.
        split: the seed of the split; 0 is the reference split. Scores move by several points between splits.
        download: fetch the file into the cache when the folder does not have it. It may number the nodes in
            another order than the republished file, which would make the same seed another split.

    Privacy:
        Features, labels and split are public; the edges come wrapped.
    """
    graph = read(
        facts,
        "CitationFull",
        lambda kind, root: kind(str(root), "Cora_ML"),
        folder=folder,
        download=download,
    )
    return graph_from(facts, graph, labels=graph.labels, split=per_class_split(graph.labels, seed=split))
