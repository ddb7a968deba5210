"""GCON's pipeline at its defaults, with another mechanism in the place of the paper's: Gaussian noise, placed elsewhere."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gcon.learn.training_rows import training_rows
from gcon.mechanisms.aggregates import Aggregates
from gcon.mechanisms.losses import loss_by_name
from gcon.methods.method import Trained
from gcon.methods.objective import Objective
from gcon.nodes import PublicNodes
from gcon.privacy.budget import Budget, checked_budget
from gcon.privacy.plan import PricedMechanism
from gcon_lab.mechanisms.gaussian_objective import GaussianObjective
from gcon_lab.mechanisms.gaussian_objective_plan import make_gaussian_objective_plan
from gcon_lab.mechanisms.output_noise_plan import make_output_plan
from gcon_lab.mechanisms.output_perturbation import OutputPerturbation
from gcon_lab.methods.competitor import PaidEdges
from gcon_lab.methods.linear_models import EncodedMethod, Linear, linear_scorers

DEFAULTS = Objective(epsilon=1.0, device="cpu")  # GCON's own; the epsilon in them is not used


@dataclass(frozen=True, kw_only=True)
class ConvexMethod(EncodedMethod):
    """The pipeline, up to the mechanism."""

    def learn(self, nodes: PublicNodes, edges: PaidEdges) -> Trained:
        encoder = self._encoder(nodes)
        rows = training_rows(nodes, encoder, DEFAULTS.expand)
        aggregates = Aggregates(encoder.encode(nodes.features), DEFAULTS.schemes, bound=DEFAULTS.influence)
        shape = {
            "loss": loss_by_name(DEFAULTS.loss, nodes.num_classes),
            "num_features": aggregates.num_columns,
            "num_labelled": rows.count,
            "edge_influence": aggregates.edge_influence,
            "ridge": DEFAULTS.ridge,
        }
        budget = checked_budget(self.epsilon, self.delta, nodes.num_nodes)
        problem = {"aggregates": aggregates, "mask": rows.mask, "targets": rows.targets}
        mechanism = self._mechanism(budget, shape, problem)
        released = edges.release_once(mechanism, f"linear weights ({self.name})")
        (weights,) = released.value
        linear = Linear(weights, torch.zeros(nodes.num_classes, dtype=weights.dtype))
        return Trained(
            score_functions=linear_scorers(encoder, linear, DEFAULTS.schemes, DEFAULTS.inference_restart),
            receipts=(released.receipt,),
        )

    @abstractmethod
    def _mechanism(self, budget: Budget, shape: dict[str, Any], problem: dict[str, Any]) -> PricedMechanism[Tensor]:
        """The mechanism with one plan for a problem of this shape. Reads public facts of the aggregates."""


@dataclass(frozen=True, kw_only=True)
class GaussianObjectiveMethod(ConvexMethod):
    """Objective perturbation with normal noise (Theorem C)."""

    name = "gaussian-objective"
    about = "Releases GCON's weights; Gaussian noise in the objective."

    def _mechanism(self, budget: Budget, shape: dict[str, Any], problem: dict[str, Any]) -> GaussianObjective:
        plan = make_gaussian_objective_plan(budget, **shape, noise_share=DEFAULTS.noise_share, margin=DEFAULTS.margin)
        return GaussianObjective(plans=(plan,), **problem)


@dataclass(frozen=True, kw_only=True)
class OutputPerturbationMethod(ConvexMethod):
    """Output perturbation: noise on the weights."""

    name = "output-perturbation"
    about = "Releases GCON's weights; Gaussian noise on the weights."

    def _mechanism(self, budget: Budget, shape: dict[str, Any], problem: dict[str, Any]) -> OutputPerturbation:
        plan = make_output_plan(budget, **shape, longest_row=problem["aggregates"].longest_row)
        return OutputPerturbation(plans=(plan,), **problem)
