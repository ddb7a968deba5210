"""The paper's estimator: `GCON(epsilon=1.0).fit(data).predict(data)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar

from gcon.edges.schemes import Schemes, as_steps
from gcon.estimators.estimator import Callback, PrivateClassifier
from gcon.learn.perceptron import EncoderSettings
from gcon.methods.objective import Objective, ObjectiveModel
from gcon.privacy.budget import protected_change
from gcon.privacy.ledger import Ledger


class GCON(PrivateClassifier):
    """The paper's node classifier: objective perturbation, private for every edge of its training graph.

    Args:
        epsilon: the privacy budget, greater than 0; infinity trains without noise and promises nothing.
        delta: in (0, 1); None means min(1e-5, 1/(10 n)) for n nodes. Never derive it from the number of edges.
        restart: alpha in [0, 1], the weight of a node's own features in every step; larger needs less noise.
        steps: how many steps features travel: a number, `inf`, or several for features side by side.
        loss: `soft-margin` or `pseudo-huber:WEIGHT`.
        ridge: Lambda > 0; the privacy proof may raise it.
        noise_share: omega in (0, 1).
        expand: `all` nodes are in the loss, with pseudo-labels, or only the `labelled` ones.
        hidden: width of the encoder; None takes the features as ready-made edge-free embeddings.
        inference_restart: alpha_I in [0, 1], the weight of a node's own features when it asks with its own edges. Low for
            graphs whose neighbours agree (0.1), high where they do not (0.9).
        influence: `auto`, `paper`, `simple` or `sharp`: which proven bound on an edge's influence.
        clip: largest off-diagonal transition weight, in (0, 1/2].
        margin: xi, added to the floor of the ridge; None is the recommended rule.
        protect_edges: how many edges, 1 to 10, may change together within epsilon and delta; more of them, more noise.
        centre: centre encoded features before scaling them to length 1.
        unit_input: scale raw feature rows to length 1 before encoding.
        dropout, weight_decay, learning_rate, epochs, patience: how the encoder is trained.
        encoder_seed: of the encoder's initial weights; public, and unrelated to the noise.
        device: where propagation and the solver run: `auto` (a GPU if there is one), `cpu`, `cuda` or `cuda:NUMBER`.
        classes, ledger, random_state, verbose, callback: as for `NodeClassifier`.

    Attributes:
        model_: the `ObjectiveModel`: weights, encoder, settings, receipt. All of it may be published.
        classes_, n_features_in_, feature_names_in_: as for `NodeClassifier`.

    Example:
        >>> import gcon
        >>> graph = gcon.datasets.social_circles(300, seed=1)
        >>> model = gcon.GCON(epsilon=2.0, epochs=20).fit(graph)
        >>> model.predict(graph).shape
        (300,)

    Privacy:
        `fit` reads all edges and releases `model_` once, paying epsilon and delta. `predict` reads no edge unless
        `access` says so. Fitted attributes hold nothing else that depends on edges: no iteration counts, no losses.
    """

    model_type = ObjectiveModel
    shares: ClassVar = {"encode": 0.0, "calibrate": 0.6, "propagate, perturb, solve and release": 0.65}

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        restart: float = 0.8,
        steps: float | str | Sequence[float | str] = 2,
        loss: str = "soft-margin",
        ridge: float = 1.0,
        noise_share: float = 0.9,
        expand: str = "all",
        hidden: int | None = 16,
        inference_restart: float = 0.3,
        influence: str = "auto",
        clip: float = 0.5,
        margin: float | None = None,
        protect_edges: int = 1,
        centre: bool = True,
        unit_input: bool = True,
        dropout: float = 0.5,
        weight_decay: float | None = None,
        learning_rate: float = 0.01,
        epochs: int = 300,
        patience: int = 60,
        encoder_seed: int = 0,
        device: str = "auto",
        classes: Sequence[object] | None = None,
        ledger: Ledger | None = None,
        random_state: int | None = None,
        verbose: bool = False,
        callback: Callback | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.restart = restart
        self.steps = steps
        self.loss = loss
        self.ridge = ridge
        self.noise_share = noise_share
        self.expand = expand
        self.hidden = hidden
        self.inference_restart = inference_restart
        self.influence = influence
        self.clip = clip
        self.margin = margin
        self.protect_edges = protect_edges
        self.centre = centre
        self.unit_input = unit_input
        self.dropout = dropout
        self.weight_decay = weight_decay
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.patience = patience
        self.encoder_seed = encoder_seed
        self.device = device
        self.classes = classes
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def _method(self, given: Mapping[str, Any]) -> Objective:
        encoder = {field.name: given[field.name] for field in fields(EncoderSettings) if field.name in given}
        others = {field.name: given[field.name] for field in fields(Objective) if field.name in given}
        return Objective(
            encoder=EncoderSettings(**encoder, seed=given["encoder_seed"]),
            schemes=Schemes(restart=given["restart"], steps=as_steps(given["steps"]), clip=given["clip"]),
            **others,
        )

    @classmethod
    def _settings_of(cls, model: ObjectiveModel) -> dict[str, Any]:
        budget, settings = model.receipt.budget, model
        return {
            "epsilon": budget.epsilon,
            "delta": budget.delta or None,
            "restart": settings.schemes.restart,
            "steps": settings.schemes.steps,
            "clip": settings.schemes.clip,
            "loss": settings.loss,
            "inference_restart": settings.inference_restart,
            "protect_edges": protected_change(record=model.receipt.plan).edges,
        }
