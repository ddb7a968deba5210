"""Actor: who appears with whom on the pages of a film encyclopaedia; neighbours rarely share a class."""

from __future__ import annotations

import os

from gcon.edges.graph import PrivateGraph
from gcon.files.datasets.facts import DatasetFacts
from gcon.files.datasets.reader import graph_from, read
from gcon.files.splits import fraction_split


def load(
    facts: DatasetFacts,
    *,
    folder: str | os.PathLike[str] | None = None,
    split: int = 0,
    download: bool = False,
) -> PrivateGraph:
    """Actor with a random split of 60 / 20 / 20 percent, made undirected.

    The splits that come with the files are not used: they have 48 / 32 / 20 percent, unlike their names.

    Args:
        facts: the facts of Actor.
        folder: the data folder, by default GCON_DATA.
        split: the seed of the split; the paper's experiments use five, 0 to 4.
        download: fetch the files into the cache when the folder does not have them.

    Privacy:
        Features, labels and split are public; the edges come wrapped. The files hold 30,019 directed pairs,
        loops among them; `private_graph` makes 26,659 undirected edges of them, as every bound requires.
    """
    graph = read(
        facts,
        "Actor",
        lambda kind, root: kind(str(root / facts.folder)),
        folder=folder,
        download=download,
    )
    return graph_from(facts, graph, labels=graph.labels, split=fraction_split(graph.labels, seed=split))
