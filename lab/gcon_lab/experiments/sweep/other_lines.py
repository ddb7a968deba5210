"""Lines of the figures besides the grid: the honest version of Fig. 1, and zero-budget controls of Fig. 3.

Honest is what `gcon tune --pay` and `gcon train` give for one budget, nothing for free: delta is public; encoder width, loss and
ridge are chosen by rehearsals without edges (free), the inference restart by private selection with a tenth of epsilon (paid);
training gets the rest. Every run chooses for itself. The controls are models trained without edges, spread over the public test
graph as far as they like.
"""

from __future__ import annotations

from itertools import count, product

import polars as pl
import torch

from gcon.choose.settings import tune_paid
from gcon.edges.schemes import Schemes, propagate
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.methods.objective import Objective
from gcon.methods.own_edges import own_edge_predictions
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.experiments.sweep.graphs import open_graph, public_test_graphs
from gcon_lab.experiments.sweep.grid import ALL_RESTARTS, ALL_STEPS
from gcon_lab.experiments.sweep.models import BatchScorer, seed_of, step_words
from gcon_lab.experiments.units import Call
from gcon_lab.methods.self_training import SelfTraining

PAID_SHARE = 0.1
_FORMAT = 1  # raise it when the meaning of stored results changes


def honest_unit(graph: str, run: int, epsilon: float) -> Call:
    """One graph, run and budget; the cost is in the measure of `ModelUnit`."""
    name = f"honest-{graph}-{_FORMAT}-run{run}-epsilon{epsilon:g}"
    return Call(name, honest_point, (name, graph, run, epsilon), cost=4e7)


def honest_point(name: str, graph: str, run: int, epsilon: float) -> pl.DataFrame:
    """Choose, train, and score with own edges."""
    opened, numbers = open_graph(graph, run), count()
    nodes, edges, ledger = opened.graph.nodes, opened.graph.edges, MemoryLedger(graph)

    def randomness() -> SeededRandomness:
        """A source of its own for every use; seeded, so nothing here keeps a promise."""
        return SeededRandomness(seed_of(f"{name}|{next(numbers)}"))

    asked = Objective(epsilon=epsilon, encoder=EncoderSettings(seed=run), device="cpu")
    chosen = tune_paid(
        opened.graph, asked, pay=PAID_SHARE * epsilon, ledger=ledger, randomness=randomness, draws=1
    ).settings
    model = chosen.train(nodes, edges, ledger=ledger, randomness=randomness())
    classes = own_edge_predictions(model, model.encoder.encode(nodes.features), opened.edges).classes
    test = float((classes == nodes.labels).double()[nodes.test_mask].mean())
    words = f"{chosen.encoder.hidden} / {chosen.loss} / {chosen.ridge:g} / {chosen.inference_restart:g}"
    return pl.DataFrame([{"graph": graph, "run": run, "epsilon": epsilon, "settings": words, "test": test}])


def public_control_unit(graph: str, run: int) -> Call:
    """One graph and run."""
    return Call(f"public-controls-{graph}-{_FORMAT}-run{run}", public_controls, (graph, run), cost=1e8)


def public_controls(graph: str, run: int) -> pl.DataFrame:
    """Validation and test micro-F1 of both controls, for every reading, restart and number of steps."""
    opened = open_graph(graph, run)
    features, scorer, rows = opened.graph.nodes.features, BatchScorer(opened.graph.nodes), []
    # Neither reads an edge; the source of noise is never asked.
    encoder = train_encoder(opened.graph.nodes, EncoderSettings(seed=run))
    trained = SelfTraining(seed=run).fit(opened.graph, randomness=SeededRandomness(0)).trained
    models = {
        "encoder, propagated": encoder.probabilities(features).double(),
        "self-training, propagated": trained.score_functions["none"](features, None).exp(),
    }
    for line, probabilities in models.items():
        for (reading, public), restart, steps in product(public_test_graphs(opened), ALL_RESTARTS, ALL_STEPS):
            spread = propagate(public, probabilities, Schemes(restart, (steps,)))
            ((validation, test),) = scorer(spread, torch.eye(spread.shape[1], dtype=spread.dtype)[None])
            names = {"graph": graph, "run": run, "line": line, "reading": reading}
            settings = f"restart {restart:g}, steps {step_words((steps,))}"
            rows.append({**names, "settings": settings, "validation": validation, "test": test})
    return pl.DataFrame(rows)
