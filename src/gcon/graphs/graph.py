"""A graph as it enters: public nodes with private edges, or with edges declared public."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gcon.graphs.edges import EdgeHygiene, EdgeList, private_edges
from gcon.graphs.nodes import PublicNodes
from gcon.privacy.boundary import Private


@dataclass(frozen=True, eq=False)
class PrivateGraph:
    """Public nodes plus private edges: what models are trained on."""

    nodes: PublicNodes
    edges: Private[EdgeList]
    hygiene: Private[EdgeHygiene]
    name: str = "unnamed"


@dataclass(frozen=True, eq=False)
class PublicGraph:
    """Public features plus edges that everybody may know: nothing is promised about them."""

    features: Tensor
    edges: EdgeList


def private_graph(nodes: PublicNodes, edge_index: Tensor, *, name: str = "unnamed") -> PrivateGraph:
    """Join public nodes with private edges (any direction, order, loops and repeats)."""
    edges, hygiene = private_edges(edge_index, nodes.num_nodes)
    return PrivateGraph(nodes, edges, hygiene, name)
