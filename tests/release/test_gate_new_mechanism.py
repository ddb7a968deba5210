"""The gate takes a mechanism that the package has never heard of: a noisy vector."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
import torch

from gcon.errors import (
    PlanMismatchError,
)
from gcon.mechanisms.gaussian_curve import gaussian_multiplier
from gcon.mechanisms.samplers.uniform import standard_normals
from gcon.privacy.boundary import Private
from gcon.privacy.budget import Budget
from gcon.privacy.gates import release_statistic
from gcon.privacy.opening import map_private, open_private
from gcon.privacy.randomness import SystemRandomness


@dataclass(frozen=True, eq=False)
class BoundedVector:
    """A private vector, and how far one edge can move it."""

    value: Private
    sensitivity: float


@dataclass(frozen=True)
class NoisyVector:
    """A Gaussian release of a vector: a mechanism that the package has never heard of."""

    budget: Budget
    sensitivity: float
    name: str = "noisy vector"

    @property
    def noise(self) -> float:
        return self.sensitivity * gaussian_multiplier(self.budget.epsilon, self.budget.delta)

    def public_record(self) -> Mapping[str, object]:
        return {"standard_deviation": self.noise}

    def check(self, bounded):
        if not bounded.sensitivity <= self.sensitivity:
            raise PlanMismatchError("made for a smaller sensitivity")

    def apply(self, value, randomness):
        return value + self.noise * standard_normals(randomness, *value.shape)


def degree_sums(graph):
    labels = graph.nodes.labels
    sums = map_private(
        lambda edges: torch.zeros(3, dtype=torch.float64).index_add_(0, labels, edges.degrees.double()),
        graph.edges,
        "edge ends by class",
    )
    return BoundedVector(sums, sensitivity=2.0)


def test_a_noisy_statistic_fits_through_the_same_gate(kit):
    mechanism, ledger = NoisyVector(Budget(1.0, 1e-5), sensitivity=2.0), kit.ledger()
    released = release_statistic(
        mechanism, degree_sums(kit.graph), ledger=ledger, randomness=SystemRandomness(), purpose="degrees"
    )
    exact = open_private(degree_sums(kit.graph).value)
    assert released.value.shape == (3,)
    assert not torch.equal(released.value, exact)
    assert float((released.value - exact).abs().max()) < 10 * mechanism.noise  # one in 10^22 by chance
    assert released.receipt.plan == {"standard_deviation": mechanism.noise}
    assert released.receipt.keeps_promise
    assert ledger.total() == Budget(1.0, 1e-5)
    with pytest.raises(PlanMismatchError):
        release_statistic(
            NoisyVector(Budget(1.0, 1e-5), sensitivity=1.0),
            degree_sums(kit.graph),
            ledger=ledger,
            randomness=SystemRandomness(),
            purpose="degrees",
        )
