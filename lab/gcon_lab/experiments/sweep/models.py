"""One unit of the sweep: all private models of one graph, run and encoder width.

What models share is computed once: the encoder of the unit; the aggregates of a scheme; the solution of all (loss, ridge,
epsilon) problems over these aggregates, in one batch; and one product with the edges for all inference restarts. Noise is
seeded by the name of the batch, so no two batches share it and the order of the work does not matter.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList
from gcon.edges.schemes import Schemes, propagate
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.learn.training_rows import TrainingRows, training_rows
from gcon.mechanisms.aggregates import Aggregates
from gcon.mechanisms.losses import loss_by_name
from gcon.mechanisms.objective_perturbation import ObjectivePerturbation
from gcon.mechanisms.objective_plan import make_plan
from gcon.nodes import PublicNodes
from gcon.privacy.account import release_once
from gcon.privacy.boundary import Private
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.experiments.sweep.graphs import INDUCTIVE, open_graph, public_test_graphs, restricted, training_part
from gcon_lab.experiments.sweep.grid import FIXED_BUDGET, Grid

Problem = tuple[float, str, float]  # epsilon, loss, ridge
Row = dict[str, object]
_WITHOUT_EDGES = Schemes(1.0, (1,))


@dataclass(frozen=True, kw_only=True)
class ModelUnit:
    """The work: which graph, run and width, and the grid."""

    graph: str
    run: int
    hidden: int
    grid: Grid

    @property
    def name(self) -> str:
        return f"grid-{self.graph}-{self.grid.digest}-run{self.run}-hidden{self.hidden}"

    @property
    def cost(self) -> float:
        """About how long it takes, in units of its own: for the time left."""
        nodes = {"actor": 7600, "pubmed": 19717}.get(self.graph, 3000)
        widths = sum(self.hidden * len(steps) + 16 for steps in self.grid.schemes)
        return nodes * widths * len(self.grid.restarts) * len(self.grid.losses) * len(self.grid.ridges)

    def results(self) -> pl.DataFrame:
        """Validation and test micro-F1 of every model under every access."""
        return pl.DataFrame(list(_Sweep(self).rows()), infer_schema_length=None)


class _Sweep:
    """What all models of a unit share."""

    def __init__(self, unit: ModelUnit) -> None:
        self._unit, self._opened = unit, open_graph(unit.graph, unit.run)
        nodes = self._opened.graph.nodes
        self._encoder = train_encoder(nodes, EncoderSettings(hidden=unit.hidden, seed=unit.run))
        self._encoded = self._encoder.encode(nodes.features)
        self._neighbours = propagate(self._opened.edges, self._encoded, Schemes(0.0, (1,)))
        self._scorer = BatchScorer(nodes)
        self._public = dict(public_test_graphs(self._opened)) if unit.grid.public_test else {}

    def rows(self) -> Iterator[Row]:
        for expansion in self._unit.grid.expansions:
            rows = training_rows(self._opened.graph.nodes, self._encoder, expansion)
            yield from self._without_edges(expansion, rows)
            for restart in self._unit.grid.restarts:
                for steps in self._unit.grid.schemes:
                    yield from self._scheme(expansion, rows, Schemes(restart, steps))

    def _scheme(self, expansion: str, rows: TrainingRows, schemes: Schemes) -> Iterator[Row]:
        problems = list(self._unit.grid.objectives(self._unit.grid.budgets))
        weights = self._solve(f"{expansion}|{schemes}", self._opened.graph.edges, rows, schemes, problems)
        base = {"expand": expansion, "restart": schemes.restart, "steps": step_words(schemes.steps)}
        for inference in sorted({schemes.restart, *self._unit.grid.inference_restarts}):
            view = self._own_edges(inference, schemes)
            access = {"access": "own-edges", "reading": "", "inference": f"{inference:g}"}
            yield from self._scored(base | access, view, weights, problems)
        access = {"access": "none", "reading": "", "inference": ""}
        yield from self._scored(base | access, self._own_edges(1.0, schemes), weights, problems)
        if self._public:
            yield from self._public_test(f"{expansion}|{schemes}", base, rows, schemes, problems, weights)

    def _public_test(
        self, batch: str, base: Row, rows: TrainingRows, schemes: Schemes, problems: Sequence[Problem], weights: Tensor
    ) -> Iterator[Row]:
        """Fig. 3: the same propagation as in training, over public edges; in one reading trained on fewer edges."""
        chosen = [place for place, (epsilon, _, _) in enumerate(problems) if epsilon == FIXED_BUDGET]
        kept = [problems[place] for place in chosen]
        part = training_part(self._opened)
        inside = TrainingRows(rows.mask & part, rows.targets[part[rows.mask]])
        edges = Private(restricted(self._opened.edges, part), "edges of the training part")
        trained = {INDUCTIVE: self._solve(f"{batch}|inductive", edges, inside, schemes, kept)}
        for reading, public in self._public.items():
            access = {"access": "public-graph", "reading": reading, "inference": ""}
            view = propagate(public, self._encoded, schemes)
            yield from self._scored(base | access, view, trained.get(reading, weights[chosen]), kept)

    def _without_edges(self, expansion: str, rows: TrainingRows) -> Iterator[Row]:
        """The zero-budget control: the same objective without noise over features that no edge has touched."""
        grid = self._unit.grid
        problems = list(grid.objectives((math.inf,)))
        weights = self._solve(f"{expansion}|without edges", self._opened.graph.edges, rows, _WITHOUT_EDGES, problems)
        base = {"expand": expansion, "restart": 1.0, "steps": "0"}
        for inference in sorted({*grid.restarts, *grid.inference_restarts}):
            access = {"access": "own-edges", "reading": "", "inference": f"{inference:g}"}
            yield from self._scored(base | access, self._own_edges(inference, _WITHOUT_EDGES), weights, problems)
        access = {"access": "none", "reading": "", "inference": ""}
        yield from self._scored(base | access, self._encoded, weights, problems)
        for reading, public in self._public.items():
            for restart in grid.restarts:
                for steps in grid.schemes:
                    words = f"restart {restart:g}, steps {step_words(steps)}"
                    access = {"access": "public-graph", "reading": reading, "inference": words}
                    view = propagate(public, self._encoded, Schemes(restart, steps))
                    yield from self._scored(base | access, view, weights, problems)

    def _solve(
        self, batch: str, edges: Private[EdgeList], rows: TrainingRows, schemes: Schemes, problems: Sequence[Problem]
    ) -> Tensor:
        """All problems of a scheme in one release, with the paper's bound on what an edge can change and its delta."""
        aggregates = Aggregates(self._encoded, schemes, bound="paper")
        classes = self._opened.graph.nodes.num_classes
        plans = tuple(
            make_plan(
                Budget(epsilon, 1 / self._opened.edge_count),
                loss=loss_by_name(loss, classes),
                num_features=aggregates.num_columns,
                num_labelled=rows.count,
                edge_influence=aggregates.edge_influence,
                ridge=ridge,
            )
            for epsilon, loss, ridge in problems
        )
        mechanism = ObjectivePerturbation(aggregates=aggregates, plans=plans, mask=rows.mask, targets=rows.targets)
        ledger, noise = MemoryLedger("experiment"), SeededRandomness(seed_of(f"{self._unit.name}|{batch}"))
        return release_once(mechanism, edges, ledger=ledger, randomness=noise, purpose="experiment").value

    def _own_edges(self, inference: float, schemes: Schemes) -> Tensor:
        """The paper's private inference: one step for blocks that read edges, the encoding for those that do not."""
        hop = torch.lerp(self._neighbours, self._encoded, inference)
        return torch.cat([hop if count > 0 else self._encoded for count in schemes.steps], dim=1) / schemes.num_blocks

    def _scored(
        self, base: Mapping[str, object], view: Tensor, weights: Tensor, problems: Sequence[Problem]
    ) -> Iterator[Row]:
        unit = {"graph": self._unit.graph, "run": self._unit.run, "hidden": self._unit.hidden}
        for (epsilon, loss, ridge), (validation, test) in zip(problems, self._scorer(view, weights), strict=True):
            numbers = {"epsilon": epsilon, "loss": loss, "ridge": ridge, "validation": validation, "test": test}
            yield {**unit, **base, **numbers}


class BatchScorer:
    """Validation and test micro-F1 of many weight matrices over the same aggregates."""

    def __init__(self, nodes: PublicNodes) -> None:
        self._rows = torch.cat([nodes.validation_mask.nonzero()[:, 0], nodes.test_mask.nonzero()[:, 0]])
        self._labels, self._cut = nodes.labels[self._rows], int(nodes.validation_mask.sum())

    def __call__(self, view: Tensor, weights: Tensor) -> list[tuple[float, float]]:
        """One pair per matrix; weights are problems x features x classes."""
        problems, width, classes = weights.shape
        scores = view[self._rows] @ weights.transpose(0, 1).reshape(width, problems * classes)
        return self.of_scores(scores.reshape(-1, problems, classes))

    def of_scores(self, scores: Tensor) -> list[tuple[float, float]]:
        """One pair for each middle index of scores: scored rows x problems x classes."""
        right = (scores.argmax(dim=2) == self._labels[:, None]).double()
        return list(zip(right[: self._cut].mean(dim=0).tolist(), right[self._cut :].mean(dim=0).tolist(), strict=True))


def step_words(steps: Sequence[float]) -> str:
    """For example '2' or '0+1+5'."""
    return "+".join(f"{count:g}" for count in steps)


def seed_of(name: str) -> int:
    """A seed for noise that belongs to this name alone."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
