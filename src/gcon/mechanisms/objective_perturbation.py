"""GCON's mechanism: minimise a perturbed convex objective over private aggregates (the paper's Theorem 1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from gcon.calibrate.plan import NoisePlan
from gcon.errors import InputError, NoCertificateError, PlanMismatchError
from gcon.perturb.noise import objective_noise
from gcon.perturb.objective import PerturbedObjectives
from gcon.perturb.sampling import standard_normals
from gcon.privacy.budget import NOTHING, Budget, compose
from gcon.privacy.randomness import Randomness
from gcon.propagate.aggregates import BoundedAggregates
from gcon.solve.certificate import certified_gradient_norm
from gcon.solve.newton import minimise


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ObjectivePerturbation:
    """One release a plan, all from the same aggregates and solved together.

    Attributes:
        plans: the noise plans; they share the number of features, labelled nodes and classes.
        mask: which nodes are in the loss (public).
        targets: their targets (public), n_1 x c in [0, 1].

    Privacy:
        Costs the sum of the plans' budgets: ten models are ten releases.
    """

    plans: tuple[NoisePlan, ...]
    mask: Tensor
    targets: Tensor

    def __post_init__(self) -> None:
        shapes = {(plan.num_features, plan.num_labelled, plan.loss.num_classes) for plan in self.plans}
        if len(shapes) != 1:
            raise InputError("plans", rule="must share one shape", got=f"{len(shapes)} shapes", fix="Split the batch.")
        if self.mask.dtype != torch.bool or self.mask.dim() != 1:
            raise InputError(
                "mask",
                rule="must hold one boolean a node",
                got=str(self.mask.dtype),
                fix="An index could count a row twice.",
            )
        (_, labelled, classes), rows = shapes.pop(), int(self.mask.sum())
        if tuple(self.targets.shape) != (labelled, classes) or rows != labelled:
            raise PlanMismatchError(
                f"plan made for {labelled} labelled nodes and {classes} classes; got {rows} rows in the loss and targets "
                f"of shape {tuple(self.targets.shape)}. Make the plan from the rows that are in the loss."
            )
        if bool(((self.targets < 0) | (self.targets > 1)).any()):
            raise InputError(
                "targets", rule="must lie in [0, 1]", got="a value outside", fix="The loss bounds need it."
            )

    @property
    def name(self) -> str:
        """The name in the ledger."""
        return "objective perturbation (GCON)"

    @property
    def budget(self) -> Budget:
        """The sum over the plans; a plan in which nothing depends on edges costs nothing."""
        return compose(plan.budget if plan.theorem.edge_influence > 0 else NOTHING for plan in self.plans)

    def public_record(self) -> Mapping[str, object]:
        """The plan's numbers (of all plans, where there are several)."""
        if len(self.plans) == 1:
            return self.plans[0].public_record()
        return {"plans": [plan.public_record() for plan in self.plans]}

    def check(self, bounded: BoundedAggregates) -> None:
        """Refuse aggregates that the plans do not cover. Reads public facts only."""
        for plan in self.plans:
            if not plan.theorem.edge_influence >= bounded.edge_influence:  # also refuses NaN
                raise PlanMismatchError(
                    f"plan made for edge influence {plan.theorem.edge_influence:g}; the aggregates carry "
                    f"{bounded.edge_influence:g}. Make the plan from the aggregates' own bound."
                )
            if plan.num_features != bounded.num_columns or self.mask.numel() != bounded.num_rows:
                raise PlanMismatchError(
                    f"plan made for {plan.num_features} columns and {self.mask.numel()} nodes; the aggregates have "
                    f"{bounded.num_columns} and {bounded.num_rows}."
                )
        if not bounded.longest_row <= 1:
            raise PlanMismatchError(
                f"Theorem 1 needs rows of length at most 1; the longest is {bounded.longest_row:g}. Scale the rows."
            )

    def apply(self, value: Tensor, randomness: Randomness) -> Tensor:
        """Weights of every plan, plans x features x classes; or `NoCertificateError`.

        Privacy:
            The released numbers depend on edges through the minimiser alone, which Theorem 1 and the certificate's
            reserve cover.
        """
        objectives = self._objectives(value, randomness)
        weights = minimise(objectives, value.new_tensor([plan.tolerance for plan in self.plans])).cpu()
        # Whatever device the solver ran on, its answer is checked on the processor.
        aggregates, noises = objectives.aggregates.cpu(), objectives.noises.cpu()
        for index, plan in enumerate(self.plans):
            norm = certified_gradient_norm(
                weights[index],
                aggregates=aggregates,
                targets=self.targets,
                loss=plan.loss,
                ridge=plan.total_ridge,
                noise=noises[index],
            )
            if not norm <= plan.tolerance:
                raise NoCertificateError("a gradient norm above the tolerance")
            if plan.final_noise > 0:
                weights[index] += plan.final_noise * standard_normals(randomness, *weights[index].shape)
        return weights.transpose(1, 2).contiguous()

    def _objectives(self, aggregates: Tensor, randomness: Randomness) -> PerturbedObjectives:
        for plan in self.plans:
            # Zero noise is right only where nothing needs noise: never by accident.
            if plan.theorem.edge_influence > 0 and math.isfinite(plan.budget.epsilon) and not plan.adds_noise:
                raise PlanMismatchError("A finite epsilon must add noise; this plan does not.")
        noises = [
            objective_noise(
                randomness,
                noise_rate=plan.noise_rate,
                num_features=plan.num_features,
                num_classes=plan.loss.num_classes,
            )
            for plan in self.plans
        ]
        return PerturbedObjectives(
            aggregates=aggregates if bool(self.mask.all()) else aggregates[self.mask.to(aggregates.device)],
            targets=self.targets.to(aggregates.device),
            losses=[plan.loss for plan in self.plans],
            ridges=aggregates.new_tensor([plan.total_ridge for plan in self.plans]),
            noises=torch.stack(noises).to(aggregates.device),
        )
