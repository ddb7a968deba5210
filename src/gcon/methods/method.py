"""What a method is: settings that are checked when they are made, and `train`, which gives something that predicts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from torch import Tensor

from gcon.edges.source import Edges
from gcon.errors import check_number
from gcon.methods.predictions import Access
from gcon.nodes import PublicNodes
from gcon.privacy.boundary import Private
from gcon.privacy.budget import checked_budget
from gcon.privacy.ledger import Ledger
from gcon.privacy.randomness import Randomness
from gcon.privacy.receipt import Receipt

Progress = Callable[[str], None]  # is told the name of every stage

# Class scores of all nodes from public features and edges: opened inside a gate (own-edges), public (public-graph), or
# None (none, cached, full).
ScoreFunction = Callable[[Tensor, Edges | None], Tensor]


def silent(stage: str) -> None:
    """Progress that nobody watches."""


def check_seed(name: str, seed: int) -> None:
    """Refuse what cannot be the seed of initial weights."""
    check_number(
        name,
        seed,
        allowed=lambda number: 0 <= number <= 2**62,
        rule="must be a whole number from 0",
        fix="Any will do; it may be public. The default is 0.",
        whole=True,
    )


class Predictor(Protocol):
    """What training gives: a released model, or what a competitor keeps."""

    @property
    def score_functions(self) -> Mapping[Access, ScoreFunction]:
        """For every access, how nodes are scored. They hold public and released values only."""

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """What was paid."""


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """Settings of a method: public numbers, all checked when it is built, before anything is read or paid."""

    name: ClassVar[str]
    about: ClassVar[str]  # what is released and promised, in one sentence
    private: ClassVar[bool] = True  # whether it keeps a promise about edges

    @abstractmethod
    def train(
        self,
        nodes: PublicNodes,
        edges: Private[Edges],
        *,
        ledger: Ledger,
        randomness: Randomness,
        progress: Progress = silent,
        purpose: str = "node classification",
    ) -> Predictor:
        """Train, paying the ledger for whatever is computed from edges.

        Args:
            nodes: public features, labels and splits.
            edges: private.
            ledger: pays before any edge is read.
            randomness: the source of the noise.
            progress: told the name of every stage.
            purpose: public words for the ledger.
        """


@dataclass(frozen=True, kw_only=True)
class PrivateMethod(Method):
    """Settings of a method that spends a budget.

    Attributes:
        epsilon: the budget; infinity leaves the noise out and promises nothing.
        delta: None means min(1e-5, 1/(10 n)) with n nodes; methods with pure epsilon do not use it.
    """

    epsilon: float
    delta: float | None = None

    def __post_init__(self) -> None:
        checked_budget(self.epsilon, 1e-5 if self.delta is None else self.delta)


@dataclass(frozen=True, eq=False, kw_only=True)
class Trained:
    """What training gives where there is nothing to publish: how nodes are scored, and what was paid.

    Attributes:
        score_functions: for every access that the method knows, how it scores. They hold public and released values only.
        receipts: what was paid.
    """

    score_functions: Mapping[Access, ScoreFunction]
    receipts: tuple[Receipt, ...] = ()
