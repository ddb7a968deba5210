"""Zero-budget controls of Fig. 3: models trained without edges, spread over the public test graph as far as they like."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import torch
from torch import Tensor

from gcon.edges.schemes import Schemes, propagate
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.experiments.sweep.graphs import OpenGraph, open_graph, public_test_graphs
from gcon_lab.experiments.sweep.grid import ALL_RESTARTS, ALL_STEPS
from gcon_lab.experiments.sweep.models import BatchScorer, step_words
from gcon_lab.methods.self_training import SelfTraining

_FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class PublicControlUnit:
    """The work: one graph and run."""

    graph: str
    run: int

    @property
    def name(self) -> str:
        return f"public-controls-{self.graph}-{_FORMAT}-run{self.run}"

    @property
    def cost(self) -> float:
        """In the measure of `ModelUnit`."""
        return 1e8

    def results(self) -> pl.DataFrame:
        """Validation and test micro-F1 of both controls, for every reading, restart and number of steps."""
        opened = open_graph(self.graph, self.run)
        scorer, rows = BatchScorer(opened.graph.nodes), []
        for line, probabilities in self._models(opened).items():
            for reading, public in public_test_graphs(opened):
                for restart in ALL_RESTARTS:
                    for steps in ALL_STEPS:
                        spread = propagate(public, probabilities, Schemes(restart, (steps,)))
                        ((validation, test),) = scorer(spread, torch.eye(spread.shape[1], dtype=spread.dtype)[None])
                        rows.append(
                            {
                                "graph": self.graph,
                                "run": self.run,
                                "line": line,
                                "reading": reading,
                                "settings": f"restart {restart:g}, steps {step_words((steps,))}",
                                "validation": validation,
                                "test": test,
                            }
                        )
        return pl.DataFrame(rows)

    def _models(self, opened: OpenGraph) -> dict[str, Tensor]:
        features = opened.graph.nodes.features
        encoder = train_encoder(opened.graph.nodes, EncoderSettings(seed=self.run))
        # Neither reads an edge; the source of noise is never asked.
        trained = SelfTraining(seed=self.run).fit(opened.graph, randomness=SeededRandomness(0)).trained
        log_probabilities = trained.score_functions["none"](features, None)
        return {
            "encoder, propagated": encoder.probabilities(features).double(),
            "self-training, propagated": log_probabilities.exp(),
        }
