"""What an attacker may see, and what an attack is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from gcon.edges.edge_list import EdgeList

Pair = tuple[int, int]


class Clue(Protocol):
    """Something released, and how much likelier it is if a pair is linked."""

    def log_ratio(self, rest: EdgeList, pair: Pair) -> float:
        """About log P(released | linked) - log P(released | not linked), if all other pairs are as in `rest`."""


@dataclass(frozen=True, eq=False, kw_only=True)
class View:
    """What is seen under one access. An attack that needs a part that is not there cannot be run.

    Attributes:
        features: public, one row per node.
        posteriors: class probabilities that the model answers with, one row per node.
        query: asks for the posteriors under other features; None where answers are a fixed table.
        released: what was released, for an attacker who reads the model itself.
        answers_on: posteriors of all nodes over given edges, by the released model; None where answers read no edge.

    Privacy:
        A view of private edges belongs to the operator who attacks a graph of her own.
    """

    features: Tensor
    posteriors: Tensor
    query: Callable[[Tensor], Tensor] | None = None
    released: tuple[Clue, ...] = ()
    answers_on: Callable[[EdgeList], Tensor] | None = None


class Attack(Protocol):
    """Guesses links."""

    @property
    def name(self) -> str:
        """In one word or two."""

    def scores(self, view: View, pairs: Tensor) -> Tensor:
        """One number per pair (a k x 2 matrix of nodes): the larger, the likelier a link."""
