"""Objective perturbation with Gaussian noise: the paper's objective, less noise in high dimension (Theorem C).

Proof: docs/proofs/gaussian-objective.md; the approximate minimiser is covered as in the paper's mechanism.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from torch import Tensor

from gcon.edges.source import Edges
from gcon.mechanisms.convex_training import certified_weights, objective_record, with_final_noise
from gcon.mechanisms.samplers.objective_noise import EnclosedNoise, gaussian_objective_noise
from gcon.privacy.plan import proven
from gcon.privacy.randomness import Randomness
from gcon_lab.mechanisms.convex import ConvexMechanism
from gcon_lab.mechanisms.gaussian_objective_plan import GaussianObjectivePlan


@final
@proven("gaussian-objective")
@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianObjective(ConvexMechanism[GaussianObjectivePlan]):
    """The paper's mechanism with normal noise in the objective.

    Privacy:
        The noise is Gaussian but the release is not (it is a non-linear function of the noise), so it has no Gaussian distance.
    """

    name = "objective perturbation (Gaussian)"
    gaussian_distance = None  # only the budget is known

    @property
    def record(self) -> Mapping[str, object]:
        return objective_record(self.plans)

    def apply(self, edges: Edges, randomness: Randomness) -> Tensor:
        """Weights of every plan, plans x features x classes; or `NoCertificateError`.

        Privacy:
            The released numbers depend on edges through the minimiser alone, which Theorem C and the certificate's
            reserve cover. They are exact roundings of real noise to a public lattice that is finer than the final noise.
        """
        weights = certified_weights(
            self.plans,
            aggregates=self.aggregates.of(edges),
            mask=self.mask,
            targets=self.targets,
            noises=self._noises(randomness),
        )
        return with_final_noise(self.plans, weights, randomness)

    def _noises(self, randomness: Randomness) -> list[EnclosedNoise]:
        return [
            gaussian_objective_noise(
                randomness,
                scale=plan.scale if plan.needs_noise else 0.0,
                num_features=plan.num_features,
                num_classes=plan.loss.num_classes,
            )
            for plan in self.plans
        ]
