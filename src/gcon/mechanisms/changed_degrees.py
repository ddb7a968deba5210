"""How several changed edges can lie: the degrees that nodes have among them (docs/proofs/several-edges.md, 2).

k edges with degrees m_1, m_2, ... change the counts around these nodes by m_1, m_2, ... in all. A response of rate a + b is
worse than two of rates a and b: so of all degrees that k edges can have, only those count that are no splitting of others.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

Degrees = tuple[int, ...]  # largest first


@lru_cache(maxsize=16)
def worst_degrees(edges: int) -> tuple[Degrees, ...]:
    """The degrees of simple graphs with so many edges that are no splitting of others; the star's come first.

    Example:
        >>> worst_degrees(3)
        ((3, 1, 1, 1), (2, 2, 2))
    """
    graphic = [degrees for degrees in _partitions(2 * edges, edges) if is_graphic(degrees)]
    split = {parts for degrees in graphic for parts in _splittings(degrees)}
    return tuple(degrees for degrees in graphic if degrees not in split)


def is_graphic(degrees: Degrees) -> bool:
    """Whether a simple graph has these degrees (Erdos and Gallai 1960)."""
    return sum(degrees) % 2 == 0 and all(
        sum(degrees[:first]) <= first * (first - 1) + sum(min(degree, first) for degree in degrees[first:])
        for first in range(1, len(degrees) + 1)
    )


def _partitions(total: int, most: int) -> Iterator[Degrees]:
    """All ways to write a number as a sum of parts, the largest part first."""
    if total == 0:
        yield ()
    for first in range(min(total, most), 0, -1):
        for rest in _partitions(total - first, first):
            yield (first, *rest)


@lru_cache(maxsize=4096)
def _splittings(degrees: Degrees) -> frozenset[Degrees]:
    """Everything that comes of splitting parts in two, once or more often."""
    found = set()
    for place, degree in enumerate(degrees):
        for part in range(1, degree // 2 + 1):
            parts = tuple(sorted((*degrees[:place], *degrees[place + 1 :], part, degree - part), reverse=True))
            found |= {parts, *_splittings(parts)}
    return frozenset(found)
