"""GCON's mechanism: minimise a perturbed convex objective over private aggregates (the paper's Theorem 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from torch import Tensor

from gcon.edges.source import Edges
from gcon.errors import PlanMismatchError
from gcon.mechanisms.aggregates import Aggregates
from gcon.mechanisms.convex_training import (
    certified_weights,
    check_cover,
    check_training_rows,
    objective_record,
    with_final_noise,
)
from gcon.mechanisms.objective_plan import NoisePlan
from gcon.mechanisms.samplers.objective_noise import EnclosedNoise, objective_noise
from gcon.privacy.budget import NOTHING, Budget, compose
from gcon.privacy.plan import proven
from gcon.privacy.randomness import Randomness


@final
@proven("objective-perturbation")
@dataclass(frozen=True, eq=False, kw_only=True)
class ObjectivePerturbation:
    """One release per plan, all from the same aggregates and solved together.

    Attributes:
        aggregates: what is propagated over the edges, with its proven bound.
        plans: the noise plans; they share the number of features, labelled nodes and classes.
        mask: which nodes are in the loss (public).
        targets: their targets (public), n_1 x c in [0, 1].

    Privacy:
        Costs the sum of the plans' budgets: ten models are ten releases.
    """

    name = "objective perturbation (GCON)"

    aggregates: Aggregates
    plans: tuple[NoisePlan, ...]
    mask: Tensor
    targets: Tensor

    def __post_init__(self) -> None:
        object.__setattr__(self, "plans", tuple(self.plans))  # a list could grow after it was paid for
        object.__setattr__(self, "mask", self.mask.clone())
        object.__setattr__(self, "targets", self.targets.clone())
        self.check()

    def check(self) -> None:
        """The plans are for these rows and aggregates, and add noise."""
        check_training_rows(self.plans, mask=self.mask, targets=self.targets)
        for plan in self.plans:
            if type(plan) is not NoisePlan:
                raise PlanMismatchError("Plans of this mechanism are made by make_plan, and by nobody else.")
            plan.__post_init__()  # as if made now: what was changed since would be released
            check_cover(
                self.aggregates,
                edge_influence=plan.theorem.edge_influence,
                num_features=plan.num_features,
                num_nodes=self.mask.numel(),
                protect_edges=plan.protect_edges,
            )
            # Zero noise is right only where nothing needs noise: never by accident.
            if plan.needs_noise and not plan.adds_noise:
                raise PlanMismatchError("A finite epsilon must add noise; this plan does not.")
        longest = self.aggregates.longest_row
        if not longest <= 1:
            raise PlanMismatchError(
                f"Theorem 1 needs rows of length at most 1; the longest is {longest:g}. Scale the rows."
            )

    @property
    def budget(self) -> Budget:
        """The sum over the plans; a plan in which nothing depends on edges costs nothing."""
        return compose(plan.budget if plan.theorem.edge_influence > 0 else NOTHING for plan in self.plans)

    @property
    def gaussian_distance(self) -> None:
        """Only the budget is known."""

    @property
    def reads_edges(self) -> bool:
        """Whether an edge can change anything in it."""
        return self.aggregates.edge_influence > 0

    @property
    def record(self) -> Mapping[str, object]:
        """The plan's numbers (of all plans, where there are several), and where the edge influence comes from."""
        return {**objective_record(self.plans), "influence": self.aggregates.public_record()}

    def apply(self, edges: Edges, randomness: Randomness) -> Tensor:
        """Weights of every plan, plans x features x classes; or `NoCertificateError`.

        Privacy:
            The released numbers depend on edges through the minimiser alone, which Theorem 1 and the certificate's
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
            objective_noise(
                randomness,
                noise_rate=plan.noise_rate,
                num_features=plan.num_features,
                num_classes=plan.loss.num_classes,
            )
            for plan in self.plans
        ]
