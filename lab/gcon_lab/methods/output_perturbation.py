"""GCON with Gaussian noise on the weights in the place of the paper's noise in the objective."""

from __future__ import annotations

from dataclasses import dataclass

from gcon.learn.training_rows import TrainingRows
from gcon.mechanisms.aggregates import Aggregates
from gcon.mechanisms.losses import ConvexLoss
from gcon.privacy.budget import Budget
from gcon_lab.mechanisms.output_noise_plan import make_output_plan
from gcon_lab.mechanisms.output_perturbation import OutputPerturbation
from gcon_lab.methods.linear_models import DEFAULTS, ConvexMethod


@dataclass(frozen=True, kw_only=True)
class OutputPerturbationMethod(ConvexMethod):
    """Output perturbation, at GCON's defaults."""

    name = "output-perturbation"
    about = "Releases GCON's weights; Gaussian noise on the weights."

    def _mechanism(
        self, budget: Budget, *, loss: ConvexLoss, rows: TrainingRows, aggregates: Aggregates
    ) -> OutputPerturbation:
        plan = make_output_plan(
            budget,
            loss=loss,
            num_features=aggregates.num_columns,
            num_labelled=rows.count,
            edge_influence=aggregates.edge_influence,
            ridge=DEFAULTS.ridge,
            longest_row=aggregates.longest_row,
        )
        return OutputPerturbation(aggregates=aggregates, plans=(plan,), mask=rows.mask, targets=rows.targets)
