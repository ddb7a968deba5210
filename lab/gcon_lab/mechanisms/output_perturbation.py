"""Output perturbation: solve a convex objective over private aggregates, then add Gaussian noise to the weights.

F(W) = (1/n_1) sum_i loss(W'z_i; y_i) + (ridge/2) |W - W_0|^2 with a public W_0. One edge moves the certified solution by
at most the plan's sensitivity; the release is one Gaussian release (docs/proofs/output-perturbation.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from gcon.edges.source import Edges
from gcon.errors import InputError, PlanMismatchError
from gcon.mechanisms.convex_training import certified_weights
from gcon.mechanisms.samplers.objective_noise import EnclosedNoise
from gcon.mechanisms.samplers.rounded import EXACT_GAUSSIAN, SPACING, rounded_noise
from gcon.privacy.plan import proven
from gcon.privacy.randomness import Randomness
from gcon_lab.mechanisms.convex import ConvexMechanism
from gcon_lab.mechanisms.output_noise_plan import OutputPlan


@final
@proven("output-perturbation")
@dataclass(frozen=True, eq=False, kw_only=True)
class OutputPerturbation(ConvexMechanism[OutputPlan]):
    """The objective of every plan, solved, with noise on its weights.

    Attributes:
        start: W_0 (public), features x classes: where the ridge pulls to. None for 0. It must not depend on edges, but
            for what earlier releases made public.

    Privacy:
        Together the releases are one Gaussian release of `gaussian_distance`.
    """

    name = "output perturbation"

    start: Tensor | None = None

    def __post_init__(self) -> None:
        if self.start is not None:
            object.__setattr__(self, "start", self.start.clone())
        super().__post_init__()

    def check(self) -> None:
        """The plans are for these rows, aggregates and start, and add noise."""
        super().check()
        if self.start is None:
            return
        plan = self.plans[0]
        shape = (plan.num_features, plan.loss.num_classes)
        if tuple(self.start.shape) != shape or not bool(torch.isfinite(self.start).all()):
            raise InputError(
                "start",
                rule=f"must hold finite numbers of shape {shape}",
                got=f"shape {tuple(self.start.shape)}",
                fix="Give features x classes.",
            )
        norm = float(torch.linalg.vector_norm(self.start.to(torch.float64)))
        if not all(norm <= plan.start_norm * (1 + 1e-12) for plan in self.plans):
            raise PlanMismatchError(f"A plan was made for a start shorter than {norm:g}. Give it `start_norm`.")

    @property
    def gaussian_distance(self) -> float | None:
        """The distance of the one Gaussian release that all plans amount to, for tighter totals."""
        if math.isinf(self.budget.epsilon):
            return None
        return math.hypot(*(plan.distance or 0.0 for plan in self.plans)) * (1 + 1e-12) or None

    @property
    def record(self) -> Mapping[str, object]:
        records = [
            {**plan.public_record(), "spacing": SPACING * math.ulp(plan.scale) if plan.scale > 0 else 0.0}
            for plan in self.plans
        ]
        noise = {"noise": EXACT_GAUSSIAN} if any(plan.scale > 0 for plan in self.plans) else {}
        return {**records[0], **noise} if len(records) == 1 else {"plans": records, **noise}

    def apply(self, edges: Edges, randomness: Randomness) -> Tensor:
        """Weights of every plan, plans x features x classes, on the plan's lattice; or `NoCertificateError`.

        Privacy:
            The certified solutions depend on edges; each leaves with real Gaussian noise, rounded exactly to the public
            lattice. The certificate is about the float64 weights as they are, so they are exact numbers here.
            Without noise (nothing depends on edges, or no promise) they leave as they are.
        """
        # The same objective is solved once, however often it is released.
        unique = list({_objective(plan): plan for plan in self.plans}.values())
        solved = certified_weights(
            unique,
            aggregates=self.aggregates.of(edges),
            mask=self.mask,
            targets=self.targets,
            noises=[EnclosedNoise(self._linear_term(plan), 0.0) for plan in unique],  # public: no noise
        )
        places = {_objective(plan): place for place, plan in enumerate(unique)}
        released = []
        for plan in self.plans:
            weights = solved[places[_objective(plan)]]
            if plan.needs_noise:
                spacing = SPACING * math.ulp(plan.scale)
                weights = rounded_noise(randomness, weights, scale=plan.scale, spacing=spacing)
            released.append(weights)
        return torch.stack(released).transpose(1, 2).contiguous()

    def _linear_term(self, plan: OutputPlan) -> Tensor:
        """B with (ridge/2) |W|^2 + <B, W>/n_1 = (ridge/2) |W - W_0|^2 + a constant: B = -n_1 ridge W_0, c x d."""
        if self.start is None:
            return torch.zeros(plan.loss.num_classes, plan.num_features, dtype=torch.float64)
        return -plan.num_labelled * plan.ridge * self.start.to(torch.float64).cpu().T


def _objective(plan: OutputPlan) -> tuple[object, float, float]:
    return plan.loss, plan.ridge, plan.tolerance
