"""The released model: weights, encoder, settings and receipt, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gcon.encode.encoder import Encoder
from gcon.mechanisms.objective_perturbation import ObjectivePerturbation
from gcon.privacy.ledger import Ledger
from gcon.privacy.randomness import Randomness
from gcon.privacy.receipt import Receipt
from gcon.privacy.statement import Statement, statement
from gcon.propagate.aggregates import BoundedAggregates
from gcon.propagate.schemes import Schemes
from gcon.release.gate import release_statistic


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
class ReleasedModel:
    """Everything here is public.

    Attributes:
        weights: d x c, the private minimiser.
        encoder: edge-free.
        settings: public numbers.
        receipt: what was paid and what is promised.
    """

    weights: Tensor
    encoder: Encoder
    settings: ModelSettings
    receipt: Receipt

    def statement(self) -> Statement:
        """The promise in words and as data."""
        return statement(self.receipt)


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
