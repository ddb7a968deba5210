"""Access `own-edges`: the paper's private inference. Each node is answered from its own row of the transition."""

from __future__ import annotations

from torch import Tensor

from gcon.errors import AccessRefusedError, InputError
from gcon.graphs.edges import EdgeList
from gcon.predict.predictions import Predictions, from_blocks
from gcon.privacy.boundary import Private
from gcon.privacy.ledger import Ledger
from gcon.propagate.schemes import Schemes, propagate
from gcon.release.gate import answer_owners
from gcon.release.model import ReleasedModel


def predict_from_own_edges(
    model: ReleasedModel,
    features: Tensor,
    edges: Private[EdgeList],
    *,
    ledger: Ledger,
    restart: float | None = None,
    purpose: str = "answers to node owners",
) -> Predictions:
    """Answer every node from its own edges: ((1 - a_I) T + a_I I) X, row by row.

    Args:
        model: the released model.
        features: public features of all nodes of the graph, in its order (the training graph or another one).
        edges: private edges; row i of the result reads the edges of node i only.
        ledger: records the delivery.
        restart: a_I in [0, 1]; None for the model's own.
        purpose: public words for the ledger.

    Privacy:
        Joint promise: for every edge {u, v}, the model and all answers to nodes other than u and v are covered by the
        model's (epsilon, delta). A row is for its owner only; publishing the table is not covered.
    """
    if not isinstance(edges, Private):
        raise AccessRefusedError(
            "access='own-edges' answers from private edges. For edges that everybody may know use access='public-graph'."
        )
    encoded = model.encoder.encode(features)
    _one_hop(model, restart)  # checked before anything is opened
    return answer_owners(
        lambda opened: own_edge_predictions(model, encoded, opened, restart=restart),
        edges,
        ledger=ledger,
        purpose=purpose,
    )


def own_edge_predictions(
    model: ReleasedModel, encoded: Tensor, edges: EdgeList, *, restart: float | None = None
) -> Predictions:
    """The answers of all nodes, by one step of propagation: row i reads i's neighbours and public encodings only.

    Privacy:
        Works on opened edges; called inside a gate.
    """
    block = propagate(edges, encoded, _one_hop(model, restart))
    return from_blocks(model, block, encoded, access="own-edges")


def predict_for_one_owner(
    model: ReleasedModel, own_features: Tensor, neighbour_features: Tensor, *, restart: float | None = None
) -> Predictions:
    """Answer one person from what she sends: her own features and those of her neighbours (k x d0, k may be 0).

    Privacy:
        Stateless; reads nothing but the arguments and the released model.
    """
    encoded = model.encoder.encode(own_features.reshape(1, -1))
    around = (
        model.encoder.encode(neighbour_features) if len(neighbour_features) else encoded.new_empty(0, encoded.shape[1])
    )
    schemes = _one_hop(model, restart)
    neighbour_weight = min(1 / (len(around) + 1), schemes.clip)
    mean = neighbour_weight * around.sum(dim=0) + (1 - len(around) * neighbour_weight) * encoded
    block = (1 - schemes.restart) * mean + schemes.restart * encoded
    return from_blocks(model, block, encoded, access="own-edges")


def _one_hop(model: ReleasedModel, restart: float | None) -> Schemes:
    weight = model.settings.inference_restart if restart is None else restart
    if not 0 <= weight <= 1:
        raise InputError("inference_restart", rule="must lie in [0, 1]", got=weight, fix="The paper uses 0.1 to 0.9.")
    return Schemes(restart=weight, steps=(1,), clip=model.settings.schemes.clip)
