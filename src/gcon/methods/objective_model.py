"""The paper's released model: weights, encoder, settings and receipt, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gcon.edges.schemes import Schemes
from gcon.learn.encoder import Encoder
from gcon.mechanisms.aggregates import BoundedAggregates
from gcon.mechanisms.objective_perturbation import ObjectivePerturbation
from gcon.methods.published import PublishedModel
from gcon.privacy.gates import release_statistic
from gcon.privacy.ledger import Ledger
from gcon.privacy.randomness import Randomness
from gcon.privacy.receipt import Receipt


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """What prediction needs to know: public numbers and names.

    Attributes:
        schemes: restart, steps and clip of training.
        inference_restart: alpha_I, the weight of a node's own features at inference from own edges.
        loss: name of the loss.
        class_names: what the columns of the weights stand for.
        training_nodes: checksum of the public feature table that the model was trained on.
    """

    schemes: Schemes
    inference_restart: float
    loss: str
    class_names: tuple[object, ...]
    training_nodes: str


@dataclass(frozen=True, eq=False, kw_only=True)
class ReleasedModel(PublishedModel):
    """GCON's model. Everything here is public.

    Attributes:
        weights: d x c, the private minimiser.
        encoder: edge-free.
        settings: public numbers.
        receipt: what was paid and what is promised.
    """

    method = "paper"
    accesses = ("none", "own-edges", "public-graph")
    choices = (
        "the settings were given by the operator or are the defaults; the program chose nothing by looking at private edges. "
        "What gcon tune chooses for a price is a release of its own, in the ledger."
    )

    weights: Tensor
    encoder: Encoder
    settings: ModelSettings
    receipt: Receipt

    @property
    def class_names(self) -> tuple[object, ...]:
        """What the columns of the weights stand for."""
        return self.settings.class_names

    @property
    def training_nodes(self) -> str:
        """Checksum of the public feature table that the model was trained on."""
        return self.settings.training_nodes

    def tensors(self) -> dict[str, Tensor]:
        """The weights."""
        return {"weights": self.weights}

    def description(self) -> str:
        """What it is, for the model card."""
        settings = self.settings
        steps = ", ".join(f"{count:g}" for count in settings.schemes.steps)
        return (
            "An encoder that was trained without edges turns features into vectors. These travelled over the edges of a\n"
            f"private graph (steps: {steps}; restart: {settings.schemes.restart:g}), and a linear model with the loss\n"
            f"`{settings.loss}` was trained on the result."
        )


def release_models(
    mechanism: ObjectivePerturbation,
    aggregates: BoundedAggregates,
    *,
    encoder: Encoder,
    settings: ModelSettings,
    ledger: Ledger,
    randomness: Randomness,
    purpose: str,
) -> tuple[ReleasedModel, ...]:
    """Pay for the mechanism and wrap what comes out, one model a plan.

    Privacy:
        All that depends on edges passes `release_statistic`.
    """
    released = release_statistic(mechanism, aggregates, ledger=ledger, randomness=randomness, purpose=purpose)
    return tuple(
        ReleasedModel(weights=weights.clone(), encoder=encoder, settings=settings, receipt=released.receipt)
        for weights in released.value
    )


def release_model(
    mechanism: ObjectivePerturbation,
    aggregates: BoundedAggregates,
    *,
    encoder: Encoder,
    settings: ModelSettings,
    ledger: Ledger,
    randomness: Randomness,
    purpose: str = "node classification",
) -> ReleasedModel:
    """Release the single model of a mechanism with one plan."""
    (model,) = release_models(
        mechanism,
        aggregates,
        encoder=encoder,
        settings=settings,
        ledger=ledger,
        randomness=randomness,
        purpose=purpose,
    )
    return model
