"""What is published about every dataset: sizes, homophily, splits, and whom to cite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from gcon.errors import InputError


@dataclass(frozen=True)
class DatasetFacts:
    """Published facts of one dataset.

    Attributes:
        name: how `gcon.datasets.load` calls it.
        title: how the literature writes it.
        num_nodes: nodes.
        num_edges: edges as the paper counts them, the columns of PyG's `edge_index` (not undirected edges).
        num_features: features of a node.
        num_classes: classes.
        homophily: mean over the nodes of the share of neighbours with the same label, to two digits, in the
            symmetrised graph without loops; an isolated node counts 0 (CiteSeer only: 0.72 without them).
        num_splits: splits in the paper's experiments.
        folder: the sub-folder of the data folder; the raw files lie in its own sub-folder `raw`.
        raw_files: the files that must be there.
        source: where the raw files were published.
        cite: whom to cite.

    Privacy:
        All of these numbers are in print. For a graph of your own the number of edges is private.
    """

    name: str
    title: str
    num_nodes: int
    num_edges: int
    num_features: int
    num_classes: int
    homophily: float
    num_splits: int
    folder: str
    raw_files: tuple[str, ...]
    source: str
    cite: str


def _citations(
    name: str, title: str, num_nodes: int, num_edges: int, num_features: int, num_classes: int, homophily: float
) -> DatasetFacts:
    """The graphs that were published together with their split."""
    parts = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    cite = (
        "Yang, Cohen, Salakhutdinov: Revisiting semi-supervised learning with graph embeddings, ICML 2016; "
        "Sen et al.: Collective classification in network data, AI Magazine 29(3), 2008"
    )
    cite += "; Namata et al.: Query-driven active surveying, MLG 2012" if name == "pubmed" else ""
    sizes = (num_nodes, num_edges, num_features, num_classes)
    files = tuple(f"ind.{name}.{part}" for part in parts)
    return DatasetFacts(name, title, *sizes, homophily, 1, title, files, "github.com/kimiyoung/planetoid, data/", cite)


_ALL = (
    DatasetFacts(
        *("cora-ml", "Cora-ML", 2_995, 16_316, 2_879, 7, 0.81, 1, "cora_ml"),
        raw_files=("cora_ml.npz",),
        source="github.com/danielzuegner/gnn-meta-attack, data/; "
        "the file PyG downloads: github.com/abojchevski/graph2gauss, data/",
        cite="McCallum et al.: Automating the construction of internet portals with machine learning, "
        "Information Retrieval 3(2), 2000; Bojchevski, Günnemann: Deep Gaussian embedding of graphs, ICLR 2018",
    ),
    _citations("citeseer", "CiteSeer", 3_327, 9_104, 3_703, 6, 0.71),
    _citations("pubmed", "PubMed", 19_717, 88_648, 500, 3, 0.79),
    DatasetFacts(
        *("actor", "Actor", 7_600, 30_019, 932, 5, 0.22, 5, "Actor"),
        raw_files=(
            "out1_node_feature_label.txt",
            "out1_graph_edges.txt",
            *(f"film_split_0.6_0.2_{number}.npz" for number in range(10)),
        ),
        source="github.com/graphdml-uiuc-jlu/geom-gcn, new_data/film/ and splits/",
        cite="Pei et al.: Geom-GCN: geometric graph convolutional networks, ICLR 2020; "
        "Tang et al.: Social influence analysis in large-scale networks, KDD 2009",
    ),
    _citations("cora", "Cora", 2_708, 10_556, 1_433, 7, 0.83),
)

FACTS: Mapping[str, DatasetFacts] = MappingProxyType({facts.name: facts for facts in _ALL})


def names() -> tuple[str, ...]:
    """The datasets that can be loaded: the paper's four, then Cora.

    Example:
        >>> names()
        ('cora-ml', 'citeseer', 'pubmed', 'actor', 'cora')
    """
    return tuple(FACTS)


def facts_of(name: str) -> DatasetFacts:
    """The facts of one dataset; capitals do not matter, nor whether it is a hyphen or an underscore.

    Example:
        >>> facts_of("Cora_ML").num_edges
        16316
    """
    facts = FACTS.get(name.lower().replace("_", "-"))
    if facts is None:
        known = ", ".join(FACTS)
        raise InputError("name", rule=f"must be one of {known}", got=repr(name), fix="Check the spelling.")
    return facts
