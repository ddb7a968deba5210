"""Access `public-graph`: full propagation over a graph whose edges everybody may know."""

from __future__ import annotations

from torch import Tensor

from gcon.edges.source import Edges
from gcon.errors import AccessRefusedError, InputError
from gcon.methods.model import Model, predictions_from
from gcon.methods.predictions import Predictions
from gcon.nodes import features_fingerprint, recognises
from gcon.privacy.boundary import Private


def predict_on_public_graph(model: Model, features: Tensor, edges: Edges, *, device: str = "cpu") -> Predictions:
    """Predict from all edges of a public graph (the paper's other scenario; GCON propagates as in training).

    Args:
        model: the released model.
        features: public features of all nodes of that graph; nodes never seen are encoded by the released encoder.
        edges: bare. Passing them declares the edges public; `Private` edges are refused.
        device: where to compute: `cpu`, `cuda` or `cuda:NUMBER`.

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
            "features", rule=f"must have one row per node ({edges.num_nodes})", got=len(features), fix="Pass all nodes."
        )
    scorer = model.scorer(device=device)
    scores = scorer.public_graph(scorer.start(features, "public-graph"), edges)
    return predictions_from(model, scorer, scores, access="public-graph")


def refuse_training_nodes(model: Model, features: Tensor) -> None:
    """Refuse the node table that the model was trained on, in any order, or a part of it: its edges are private.

    Privacy:
        Compares digests of public features.
    """
    if features_fingerprint(features) == model.training_nodes or recognises(model.training_rows, features):
        raise AccessRefusedError(
            "access='public-graph' is refused for the node table that the model was trained on, in any order, and for parts of "
            "it: its edges are private. "
            "Use access='own-edges' or 'none'. For an experiment on edges that are truly public, call "
            "gcon.methods.public_graph.predict_on_public_graph, which takes your word for it."
        )
