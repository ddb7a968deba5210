"""What all mechanisms that minimise a convex objective share: checks of public facts, and a certified solution.

The mechanisms differ in where the noise is: in the objective (`objective_perturbation.py`, `gaussian_objective.py`) or
on the solution (`output_perturbation.py`). None of them may continue with weights that have no certificate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from gcon.errors import InputError, NoCertificateError, PlanMismatchError
from gcon.mechanisms.aggregates import Aggregates
from gcon.mechanisms.certificate_terms import certified_gradient_norm
from gcon.mechanisms.losses import ConvexLoss
from gcon.mechanisms.objective_plan import ObjectivePlan
from gcon.mechanisms.perturbed_objective import PerturbedObjectives, minimise
from gcon.mechanisms.samplers.objective_noise import EXACT_OBJECTIVE, NORMAL_SPACING, EnclosedNoise
from gcon.mechanisms.samplers.rounded import SPACING, rounded_noise
from gcon.mechanisms.theorem import influence_of
from gcon.privacy.randomness import Randomness


class ConvexPlan(Protocol):
    """What a plan says about the objective itself."""

    @property
    def loss(self) -> ConvexLoss:
        """The registered loss."""

    @property
    def num_features(self) -> int:
        """d, columns of the aggregates."""

    @property
    def num_labelled(self) -> int:
        """n_1, rows in the loss."""

    @property
    def total_ridge(self) -> float:
        """The modulus of strong convexity."""

    @property
    def tolerance(self) -> float:
        """The largest gradient norm that is accepted as solved."""


def check_training_rows(plans: Sequence[ConvexPlan], *, mask: Tensor, targets: Tensor) -> None:
    """Refuse plans of different shapes, and rows in the loss that the plans were not made for. All of it is public."""
    shapes = {(plan.num_features, plan.num_labelled, plan.loss.num_classes) for plan in plans}
    if len(shapes) != 1:
        raise InputError("plans", rule="must share one shape", got=f"{len(shapes)} shapes", fix="Split the batch.")
    if mask.dtype != torch.bool or mask.dim() != 1:
        raise InputError(
            "mask",
            rule="must hold one boolean per node",
            got=str(mask.dtype),
            fix="An index could count a row twice.",
        )
    (_, labelled, classes), rows = shapes.pop(), int(mask.sum())
    if tuple(targets.shape) != (labelled, classes) or rows != labelled:
        raise PlanMismatchError(
            f"plan made for {labelled} labelled nodes and {classes} classes; got {rows} rows in the loss and targets "
            f"of shape {tuple(targets.shape)}. Make the plan from the rows that are in the loss."
        )
    if not bool(((targets >= 0) & (targets <= 1)).all()):  # also refuses NaN
        raise InputError("targets", rule="must lie in [0, 1]", got="a value outside", fix="The loss bounds need it.")


def check_cover(
    aggregates: Aggregates, *, edge_influence: float, num_features: int, num_nodes: int, protect_edges: int = 1
) -> None:
    """Refuse aggregates with a larger influence of so many edges, or of another shape, than a plan was made for."""
    carried = influence_of(protect_edges, aggregates.edge_influence)
    if not edge_influence >= carried:  # also refuses NaN
        raise PlanMismatchError(
            f"plan made for edge influence {edge_influence:g}; the aggregates carry {carried:g}. Make the plan from the "
            "aggregates' own bound."
        )
    if num_features != aggregates.num_columns or num_nodes != aggregates.num_rows:
        raise PlanMismatchError(
            f"plan made for {num_features} columns and {num_nodes} nodes; the aggregates have "
            f"{aggregates.num_columns} and {aggregates.num_rows}."
        )


def certified_weights(
    plans: Sequence[ConvexPlan], *, aggregates: Tensor, mask: Tensor, targets: Tensor, noises: Sequence[EnclosedNoise]
) -> Tensor:
    """The minimiser of every plan's objective, plans x classes x features, on the processor; or `NoCertificateError`.

    Args:
        plans: give loss, ridge and tolerance.
        aggregates: opened, all nodes.
        mask: which nodes are in the loss.
        targets: of those.
        noises: the linear term of every plan's objective, c x d.

    Privacy:
        The result depends on edges without the noise that a mechanism adds afterwards: it stays inside `apply`.
    """
    rows = aggregates if bool(mask.all()) else aggregates[mask.to(aggregates.device)]
    objectives = PerturbedObjectives(
        aggregates=rows,
        targets=targets.to(aggregates.device),
        losses=[plan.loss for plan in plans],
        ridges=aggregates.new_tensor([plan.total_ridge for plan in plans]),
        noises=torch.stack([noise.matrix for noise in noises]).to(aggregates.device),
    )
    weights = minimise(objectives, aggregates.new_tensor([plan.tolerance for plan in plans])).cpu()
    # Whatever device the solver ran on, its answer is checked on the processor.
    rows = rows.cpu()
    for index, plan in enumerate(plans):
        norm = certified_gradient_norm(
            weights[index],
            aggregates=rows,
            targets=targets,
            loss=plan.loss,
            ridge=plan.total_ridge,
            noise=noises[index],
        )
        if not norm <= plan.tolerance:
            raise NoCertificateError("a gradient norm above the tolerance")
    return weights


def with_final_noise(plans: Sequence[ObjectivePlan[Any]], weights: Tensor, randomness: Randomness) -> Tensor:
    """Certified weights with the final noise of their plans, plans x features x classes, on the public lattice.

    Privacy:
        Every weight is the lattice point nearest to weight + noise, for real Gaussian noise. Without noise (nothing depends on
        edges, or no promise) the weights leave as they are.
    """
    released = [
        rounded_noise(randomness, each, scale=plan.final_noise, spacing=SPACING * math.ulp(plan.final_noise))
        if plan.final_noise > 0
        else each
        for plan, each in zip(plans, weights, strict=True)
    ]
    return torch.stack(released).transpose(1, 2).contiguous()


def objective_record(plans: Sequence[ObjectivePlan[Any]]) -> Mapping[str, object]:
    """The plan's numbers (of all plans, where there are several), with the lattices of noise and released weights."""
    records = [plan.public_record() | _lattices(plan) for plan in plans]
    noise = {"noise": EXACT_OBJECTIVE} if any(plan.final_noise > 0 for plan in plans) else {}
    return {**records[0], **noise} if len(records) == 1 else {"plans": records, **noise}


def _lattices(plan: ObjectivePlan[Any]) -> dict[str, object]:
    if plan.final_noise == 0:
        return {"spacing": 0.0, "normal_spacing": 0.0}
    return {"spacing": SPACING * math.ulp(plan.final_noise), "normal_spacing": NORMAL_SPACING}
