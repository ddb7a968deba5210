"""The honest version of a point of Fig. 1: what `gcon tune --pay` and `gcon train` give for one budget, nothing for free.

delta is public. Encoder width, loss and ridge are chosen by rehearsals without edges (free), the inference restart by
private selection with a tenth of epsilon (paid); training gets the rest. Every run chooses for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import polars as pl

from gcon.choose.settings import tune_paid
from gcon.learn.perceptron import EncoderSettings
from gcon.methods.objective import Objective
from gcon.methods.own_edges import own_edge_predictions
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.experiments.sweep.graphs import open_graph
from gcon_lab.experiments.sweep.models import seed_of

PAID_SHARE = 0.1
_FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class HonestUnit:
    """The work: one graph, run and budget."""

    graph: str
    run: int
    epsilon: float

    @property
    def name(self) -> str:
        return f"honest-{self.graph}-{_FORMAT}-run{self.run}-epsilon{self.epsilon:g}"

    @property
    def cost(self) -> float:
        """In the measure of `ModelUnit`."""
        return 4e7

    def results(self) -> pl.DataFrame:
        """Choose, train, and score with own edges."""
        opened, randomness = open_graph(self.graph, self.run), self._randomness()
        graph, ledger = opened.graph, MemoryLedger(self.graph)
        asked = Objective(epsilon=self.epsilon, encoder=EncoderSettings(seed=self.run), device="cpu")
        tuned = tune_paid(graph, asked, pay=PAID_SHARE * self.epsilon, ledger=ledger, randomness=randomness, draws=1)
        model = tuned.settings.train(graph.nodes, graph.edges, ledger=ledger, randomness=randomness())
        classes = own_edge_predictions(model, model.encoder.encode(graph.nodes.features), opened.edges).classes
        right = (classes == graph.nodes.labels).double()
        chosen = tuned.settings
        words = f"{chosen.encoder.hidden} / {chosen.loss} / {chosen.ridge:g} / {chosen.inference_restart:g}"
        return pl.DataFrame(
            {
                "graph": [self.graph],
                "run": [self.run],
                "epsilon": [self.epsilon],
                "settings": [words],
                "test": [float(right[graph.nodes.test_mask].mean())],
            }
        )

    def _randomness(self) -> Callable[[], SeededRandomness]:
        """A source of its own for every use; seeded, so nothing here keeps a promise."""
        numbers = count()
        return lambda: SeededRandomness(seed_of(f"{self.name}|{next(numbers)}"))
