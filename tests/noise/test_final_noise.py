"""The release adds the plan's final noise to the minimiser: measured on what the mechanism gives out, at the right scale only."""

import math

import numpy as np
import pytest
import scipy.stats
import torch

from gcon.edges.edge_list import public_edges
from gcon.edges.schemes import Schemes
from gcon.mechanisms.aggregates import Aggregates
from gcon.mechanisms.losses import SoftMargin
from gcon.mechanisms.objective_perturbation import ObjectivePerturbation
from gcon.mechanisms.objective_plan import make_plan
from gcon.mechanisms.samplers.rounded import SPACING
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import SeededRandomness, SystemRandomness

LEVEL = 1e-6
EDGES = public_edges(torch.stack([torch.arange(29), torch.arange(1, 30)]), 30)


def mechanism_of(plans=1):
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(30, 4, generator=generator, dtype=torch.float64)
    features /= 2 * torch.linalg.vector_norm(features, dim=1, keepdim=True)
    aggregates = Aggregates(features, Schemes(restart=0.8, steps=(2,)))
    targets = torch.nn.functional.one_hot(torch.arange(30) % 2, 2).double()
    plan = make_plan(
        Budget(1.0, 1e-5), loss=SoftMargin(2), num_features=4, num_labelled=30, edge_influence=0.4, ridge=0.5
    )
    mask = torch.ones(30, dtype=torch.bool)
    return plan, ObjectivePerturbation(aggregates=aggregates, plans=(plan,) * plans, mask=mask, targets=targets)


def release(randomness, plans=1):
    plan, mechanism = mechanism_of(plans)
    return plan, mechanism.apply(EDGES, randomness)


@pytest.mark.parametrize(("factor", "fits"), [(1.0, True), (2 / 3, False), (3 / 2, False)])
def test_final_noise_has_the_scale_of_the_plan(monkeypatch, factor, fits):
    # The same seed draws the same objective noise; the final noise is separated by leaving it out the second time.
    from gcon.mechanisms import convex_training

    plan, noisy = release(SeededRandomness(7), plans=250)
    monkeypatch.setattr(convex_training, "rounded_noise", lambda randomness, values, *, scale, spacing: values)
    _, plain = release(SeededRandomness(7), plans=250)
    assert plan.final_noise > 0
    sample = ((noisy - plain) / plan.final_noise * factor).numpy().ravel()
    p_value = scipy.stats.kstest(sample, scipy.stats.norm.cdf).pvalue
    assert bool(p_value > LEVEL) is fits


def test_every_weight_lies_on_the_lattice_of_the_final_noise():
    plan, mechanism = mechanism_of(3)
    released, spacing = mechanism.apply(EDGES, SystemRandomness()), SPACING * math.ulp(plan.final_noise)
    assert torch.equal(released.remainder(spacing), torch.zeros_like(released))
    assert {record["spacing"] for record in mechanism.record["plans"]} == {spacing}
    free = make_plan(plan.budget, loss=plan.loss, num_features=4, num_labelled=30, edge_influence=0.0, ridge=0.5)
    alone = Aggregates(mechanism.aggregates._features, Schemes(restart=1.0, steps=(2,)))  # reads no edge
    exact = ObjectivePerturbation(aggregates=alone, plans=(free,), mask=mechanism.mask, targets=mechanism.targets)
    assert exact.record["spacing"] == 0
    weights = exact.apply(EDGES, SystemRandomness())
    assert not torch.equal(weights.remainder(spacing), torch.zeros_like(weights))


def test_release_is_fresh_every_time():
    _, first = release(SystemRandomness())
    _, second = release(SystemRandomness())
    assert not np.isclose(first.numpy(), second.numpy(), rtol=0, atol=1e-12).any()


def test_no_byte_is_used_twice():
    class Counting:
        source, keeps_promise = "counting", True

        def __init__(self):
            self.taken = 0

        def take(self, count):
            self.taken += count
            return SystemRandomness().take(count)

    randomness = Counting()
    release(randomness, plans=3)
    # Per plan: c x (2 d + 1) normal numbers of the objective, c x d of the final noise, eight bytes each; a few need more.
    least = 3 * (2 * (2 * 4 + 1) + 2 * 4) * 8
    assert least <= randomness.taken <= least + 10 * 16
