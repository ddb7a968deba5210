"""The units of work: one method on one graph at one budget, attacked; and one training with canaries."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from gcon.methods.method import Method
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.experiments.attacks.canaries import CanaryResult, canary_run
from gcon_lab.experiments.attacks.measure import Measured, attack_all, sample
from gcon_lab.experiments.attacks.methods import ATTACKED
from gcon_lab.experiments.sweep.graphs import open_graph
from gcon_lab.experiments.sweep.models import seed_of
from gcon_lab.methods.fitted import fit

DELTA = 1e-5
# The test of m canaries allows for about m delta of luck: at 1e-5 it could hardly ever raise an alarm.
CANARY_DELTA = 1e-8
PAIRS, CANARIES = 500, 100
_FORMAT = 1


def budget_name(epsilon: float | None) -> str:
    return "any" if epsilon is None else f"{epsilon:g}"


def build_method(name: str, epsilon: float | None, delta: float = DELTA) -> Method:
    """At its defaults."""
    return ATTACKED[name]() if epsilon is None else ATTACKED[name](epsilon=epsilon, delta=delta)  # type: ignore[call-arg]


@dataclass(frozen=True, kw_only=True)
class _MethodUnit:
    """One method on one graph."""

    graph: str
    method: str
    epsilon: float | None

    @property
    def cost(self) -> float:
        """About seconds."""
        return {"pubmed": 40.0, "cora-ml": 15.0, "citeseer": 18.0}.get(self.graph, 5.0)

    def _row(self, found: Measured | CanaryResult, **more: object) -> dict[str, object]:
        names = {"graph": self.graph, "method": self.method, "epsilon": budget_name(self.epsilon)}
        return {**names, "access": found.access, "attack": found.attack, **more}


@dataclass(frozen=True, kw_only=True)
class AttackUnit(_MethodUnit):
    """Attacks on linked and unlinked pairs of the graph; the white-box attack is measured on canaries alone."""

    pairs: int = PAIRS

    @property
    def name(self) -> str:
        return f"attack-{_FORMAT}-{self.graph}-{self.method}-{budget_name(self.epsilon)}-{self.pairs}"

    def results(self) -> pl.DataFrame:
        opened = open_graph(self.graph, 0)
        noise = SeededRandomness(seed_of(self.name))
        fitted = fit(build_method(self.method, self.epsilon), opened.graph, randomness=noise)
        drawn = sample(opened.edges, many=self.pairs)
        found = attack_all(fitted.trained.score_functions, opened.graph.nodes.features, opened.edges, drawn)
        rates = {"tpr at 0.1 %": 0.001, "tpr at 1 %": 0.01}
        return pl.DataFrame(
            [
                self._row(each, auc=each.roc.area)
                | {name: each.roc.true_positives_at(most) for name, most in rates.items()}
                for each in found
            ]
        )


@dataclass(frozen=True, kw_only=True)
class CanaryUnit(_MethodUnit):
    """One training with canaries. For a method without a budget, `epsilon` is the one that it is passed off with."""

    epsilon: float
    run: int
    canaries: int = CANARIES

    @property
    def name(self) -> str:
        return f"canary-{_FORMAT + 2}-{self.graph}-{self.method}-{self.epsilon:g}-{self.canaries}-run{self.run}"

    def results(self) -> pl.DataFrame:
        opened, seed = open_graph(self.graph, 0), seed_of(self.name)
        method = build_method(self.method, self.epsilon if self.spends else None, CANARY_DELTA)
        results = canary_run(
            method,
            opened.graph.nodes,
            opened.edges,
            canaries=self.canaries,
            seed=seed % 2**62,
            randomness=SeededRandomness(seed_of(f"noise of {self.name}")),
        )
        return pl.DataFrame(
            [
                self._row(each, covered=each.covered, run=self.run, **vars(each.guesses), auc=each.area)
                for each in results
            ]
        )

    @property
    def spends(self) -> bool:
        return ATTACKED[self.method].private
