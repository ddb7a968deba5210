"""What is tried: the paper's grid (its appendix on hyperparameters), graph by graph, and a small one for a first look."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from gcon.learn.training_rows import Expansion

HOMOPHILOUS = ("cora-ml", "citeseer", "pubmed")
PAPER_GRAPHS = (*HOMOPHILOUS, "actor")
ALL_RESTARTS = (0.2, 0.4, 0.6, 0.8)
ALL_STEPS = (1, 2, 5, 10, math.inf)
BUDGETS = (0.5, 1.0, 2.0, 3.0, 4.0)
FIXED_BUDGET = 4.0  # of Figs. 2 and 3
_FORMAT = 1  # raise it when the meaning of stored results changes: old ones are then left alone


@dataclass(frozen=True, kw_only=True)
class Grid:
    """All settings that are tried on a graph.

    Attributes:
        hidden: widths of the encoder.
        expansions: which nodes are in the loss.
        restarts: alpha.
        schemes: the steps m_1..m_s of each scheme.
        losses, ridges: of the objective.
        budgets: epsilon.
        inference_restarts: alpha_I, besides alpha itself.
        public_test: whether models are also used on public test graphs (Fig. 3).
    """

    hidden: tuple[int, ...] = (8, 16, 64)
    expansions: tuple[Expansion, ...] = ("labelled", "all")
    restarts: tuple[float, ...] = ALL_RESTARTS
    schemes: tuple[tuple[float, ...], ...] = tuple((count,) for count in ALL_STEPS)
    losses: tuple[str, ...] = ("soft-margin", "pseudo-huber:0.1", "pseudo-huber:0.2", "pseudo-huber:0.5")
    ridges: tuple[float, ...] = (0.01, 0.2, 1.0, 2.0)
    budgets: tuple[float, ...] = BUDGETS
    inference_restarts: tuple[float, ...] = (0.1, 0.9)
    public_test: bool = True

    @property
    def num_models(self) -> int:
        """Private models of one run."""
        objectives = len(self.losses) * len(self.ridges) * len(self.budgets)
        return len(self.hidden) * len(self.expansions) * len(self.restarts) * len(self.schemes) * objectives

    @property
    def digest(self) -> str:
        """A short name of exactly these settings."""
        return hashlib.sha256(json.dumps([_FORMAT, asdict(self)]).encode()).hexdigest()[:8]

    def objectives(self, budgets: tuple[float, ...]) -> Iterator[tuple[float, str, float]]:
        """(epsilon, loss, ridge) of all problems that share their aggregates."""
        return itertools.product(budgets, self.losses, self.ridges)


def paper_grid(graph: str) -> Grid:
    """The paper's grid; on Actor several schemes side by side, from subsets of {0, 1, 2, 5} with up to three members.

    Example:
        >>> paper_grid("cora-ml").num_models
        9600
    """
    if graph != "actor":
        return Grid()
    subsets = [part for size in (1, 2, 3) for part in itertools.combinations((0, 1, 2, 5), size)]
    return Grid(schemes=tuple(subsets), public_test=False)


def quick_grid(graph: str) -> Grid:
    """The same axes with fewer values where the figures allow it."""
    few = {"hidden": (16,), "expansions": ("all",), "losses": ("soft-margin", "pseudo-huber:0.2"), "ridges": (0.2, 1.0)}
    if graph != "actor":
        return Grid(**few)  # type: ignore[arg-type]
    return Grid(**few, schemes=((1,), (0, 1), (0, 1, 2)), public_test=False)  # type: ignore[arg-type]
