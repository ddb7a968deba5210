"""The published graphs: one function for all of them, and what differs from one to the next.

The raw files of CiteSeer, PubMed and Cora are Python pickles, which can run code when they are read: load them only from a source
you trust.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gcon.edges.graph import PrivateGraph, private_graph
from gcon.errors import InputError
from gcon.files.datasets.facts import DatasetFacts, facts_of
from gcon.files.datasets.reader import PublishedGraph, read
from gcon.files.splits import Split, fraction_split, per_class_split
from gcon.nodes import PublicNodes


def load(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    split: int = 0,
    download: bool = False,
) -> PrivateGraph:
    """Load a published graph, with its edges treated as private.

    Needs the extra `datasets` (PyG). Downloaded files go to the cache folder: GCON_CACHE, else `gcon` in XDG_CACHE_HOME, else
    `.cache/gcon` in the home folder. The data folder is only read.

    Args:
        name: one of `names()`; capitals and hyphen or underscore do not matter.
        folder: the data folder, with one sub-folder per dataset; by default the environment variable GCON_DATA.
        split: 0 is the paper's split (the public one of CiteSeer, PubMed and Cora; the reference split of
            Cora-ML; the first of Actor's five); k >= 1 is a random split of the same kind, drawn with seed k.
        download: fetch the raw files into the cache when the folder does not have them; once is enough, later
            calls with download=True find them there. Without it the network is never touched.

    Raises:
        InputError: the name is unknown, the split is not a whole number from 0, or raw files are missing.
        MissingExtraError: PyG is not installed.

    Privacy:
        Features, labels and splits are public; the edges come wrapped in `Private`. The edges of these graphs
        are in print: the wrapping makes experiments follow the rules of a private graph, it hides nothing.
    """
    facts = facts_of(name)
    if isinstance(split, bool) or not isinstance(split, int) or split < 0:
        raise InputError(
            "split",
            rule="must be a whole number from 0",
            got=repr(split),
            fix="0 is the paper's split, k >= 1 the random split with seed k.",
        )
    pyg_class = {"cora-ml": "CitationFull", "actor": "Actor"}.get(facts.name, "Planetoid")

    def build(kind: type[Any], root: Path) -> Any:
        if pyg_class == "Actor":
            return kind(str(root / facts.folder))
        return kind(str(root), "Cora_ML" if pyg_class == "CitationFull" else facts.folder)

    graph = read(facts, pyg_class, build, folder=folder, download=download)
    if facts.name == "cora-ml":
        # A downloaded file may number the nodes in another order than the republished one: the same seed is another split.
        labels, parts = graph.labels, per_class_split(graph.labels, seed=split)
    elif facts.name == "actor":
        # Not the splits that come with the files: they have 48 / 32 / 20 percent, unlike their names.
        labels, parts = graph.labels, fraction_split(graph.labels, seed=split)
    else:
        labels, parts = _citations(facts, graph, split)
    nodes = PublicNodes(
        features=graph.features,
        labels=labels,
        num_classes=facts.num_classes,
        train_mask=parts.train,
        validation_mask=parts.validation,
        test_mask=parts.test,
    )
    return private_graph(nodes, graph.edge_index, name=facts.name)


def _citations(facts: DatasetFacts, graph: PublishedGraph, split: int) -> tuple[Tensor, Split]:
    """CiteSeer, PubMed and Cora: the public split (20 per class, 500, 1000), or one of the same sizes with seed k >= 1."""
    if graph.split is None:
        raise InputError(
            "folder",
            rule="must hold the public split",
            got="files from which torch_geometric made none",
            fix=f"Take the files from {facts.source}.",
        )
    labels = known_labels(graph.labels, graph.split.test)
    return labels, graph.split if split == 0 else per_class_split(labels, seed=split, eligible=labels >= 0)


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
