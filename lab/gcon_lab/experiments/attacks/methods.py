"""Who is attacked, and which edge-free model is the reference of whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from gcon.edges.edge_list import EdgeHygiene, EdgeList
from gcon.edges.graph import PrivateGraph
from gcon.learn.perceptron import EncoderSettings
from gcon.methods.method import Method, PrivateMethod, Scorer, Trained
from gcon.methods.model import Model
from gcon.methods.predictions import Access
from gcon.nodes import PublicNodes
from gcon.privacy.boundary import Private
from gcon.privacy.ledger import Ledger
from gcon.privacy.randomness import Randomness
from gcon_lab.methods import METHODS

# Spends a budget, and its reference without edges is GCON's encoder.
_ENCODED = ("gcon", "gaussian-objective", "output-perturbation", "dp-sgd")
_OURS = ("moments", "class-sums", "self-training-rounds")  # all start from the edge-free ensemble


@dataclass(frozen=True, kw_only=True)
class Gcon(PrivateMethod):
    """The paper's mechanism at its defaults, behind the face of the competitors."""

    name = "gcon"
    about = "Releases linear weights trained on a perturbed objective (the paper's mechanism)."

    def _train(
        self, nodes: PublicNodes, edges: Private[EdgeList], *, ledger: Ledger, randomness: Randomness
    ) -> Trained:
        nothing = Private(EdgeHygiene(given=0, self_loops=0, duplicates=0, kept=0), "not counted here")
        settings = Settings(
            epsilon=self.epsilon, delta=self.delta, encoder=EncoderSettings(seed=self.seed), device="cpu"
        )
        model = train(PrivateGraph(nodes, edges, nothing), settings, ledger=ledger, randomness=randomness)
        return Trained(scorers=model_scorers(model), receipts=(model.receipt,))


ATTACKED: Mapping[str, type[Method]] = {**METHODS, Gcon.name: Gcon}


def is_spending(name: str) -> bool:
    """Whether the method spends a budget."""
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


def model_scorers(model: Model) -> dict[Access, Scorer]:
    """How a released model scores, as a trained competitor does."""
    scorer = model.scorer()

    def own_edges(features: Tensor, opened: EdgeList | None) -> Tensor:
        assert opened is not None
        return scorer.own_edges(scorer.start(features, "own-edges"), opened)

    def fixed(access: Access) -> Scorer:
        return lambda features, _: scorer.without_edges(scorer.start(features, access))

    found: dict[Access, Scorer] = {"own-edges": own_edges, "none": fixed("none")}
    if "cached" in model.accesses:
        found["cached"] = fixed("cached")
    return found
