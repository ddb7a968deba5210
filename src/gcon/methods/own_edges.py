"""Access `own-edges`: private inference. Each node is answered from its own edges and public numbers of its neighbours."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from gcon.edges.edge_list import public_edges
from gcon.edges.source import Edges
from gcon.errors import AccessRefusedError
from gcon.methods.model import Model, joined, predictions_from
from gcon.methods.predictions import Predictions
from gcon.nodes import row_slices
from gcon.privacy.boundary import Private
from gcon.privacy.gates import answer_owners
from gcon.privacy.ledger import Ledger


def predict_from_own_edges(
    model: Model,
    features: Tensor,
    edges: Private[Edges],
    *,
    ledger: Ledger,
    restart: float | None = None,
    purpose: str = "answers to node owners",
) -> Predictions:
    """Answer every node from its own edges. GCON: ((1 - a_I) T + a_I I) X, row by row.

    Args:
        model: the released model.
        features: public features of all nodes of the graph, in its order (the training graph or another one).
        edges: private edges; row i of the result reads the edges of node i only.
        ledger: records the delivery.
        restart: a_I in [0, 1] of a GCON model; None for the model's own.
        purpose: public words for the ledger.

    Privacy:
        Joint promise: for every edge {u, v}, the model and all answers to nodes other than u and v are covered by the
        model's (epsilon, delta). A row is for its owner only; publishing the table is not covered.
    """
    batches: list[Predictions] = []
    deliver_from_own_edges(model, features, edges, batches.append, ledger=ledger, restart=restart, purpose=purpose)
    return joined(batches)


def deliver_from_own_edges(
    model: Model,
    features: Tensor,
    edges: Private[Edges],
    deliver: Callable[[Predictions], None],
    *,
    ledger: Ledger,
    restart: float | None = None,
    device: str = "cpu",
    purpose: str = "answers to node owners",
) -> None:
    """The same answers, handed on for one batch of nodes after another: for tables that do not fit into memory.

    Args:
        model: the released model.
        features: public features of all nodes of the graph, in its order.
        edges: private edges; row i of the result reads the edges of node i only.
        deliver: takes the answers of the next nodes. It runs before the delivery is recorded as made, so nobody may see what
            it took before this function has returned.
        ledger: records the delivery.
        restart: a_I in [0, 1] of a GCON model; None for the model's own.
        device: where to compute: `cpu`, `cuda` or `cuda:NUMBER`.
        purpose: public words for the ledger.

    Privacy:
        That of `predict_from_own_edges`.
    """
    if not isinstance(edges, Private):
        raise AccessRefusedError(
            "access='own-edges' answers from private edges. For edges that everybody may know use access='public-graph'."
        )
    scorer = model.scorer(restart=restart, device=device)
    start = scorer.start(features, "own-edges")  # all checks come before anything is opened

    def answer(opened: Edges) -> None:
        scores = scorer.own_edges_of_rows(start, opened)
        for rows in row_slices(len(start)) if len(start) else [slice(0, 0)]:
            deliver(predictions_from(model, scorer, scores(rows), access="own-edges"))

    answer_owners(answer, edges, ledger=ledger, purpose=purpose)


def own_edge_answers(model: Model, features: Tensor, *, restart: float | None = None) -> Callable[[Edges], Predictions]:
    """The function of opened edges that answers all nodes; what reads no edge is computed now.

    Privacy:
        The function works on opened edges and is called inside a gate. Row i reads i's neighbours and public numbers only.
    """
    start = model.scorer(restart=restart).start(features, "own-edges")
    return lambda opened: own_edge_predictions(model, start, opened, restart=restart)


def own_edge_predictions(model: Model, start: Tensor, edges: Edges, *, restart: float | None = None) -> Predictions:
    """The answers of all nodes from a start that reads no edge (for GCON, the encoded features).

    Privacy:
        Works on opened edges; called inside a gate.
    """
    scorer = model.scorer(restart=restart)
    return predictions_from(model, scorer, scorer.own_edges(start, edges), access="own-edges")


def predict_for_one_owner(
    model: Model, own_features: Tensor, neighbour_features: Tensor, *, restart: float | None = None
) -> Predictions:
    """Answer one person from what she sends: her own features and those of her neighbours (k x d0, k may be 0).

    Privacy:
        Stateless; reads nothing but the arguments and the released model.
    """
    own = own_features.reshape(1, -1)
    known = torch.cat([own, neighbour_features.to(own.dtype)]) if len(neighbour_features) else own
    others = torch.arange(1, len(known))
    star = public_edges(torch.stack([torch.zeros_like(others), others]), len(known))
    scorer = model.scorer(restart=restart)
    scores = scorer.own_edges(scorer.start(known, "own-edges"), star)[:1]
    return predictions_from(model, scorer, scores, access="own-edges")
