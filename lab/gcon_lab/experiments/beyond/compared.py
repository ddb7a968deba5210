"""One unit: every method on one graph and run, at every budget, under every access that it has."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
import torch

from gcon.learn.perceptron import EncoderSettings
from gcon.methods.method import Method, Predictor
from gcon.methods.objective import Objective
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.experiments.sweep.graphs import CIRCLES, open_graph
from gcon_lab.experiments.sweep.models import seed_of
from gcon_lab.experiments.sweep.social import MANY_LABELS, SOCIAL
from gcon_lab.methods import (
    DPGCN,
    DPSGD,
    GAP,
    GCN,
    GPRGNN,
    MLP,
    ClassSumsMethod,
    EncoderOneHop,
    GaussianObjectiveMethod,
    LPGNet,
    Moments,
    MomentsWithoutEdges,
    OutputPerturbationMethod,
    ProGAP,
    SelfTraining,
    SelfTrainingRounds,
)
from gcon_lab.methods.fitted import fit

DELTA = 1e-5
GCON = "gcon"  # the paper's mechanism at its defaults
WITHOUT_VALIDATION = "moments-without-validation"  # ours, where no labels are set aside for choices
_FORMAT = 4
Row = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class BeyondUnit:
    """The work: one graph and run, and the budgets.

    Attributes:
        free: whether to measure what spends nothing too: controls, non-private models, ours without noise.
    """

    graph: str
    run: int
    budgets: tuple[float, ...]
    free: bool = True

    @property
    def name(self) -> str:
        """Of the stored result."""
        budgets = "-".join([*(["free"] if self.free else []), *(f"{epsilon:g}" for epsilon in self.budgets)])
        return f"beyond-{self.graph.replace('/', '-')}-{_FORMAT}-run{self.run}-{budgets}"

    @property
    def cost(self) -> float:
        """About seconds."""
        if self.graph in SOCIAL:
            return 150.0 * (len(self.budgets) + self.free)
        return {"pubmed": 300.0, "actor": 300.0}.get(self.graph, 60.0)

    def results(self) -> pl.DataFrame:
        """Validation and test micro-F1 of everything."""
        return pl.DataFrame(list(self._rows()), infer_schema_length=None)

    def _rows(self) -> Iterator[Row]:
        if self.free:
            for methods in free_methods(self.run):
                yield from self.scored(methods, None)
            # Without noise: what the statistics could tell at all.
            yield from self.scored([Moments(epsilon=math.inf, seed=self.run)], math.inf)
        for epsilon in self.budgets:
            for methods in spending_methods(self.run, epsilon):
                yield from self.scored(methods, epsilon)
            yield from self.paper(epsilon)
            if self.graph not in CIRCLES and self.graph not in MANY_LABELS:
                yield from self._without_validation(epsilon)

    def scored(self, candidates: Sequence[Method], epsilon: float | None) -> Iterator[Row]:
        """Of several settings of a rival the best on the validation nodes, for every access, free of charge."""
        opened = open_graph(self.graph, self.run)
        best: dict[str, tuple[float, float]] = {}
        for place, method in enumerate(candidates):
            fitted = fit(method, opened.graph, randomness=self._noise(f"{method.name}|{epsilon}|{place}"))
            for access, scores in self._shares(fitted.trained):
                if access not in best or scores[0] > best[access][0]:
                    best[access] = scores
        for access, (_, test) in best.items():
            yield self._row(candidates[0].name, epsilon, access, test)

    def _without_validation(self, epsilon: float) -> Iterator[Row]:
        """Ours as most people would use it: every label that they have teaches."""
        graph = open_graph(self.graph, self.run).graph
        bare = replace(graph, nodes=replace(graph.nodes, validation_mask=torch.zeros_like(graph.nodes.train_mask)))
        method = Moments(epsilon=epsilon, delta=DELTA, seed=self.run)
        fitted = fit(method, bare, randomness=self._noise(f"{WITHOUT_VALIDATION}|{epsilon}"))
        for access, (_, test) in self._shares(fitted.trained):
            yield self._row(WITHOUT_VALIDATION, epsilon, access, test)

    def paper(self, epsilon: float) -> Iterator[Row]:
        graph, noise = open_graph(self.graph, self.run).graph, self._noise(f"{GCON}|{epsilon}")
        settings = Objective(epsilon=epsilon, delta=DELTA, encoder=EncoderSettings(seed=self.run), device="cpu")
        model = settings.train(graph.nodes, graph.edges, ledger=MemoryLedger(self.graph), randomness=noise)
        found = dict(self._shares(model))
        for access in ("none", "own-edges", "public-graph"):
            yield self._row(GCON, epsilon, access, found[access][1])

    def _noise(self, words: str) -> SeededRandomness:
        return SeededRandomness(seed_of(f"{self.name}|{words}"))

    def _shares(self, trained: Predictor) -> Iterator[tuple[str, tuple[float, float]]]:
        """Of right answers among the validation and the test nodes, by access."""
        opened = open_graph(self.graph, self.run)
        nodes = opened.graph.nodes
        for access, scorer in trained.score_functions.items():
            # As if the edges were public at inference: asked of the scorer, since private methods refuse.
            right = scorer(nodes.features, opened.edges).argmax(dim=1) == nodes.labels
            validation, test = (float(right[mask].double().mean()) for mask in (nodes.validation_mask, nodes.test_mask))
            yield access, (validation, test)

    def _row(self, method: str, epsilon: float | None, access: str, test: float) -> Row:
        budget = "any" if epsilon is None else f"{epsilon:g}"
        names = {"graph": self.graph, "run": self.run, "method": method, "epsilon": budget, "access": access}
        return {**names, "test": test}


def free_methods(seed: int) -> list[list[Method]]:
    """Controls, and the non-private models."""
    return [
        [MomentsWithoutEdges(seed=seed)],
        [SelfTraining(seed=seed)],
        [EncoderOneHop(seed=seed)],
        [MLP(seed=seed)],
        [GCN(seed=seed)],
        [GPRGNN(seed=seed)],
    ]


def spending_methods(seed: int, epsilon: float) -> list[list[Method]]:
    """Ours first; the competitors with the settings that matter most to them, then our other mechanisms."""
    given: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "seed": seed}
    return [
        [Moments(**given)],
        [GAP(**given, hops=hops) for hops in (1, 2)],
        [ProGAP(**given, depth=depth) for depth in (1, 2)],
        [LPGNet(**given, stacked=stacked) for stacked in (1, 2)],
        [DPGCN(**given)],
        [DPSGD(**given)],
        [ClassSumsMethod(**given)],
        [SelfTrainingRounds(**given)],
        [GaussianObjectiveMethod(**given)],
        [OutputPerturbationMethod(**given)],
    ]
