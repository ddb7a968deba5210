"""Objective perturbation with Gaussian noise: the paper's objective, less noise in high dimension (Theorem C).

Proof: docs/proofs/gaussian-objective.md; the approximate minimiser is covered as in the paper's mechanism.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from gcon.edges.source import Edges
from gcon.errors import PlanMismatchError
from gcon.mechanisms.aggregates import Aggregates
from gcon.mechanisms.convex_training import certified_weights, check_cover, check_training_rows, objective_record
from gcon.mechanisms.samplers.lattice import to_lattice
from gcon.mechanisms.samplers.uniform import standard_normals
from gcon.privacy.budget import NOTHING, Budget, compose
from gcon.privacy.proven import proven
from gcon.privacy.randomness import Randomness
from gcon_lab.mechanisms.gaussian_objective_plan import GaussianObjectivePlan


@final
@proven("gaussian-objective")
@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianObjective:
    """One release per plan, all from the same aggregates and solved together.

    Attributes:
        aggregates: what is propagated over the edges, with its proven bound.
        plans: the noise plans; they share the number of features, labelled nodes and classes.
        mask: which nodes are in the loss (public).
        targets: their targets (public), n_1 x c in [0, 1].

    Privacy:
        Costs the sum of the plans' budgets: ten models are ten releases. The noise is Gaussian but the release is not
        (it is a non-linear function of the noise), so it has no Gaussian distance.
    """

    name = "objective perturbation (Gaussian)"
    gaussian_distance = None  # only the budget is known

    aggregates: Aggregates
    plans: tuple[GaussianObjectivePlan, ...]
    mask: Tensor
    targets: Tensor

    def __post_init__(self) -> None:
        object.__setattr__(self, "mask", self.mask.clone())
        object.__setattr__(self, "targets", self.targets.clone())
        self.check()

    def check(self) -> None:
        """The plans are for these rows and aggregates, and add noise."""
        check_training_rows(self.plans, mask=self.mask, targets=self.targets)
        for plan in self.plans:
            check_cover(
                self.aggregates,
                edge_influence=plan.theorem.edge_influence,
                num_features=plan.num_features,
                num_nodes=self.mask.numel(),
            )
            if plan.needs_noise and not plan.scale > 0:  # zero noise is right only where nothing needs noise
                raise PlanMismatchError("A finite epsilon must add noise; this plan does not.")
        longest = self.aggregates.longest_row
        if not longest <= 1:  # also refuses NaN
            raise PlanMismatchError(
                f"Theorem C needs rows of length at most 1; the longest is {longest:g}. Scale the rows."
            )

    @property
    def budget(self) -> Budget:
        """The sum over the plans; a plan in which nothing depends on edges costs nothing."""
        return compose(plan.budget if plan.theorem.edge_influence > 0 else NOTHING for plan in self.plans)

    @property
    def reads_edges(self) -> bool:
        """Whether an edge can change anything in it."""
        return self.aggregates.edge_influence > 0

    def public_record(self) -> Mapping[str, object]:
        return objective_record(self.plans)

    def apply(self, edges: Edges, randomness: Randomness) -> Tensor:
        """Weights of every plan, plans x features x classes; or `NoCertificateError`.

        Privacy:
            The released numbers depend on edges through the minimiser alone, which Theorem C and the certificate's
            reserve cover. They are rounded to a public lattice that is finer than the final noise.
        """
        weights = certified_weights(
            self.plans,
            aggregates=self.aggregates.of(edges),
            mask=self.mask,
            targets=self.targets,
            noises=self._noises(randomness),
        )
        for index, plan in enumerate(self.plans):
            if plan.final_noise > 0:
                noisy = weights[index] + plan.final_noise * standard_normals(randomness, *weights[index].shape)
                weights[index] = to_lattice(noisy, plan.final_noise)
        return weights.transpose(1, 2).contiguous()

    def _noises(self, randomness: Randomness) -> list[Tensor]:
        shapes = [(plan.loss.num_classes, plan.num_features) for plan in self.plans]
        return [
            plan.scale * standard_normals(randomness, *shape)
            if plan.needs_noise
            else torch.zeros(shape, dtype=torch.float64)
            for plan, shape in zip(self.plans, shapes, strict=True)
        ]
