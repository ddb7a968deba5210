"""A graph as it enters: public nodes with private edges, or with edges declared public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from gcon.edges.edge_list import EdgeHygiene, EdgeList, private_edges
from gcon.edges.source import Edges
from gcon.nodes import PublicNodes
from gcon.privacy.boundary import Private, without_frames


class TrainableGraph(Protocol):
    """Public nodes plus private edges, wherever these are: what models are trained on."""

    @property
    def nodes(self) -> PublicNodes:
        """The public side."""

    @property
    def edges(self) -> Private[Edges]:
        """The private side."""


@dataclass(frozen=True, eq=False)
class LargeGraph:
    """Public nodes plus private edges that are not in memory: in a store, or on a cluster."""

    nodes: PublicNodes
    edges: Private[Edges]
    name: str = "unnamed"

    def __repr__(self) -> str:
        return f"LargeGraph({self.name!r}, {self.nodes}, private edges)"


@dataclass(frozen=True, eq=False)
class PrivateGraph:
    """Public nodes plus private edges in memory."""

    nodes: PublicNodes
    edges: Private[EdgeList]
    hygiene: Private[EdgeHygiene]
    name: str = "unnamed"

    def __repr__(self) -> str:
        return f"PrivateGraph({self.name!r}, {self.nodes}, private edges)"


@dataclass(frozen=True, eq=False)
class PublicGraph:
    """Public features plus edges that everybody may know: nothing is promised about them."""

    features: Tensor
    edges: EdgeList

    def __repr__(self) -> str:
        nodes, width = self.features.shape
        return f"PublicGraph({nodes} nodes, {width} features, public edges)"


@without_frames
def private_graph(nodes: PublicNodes, edge_index: Tensor, *, name: str = "unnamed") -> PrivateGraph:
    """Join public nodes with private edges (any direction, order, loops and repeats)."""
    edges, hygiene = private_edges(edge_index, nodes.num_nodes)
    return PrivateGraph(nodes, edges, hygiene, name)
