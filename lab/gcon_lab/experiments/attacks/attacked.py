"""Who is attacked, which edge-free model is the reference of whom, and the units of work.

A unit is one method on one graph at one budget, attacked; or one training with canaries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from gcon.learn.perceptron import EncoderSettings
from gcon.methods.method import Method, PrivateMethod
from gcon.methods.objective import Objective, ObjectiveModel
from gcon.nodes import PublicNodes
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.experiments.attacks.measure import CanaryResult, Measured, attack_all, canary_run, sample
from gcon_lab.experiments.sweep.graphs import open_graph
from gcon_lab.experiments.sweep.models import seed_of
from gcon_lab.methods import METHODS
from gcon_lab.methods.competitor import PaidEdges, PrivateCompetitorMethod
from gcon_lab.methods.fitted import fit

# Spends a budget, and its reference without edges is GCON's encoder.
_ENCODED = ("gcon", "gaussian-objective", "output-perturbation", "dp-sgd")
_OURS = ("moments", "class-sums", "self-training-rounds")  # all start from the edge-free ensemble
DELTA = 1e-5
# The test of m canaries allows for about m delta of luck: at 1e-5 it could hardly ever raise an alarm.
CANARY_DELTA = 1e-8
PAIRS, CANARIES = 500, 100
_FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Gcon(PrivateCompetitorMethod):
    """The paper's mechanism at its defaults, behind the face of the competitors."""

    name = "gcon"
    about = "Releases linear weights trained on a perturbed objective (the paper's mechanism)."

    def learn(self, nodes: PublicNodes, edges: PaidEdges) -> ObjectiveModel:
        encoder = EncoderSettings(seed=self.seed)
        method = Objective(epsilon=self.epsilon, delta=self.delta, encoder=encoder, device="cpu")
        purpose = edges.purpose or "node classification"
        return method.train(nodes, edges.edges, ledger=edges.ledger, randomness=edges.randomness, purpose=purpose)


ATTACKED: Mapping[str, type[Method]] = {**METHODS, Gcon.name: Gcon}


def is_spending(name: str) -> bool:
    return issubclass(ATTACKED[name], PrivateMethod)


def reads_edges(name: str) -> bool:
    """Whether training reads edges at all: the others are references."""
    return is_spending(name) or not ATTACKED[name].private


def reference_of(method: str, access: str) -> tuple[str, str] | None:
    """The edge-free model and its access that an attack is compared with; None where there is nothing to compare.

    The white-box attack has none: an edge-free model releases nothing that edges change. Canaries compare it with guessing.
    """
    if not reads_edges(method) or access == "released":
        return None
    if method in _OURS:
        return "moments-without-edges", "own-edges" if access == "own-edges" else "none"
    if access == "own-edges":
        return "encoder-one-hop", access
    return "encoder" if method in _ENCODED else "mlp", "none"


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
