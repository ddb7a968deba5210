"""GCON with Gaussian noise in the objective (Theorem C) in the place of the paper's noise."""

from __future__ import annotations

from dataclasses import dataclass

from gcon.learn.training_rows import TrainingRows
from gcon.mechanisms.aggregates import Aggregates
from gcon.mechanisms.losses import ConvexLoss
from gcon.privacy.budget import Budget
from gcon_lab.mechanisms.gaussian_objective import GaussianObjective
from gcon_lab.mechanisms.gaussian_objective_plan import make_gaussian_objective_plan
from gcon_lab.methods.linear_models import DEFAULTS, ConvexMethod


@dataclass(frozen=True, kw_only=True)
class GaussianObjectiveMethod(ConvexMethod):
    """Objective perturbation with normal noise, at GCON's defaults."""

    name = "gaussian-objective"
    about = "Releases GCON's weights; Gaussian noise in the objective."

    def _mechanism(
        self, budget: Budget, *, loss: ConvexLoss, rows: TrainingRows, aggregates: Aggregates
    ) -> GaussianObjective:
        plan = make_gaussian_objective_plan(
            budget,
            loss=loss,
            num_features=aggregates.num_columns,
            num_labelled=rows.count,
            edge_influence=aggregates.edge_influence,
            ridge=DEFAULTS.ridge,
            noise_share=DEFAULTS.noise_share,
            margin=DEFAULTS.margin,
        )
        return GaussianObjective(aggregates=aggregates, plans=(plan,), mask=rows.mask, targets=rows.targets)
