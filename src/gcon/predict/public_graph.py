"""Access `public-graph`: full propagation over a graph whose edges everybody may know."""

from __future__ import annotations

from torch import Tensor

from gcon.errors import AccessRefusedError, InputError
from gcon.graphs.edges import EdgeList
from gcon.graphs.nodes import features_fingerprint
from gcon.predict.predictions import Predictions, from_aggregates
from gcon.privacy.boundary import Private
from gcon.propagate.schemes import propagate
from gcon.release.model import ReleasedModel


def predict_on_public_graph(model: ReleasedModel, features: Tensor, edges: EdgeList) -> Predictions:
    """Predict with the same propagation as in training, on public edges (the paper's other scenario).

    Args:
        model: the released model.
        features: public features of all nodes of that graph; nodes never seen are encoded by the released encoder.
        edges: a bare `EdgeList`. Passing one declares the edges public; `Private` edges are refused.

    Privacy:
        Reads every edge it is given and promises nothing about them. The training edges keep the model's promise.
    """
    if isinstance(edges, Private):
        raise AccessRefusedError(
            "access='public-graph' propagates over all edges, and these are private: every prediction would depend on "
            "other people's edges. Use access='own-edges' or access='none'."
        )
    if len(features) != edges.num_nodes:
        raise InputError(
            "features", rule=f"must have one row a node ({edges.num_nodes})", got=len(features), fix="Pass all nodes."
        )
    encoded = model.encoder.encode(features)
    return from_aggregates(model, propagate(edges, encoded, model.settings.schemes), access="public-graph")


def refuse_training_nodes(model: ReleasedModel, features: Tensor) -> None:
    """Refuse the node table that the model was trained on: whatever the caller says, its edges are private.

    Privacy:
        Compares checksums of public features.
    """
    if features_fingerprint(features) == model.settings.training_nodes:
        raise AccessRefusedError(
            "access='public-graph' is refused for the node table that the model was trained on: its edges are private. "
            "Use access='own-edges' or 'none'. For an experiment on edges that are truly public, call "
            "gcon.predict.public_graph.predict_on_public_graph, which takes your word for it."
        )
