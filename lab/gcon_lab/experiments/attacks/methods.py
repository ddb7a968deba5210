"""Who is attacked, and which edge-free model is the reference of whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gcon.learn.perceptron import EncoderSettings
from gcon.methods.method import Method, PrivateMethod
from gcon.methods.objective import Objective, ObjectiveModel
from gcon.nodes import PublicNodes
from gcon_lab.methods import METHODS
from gcon_lab.methods.competitor import PaidEdges, PrivateCompetitorMethod

# Spends a budget, and its reference without edges is GCON's encoder.
_ENCODED = ("gcon", "gaussian-objective", "output-perturbation", "dp-sgd")
_OURS = ("moments", "class-sums", "self-training-rounds")  # all start from the edge-free ensemble


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
