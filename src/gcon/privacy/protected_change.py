"""What one unit of privacy is: one undirected edge, or several that change together (docs/proofs/several-edges.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gcon.errors import check_number

MOST_EDGES = 10
STATED_EDGES = (1, 2, 5, 10)  # for so many edges every statement says what is promised
DIGITS = 4  # of these numbers, rounded up
EDGES_FIELD = "protect_edges"  # in a plan's record; not there for one edge


@dataclass(frozen=True)
class ProtectedChange:
    """The change between neighbouring data sets that a promise is about: how many edges, and in words."""

    edges: int
    name: str
    sentence: str


PUBLIC = ("the node set", "features", "labels", "splits", "all settings")  # whatever is protected
ONE_UNDIRECTED_EDGE = ProtectedChange(
    edges=1,
    name="one undirected edge",
    sentence="One undirected edge of a simple graph, added or removed; everything else stays the same.",
)


def protected_change(plan: Mapping[str, object]) -> ProtectedChange:
    """What a plan's record protects; `InputError` for what is no number of edges."""
    edges = plan.get(EDGES_FIELD, 1)
    check_edges(edges)
    edges = int(edges)  # type: ignore[call-overload]  # whole, but maybe numpy's
    if edges == 1:
        return ONE_UNDIRECTED_EDGE
    return ProtectedChange(
        edges=edges,
        name=f"any {edges} undirected edges",
        sentence=f"Any {edges} undirected edges of a simple graph together, anywhere in it, each added or removed; everything "
        "else stays the same.",
    )


def check_edges(edges: object) -> None:
    """Refuse what is no number of edges to protect."""
    check_number(
        "protect_edges",
        edges,
        allowed=lambda number: 1 <= number <= MOST_EDGES,
        rule=f"must be a whole number of edges from 1 to {MOST_EDGES}",
        fix=f"For j times {MOST_EDGES} edges, protect {MOST_EDGES} at epsilon/j and at delta/(j e^epsilon).",
        whole=True,
    )
