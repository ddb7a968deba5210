"""A small graph on which the mechanisms with a convex objective are tried; all nodes but the first four are in the loss."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import networkx
import torch

from gcon.edges.edge_list import public_edges
from gcon.edges.schemes import Schemes
from gcon.edges.source import Edges
from gcon.mechanisms.aggregates import Aggregates
from gcon.mechanisms.losses import SoftMargin
from gcon.privacy.account import release_once
from gcon.privacy.boundary import Private
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.mechanisms.gaussian_objective import GaussianObjective
from gcon_lab.mechanisms.gaussian_objective_plan import make_gaussian_objective_plan
from gcon_lab.mechanisms.output_noise_plan import make_output_plan
from gcon_lab.mechanisms.output_perturbation import OutputPerturbation

NODES, WIDTH, CLASSES = 40, 6, 3
TWO_STEPS = Schemes(restart=0.8, steps=(2,))
NO_EDGES = Schemes(restart=1.0, steps=(2,))


@dataclass(frozen=True, eq=False, kw_only=True)
class Setting:
    kind: type
    make_plan: Callable[..., Any]
    ridge: float
    aggregates: Aggregates
    edges: Edges
    mask: torch.Tensor
    targets: torch.Tensor
    more: dict[str, float] = field(default_factory=dict)

    def plan(self, budget=Budget(1.0, 1e-5), **changes):  # noqa: B008  (budgets are frozen)
        options = {
            "loss": SoftMargin(CLASSES),
            "num_features": WIDTH,
            "num_labelled": len(self.targets),
            "edge_influence": self.aggregates.edge_influence,
            "ridge": self.ridge,
            **self.more,
        }
        return self.make_plan(budget, **(options | changes))

    def mechanism(self, *plans, **changes):
        given = {"aggregates": self.aggregates, "mask": self.mask, "targets": self.targets}
        return self.kind(**{"plans": plans or (self.plan(),), **given, **changes})

    def rows(self):
        """The aggregates of all nodes."""
        return self.aggregates.of(self.edges)

    def release(self, mechanism, ledger, *, randomness=None):
        private, randomness = Private(self.edges, "edges"), randomness or SystemRandomness()
        return release_once(mechanism, private, ledger=ledger, randomness=randomness, purpose="test")


def _setting(schemes, **mechanism):
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(NODES, WIDTH, generator=generator, dtype=torch.float64)
    features /= features.norm(dim=1, keepdim=True) * 1.0001
    graph = networkx.gnp_random_graph(NODES, 0.1, seed=1)
    edges = public_edges(torch.tensor(list(graph.edges)).T, NODES)
    mask = torch.arange(NODES) >= 4
    targets = torch.eye(CLASSES, dtype=torch.float64)[torch.randint(CLASSES, (NODES - 4,), generator=generator)]
    return Setting(aggregates=Aggregates(features, schemes), edges=edges, mask=mask, targets=targets, **mechanism)


def gaussian_objective(schemes=TWO_STEPS):
    return _setting(schemes, kind=GaussianObjective, make_plan=make_gaussian_objective_plan, ridge=1.0)


def output_perturbation(schemes=TWO_STEPS):
    longest = {"longest_row": _setting(schemes, kind=object, make_plan=dict, ridge=0.3).aggregates.longest_row}
    return _setting(schemes, kind=OutputPerturbation, make_plan=make_output_plan, ridge=0.3, more=longest)
