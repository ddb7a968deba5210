"""What the two Gaussian mechanisms with a convex objective share: rows in the loss, plans that cover them, and the price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from torch import Tensor

from gcon.errors import PlanMismatchError
from gcon.mechanisms.aggregates import Aggregates
from gcon.mechanisms.convex_training import check_cover, check_training_rows
from gcon.privacy.budget import NOTHING, Budget, compose
from gcon_lab.mechanisms.gaussian_objective_plan import GaussianObjectivePlan
from gcon_lab.mechanisms.output_noise_plan import OutputPlan

PlanT = TypeVar("PlanT", GaussianObjectivePlan, OutputPlan)


@dataclass(frozen=True, eq=False, kw_only=True)
class ConvexMechanism(Generic[PlanT]):
    """One release per plan, all from the same aggregates and solved together.

    Attributes:
        aggregates: what is propagated over the edges, with its proven bound.
        plans: the noise plans; they share the number of features, labelled nodes and classes.
        mask: which nodes are in the loss (public).
        targets: their targets (public), n_1 x c in [0, 1].

    Privacy:
        Costs the sum of the plans' budgets: ten models are ten releases.
    """

    aggregates: Aggregates
    plans: tuple[PlanT, ...]
    mask: Tensor
    targets: Tensor

    def __post_init__(self) -> None:
        object.__setattr__(self, "mask", self.mask.clone())
        object.__setattr__(self, "targets", self.targets.clone())
        self.check()

    def check(self) -> None:
        """The plans are for these rows and aggregates, and add noise."""
        check_training_rows(self.plans, mask=self.mask, targets=self.targets)
        longest = self.aggregates.longest_row
        for plan in self.plans:
            check_cover(
                self.aggregates,
                edge_influence=plan.edge_influence,
                num_features=plan.num_features,
                num_nodes=self.mask.numel(),
            )
            if not longest <= plan.longest_row <= 1:  # also refuses NaN
                raise PlanMismatchError(
                    f"plan made for rows of length at most {plan.longest_row:g}; the longest is {longest:g}. Scale the rows."
                )
            if plan.needs_noise and not plan.scale > 0:  # zero noise is right only where nothing needs noise
                raise PlanMismatchError("A finite epsilon must add noise; this plan does not.")

    @property
    def budget(self) -> Budget:
        """The sum over the plans; a plan in which nothing depends on edges costs nothing."""
        return compose(plan.budget if plan.edge_influence > 0 else NOTHING for plan in self.plans)

    @property
    def reads_edges(self) -> bool:
        """Whether an edge can change anything in it."""
        return self.aggregates.edge_influence > 0
