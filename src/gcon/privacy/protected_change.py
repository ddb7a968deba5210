"""What one unit of privacy is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ProtectedChange:
    """The change between neighbouring data sets that a promise is about, in words."""

    name: str
    sentence: str
    public: tuple[str, ...]


ONE_UNDIRECTED_EDGE = ProtectedChange(
    name="one undirected edge",
    sentence="One undirected edge of a simple graph, added or removed; everything else stays the same.",
    public=("the node set", "features", "labels", "splits", "all settings"),
)
