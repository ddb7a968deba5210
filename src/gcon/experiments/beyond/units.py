"""One unit: every method on one graph and run, at every budget, under every access that it has. Defaults throughout."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from gcon.baselines import GAP, GCN, MLP, EncoderOneHop, LPGNet, Moments, MomentsWithoutEdges, ProGAP, SelfTraining
from gcon.baselines.interface import Method
from gcon.encode.mlp import EncoderSettings
from gcon.experiments.sweep.graphs import CIRCLES, open_graph
from gcon.experiments.sweep.models import seed_of
from gcon.pipeline import Settings, train
from gcon.predict.own_edges import own_edge_predictions
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness

DELTA = 1e-5
GCON = "gcon"  # the paper's mechanism at its defaults
_FORMAT = 2
Row = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class BeyondUnit:
    """The work: one graph and run, and the budgets."""

    graph: str
    run: int
    budgets: tuple[float, ...]

    @property
    def name(self) -> str:
        """Of the stored result."""
        budgets = "-".join(f"{epsilon:g}" for epsilon in self.budgets)
        return f"beyond-{self.graph}-{_FORMAT}-run{self.run}-{budgets}"

    @property
    def cost(self) -> float:
        """About seconds."""
        return {"pubmed": 150.0, "actor": 120.0, "cora-ml": 40.0, "citeseer": 40.0}.get(self.graph, 60.0)

    def results(self) -> pl.DataFrame:
        """Validation and test micro-F1 of everything."""
        return pl.DataFrame(list(self._rows()), infer_schema_length=None)

    def _rows(self) -> Iterator[Row]:
        for method in free_methods(self.graph, self.run):
            yield from self._scored(method, None)
        for epsilon in self.budgets:
            for method in spending_methods(self.graph, self.run, epsilon):
                yield from self._scored(method, epsilon)
            yield self._paper(epsilon)
        # Without noise: what the statistics could tell at all.
        yield from self._scored(Moments(epsilon=math.inf, seed=self.run), math.inf)

    def _scored(self, method: Method, epsilon: float | None) -> Iterator[Row]:
        graph = open_graph(self.graph, self.run).graph
        noise = SeededRandomness(seed_of(f"{self.name}|{method.name}|{epsilon}"))
        fitted = method.fit(graph, randomness=noise)
        for access in fitted.trained.scorers:
            if access != "public-graph":
                test = fitted.score(graph, graph.nodes.test_mask, access=access)
                yield self._row(method.name, epsilon, access, test)

    def _paper(self, epsilon: float) -> Row:
        opened = open_graph(self.graph, self.run)
        settings = Settings(epsilon=epsilon, delta=DELTA, encoder=EncoderSettings(seed=self.run), device="cpu")
        noise = SeededRandomness(seed_of(f"{self.name}|{GCON}|{epsilon}"))
        model = train(opened.graph, settings, ledger=MemoryLedger(self.graph), randomness=noise)
        nodes = opened.graph.nodes
        classes = own_edge_predictions(model, model.encoder.encode(nodes.features), opened.edges).classes
        right = (classes == nodes.labels)[nodes.test_mask].double()
        return self._row(GCON, epsilon, "own-edges", float(right.mean()))

    def _row(self, method: str, epsilon: float | None, access: str, test: float) -> Row:
        budget = "any" if epsilon is None else f"{epsilon:g}"
        return {
            "graph": self.graph,
            "run": self.run,
            "method": method,
            "epsilon": budget,
            "access": access,
            "test": test,
        }


def free_methods(graph: str, seed: int) -> list[Method]:
    """Controls, and the non-private model."""
    return [
        MomentsWithoutEdges(seed=seed),
        SelfTraining(seed=seed),
        EncoderOneHop(seed=seed),
        MLP(seed=seed),
        GCN(seed=seed),
    ]


def spending_methods(graph: str, seed: int, epsilon: float) -> list[Method]:
    """Ours; on synthetic graphs also the competitors at their defaults (on the real ones their tuned results are known)."""
    ours: list[Method] = [Moments(epsilon=epsilon, delta=DELTA, seed=seed)]
    if graph not in CIRCLES:
        return ours
    rivals: list[Method] = [
        GAP(epsilon=epsilon, delta=DELTA, hops=1, seed=seed),
        ProGAP(epsilon=epsilon, delta=DELTA, depth=1, seed=seed),
        LPGNet(epsilon=epsilon, delta=DELTA, stacked=1, seed=seed),
    ]
    return ours + rivals
