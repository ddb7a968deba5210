"""A statistic: a named matrix computed from private edges, with the proven bound on what one edge can change in it.

A statistic alone releases nothing: `gcon.mechanisms.gaussian_release` adds the noise that its sensitivity asks for, and an
account (`gcon.privacy.account`) pays for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from torch import Tensor

from gcon.edges.source import Edges
from gcon.mechanisms.exact_products import Precise


class Statistic(ABC):
    """One private matrix.

    The public parts (features, targets, settings) are given at construction, copied, and fixed from then on; so is the
    sensitivity. The edges are an argument of `of` alone.

    Attributes:
        name: what it is, for ledger and receipt.
        sensitivity: the Frobenius norm of the change that one undirected edge can cause in what `precisely` returns, at most.
            From public numbers alone: a bound for real numbers, plus `rounding` on both sides. Exactly 0 only if no edge is
            read or rows are identically zero, never because a product of small numbers vanished.
        rounding: the Frobenius distance of what `precisely` returns from the real-number value, at most, whatever the edges
            are. From public numbers alone (docs/proofs/exact-noise.md, 3). 0: arithmetic is exact, in any order.
        settings: public numbers and words, for ledger and receipt.
        symmetric: whether the matrix is symmetric; its noise is then too.
        edge_free: true where an entry cannot depend on any edge (broadcasts to the value); None: nowhere. It gets no noise.

    Privacy:
        Only classes registered with `@proven` may be released: a sensitivity without a proof is refused.
    """

    name: str
    sensitivity: float
    rounding: float
    settings: Mapping[str, object]
    symmetric: bool = False
    edge_free: Tensor | None = None

    @abstractmethod
    def precisely(self, edges: Edges) -> Precise:
        """The value with all its digits. Called inside a gate only: the result is as private as the edges."""

    def of(self, edges: Edges) -> Tensor:
        """The value, float64: as private as the edges."""
        return self.precisely(edges).value
