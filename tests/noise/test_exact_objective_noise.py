"""The noise of perturbed objectives is real noise: what float64 holds of it lies within the distance that the certificate counts.

Float64 numbers that stand for noise reach 8.2 standard deviations and no farther, whatever further bits say; these tests would
have failed with them.
"""

import math

import pytest
import torch
from mpmath.ctx_mp import MPContext

from gcon.edges.edge_list import public_edges
from gcon.edges.schemes import Schemes
from gcon.errors import NoCertificateError
from gcon.mechanisms.aggregates import Aggregates
from gcon.mechanisms.certificate_terms import certified_gradient_norm
from gcon.mechanisms.convex_training import certified_weights
from gcon.mechanisms.losses import SoftMargin
from gcon.mechanisms.objective_perturbation import ObjectivePerturbation
from gcon.mechanisms.objective_plan import make_plan
from gcon.mechanisms.samplers.objective_noise import (
    EnclosedNoise,
    gaussian_objective_noise,
    likely_error,
    likely_gaussian_error,
    objective_noise,
)
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import SeededRandomness, SystemRandomness

EDGES = public_edges(torch.stack([torch.arange(29), torch.arange(1, 30)]), 30)
MORE_BITS = 8  # bytes of a uniform number that are drawn where 52 bits do not decide


class Tail:
    """The first 52 bits of every radius are 0, of every angle some number; the bits that follow are random."""

    source, keeps_promise = "scripted", False

    def __init__(self, seed):
        self._further = SeededRandomness(seed)

    def take(self, count):
        return self._further.take(count) if count == MORE_BITS else bytes(count // 2) + b"\x01" * (count // 2)


class Recording:
    """Remembers what was drawn."""

    source, keeps_promise = "recording", False

    def __init__(self, source):
        self._source, self.first, self.more = source, None, []

    def take(self, count):
        drawn = self._source.take(count)
        if self.first is None:
            self.first = drawn
        else:
            self.more.append(int.from_bytes(drawn, "little"))
        return drawn


def real_noise(recorded, *, rate, width, classes):
    """From the recorded first 52 bits, each continued by the middle of what is left: three hundred digits of it."""
    library = MPContext()
    library.dps = 300
    count = classes * (2 * width + 1)
    draws = -(-count // 2)
    words = [int.from_bytes(recorded.first[8 * place : 8 * place + 8], "little") >> 12 for place in range(2 * draws)]
    uniforms = [(library.mpf(word) + 0.5) / 2**52 for word in words]
    radii = [library.sqrt(-2 * library.log(first)) for first in uniforms[:draws]]
    angles = [2 * library.pi * second for second in uniforms[draws:]]
    normals = [radius * library.cos(angle) for radius, angle in zip(radii, angles, strict=True)]
    normals += [radius * library.sin(angle) for radius, angle in zip(radii, angles, strict=True)]
    rows = [normals[row * (2 * width + 1) :][: 2 * width + 1] for row in range(classes)]
    lengths = [library.sqrt(sum(number**2 for number in row[: width + 1])) for row in rows]
    return [[length * number / rate for number in row[width + 1 :]] for row, length in zip(rows, lengths, strict=True)]


@pytest.mark.parametrize("seed", range(3))
def test_the_real_noise_lies_within_the_distance_that_is_counted(seed):
    rate, width, classes = 0.37, 5, 3
    recorded = Recording(SeededRandomness(seed))
    drawn = objective_noise(recorded, noise_rate=rate, num_features=width, num_classes=classes)
    assert not recorded.more  # 52 bits decided everything, so their continuation is free
    real = real_noise(recorded, rate=rate, width=width, classes=classes)
    distance = math.sqrt(
        sum(
            float(exact - drawn.matrix[row, column].item()) ** 2
            for row, exacts in enumerate(real)
            for column, exact in enumerate(exacts)
        )
    )
    assert 0 < distance <= drawn.error
    assert drawn.error < 100 * distance  # and it is no idle bound


def test_bits_beyond_the_first_52_decide_where_they_matter():
    """Beyond 8.2 deviations float64 noise had a single value; the real law goes on."""
    first, second = (
        gaussian_objective_noise(Tail(seed), scale=1.0, num_features=4, num_classes=1).matrix for seed in (1, 2)
    )
    assert float(first.abs().max()) > 8.3
    assert not torch.equal(first, second)
    first, second = (
        objective_noise(Tail(seed), noise_rate=1.0, num_features=4, num_classes=1).matrix for seed in (1, 2)
    )
    assert not torch.equal(first, second)


def test_released_weights_follow_bits_beyond_the_first_52():
    released = [mechanism(Budget(1.0, 1e-12)).apply(EDGES, Tail(seed)) for seed in (1, 2)]
    assert not torch.equal(*released)


@pytest.mark.parametrize("width", [1, 4, 60])
@pytest.mark.parametrize("rate", [1e-3, 50.0])
def test_the_plan_counts_a_distance_that_draws_do_not_exceed(width, rate):
    allowed = math.sqrt(7) * likely_error(rate, width)
    for _ in range(20):
        drawn = objective_noise(SystemRandomness(), noise_rate=rate, num_features=width, num_classes=7)
        assert 0 < drawn.error <= allowed
        drawn = gaussian_objective_noise(SystemRandomness(), scale=1 / rate, num_features=width, num_classes=7)
        assert 0 < drawn.error <= math.sqrt(7) * likely_gaussian_error(1 / rate, width)


def test_the_certificate_counts_the_distance():
    plan, kept = plan_for(Budget(1.0, 1e-5)), mechanism(Budget(1.0, 1e-5))
    matrix = torch.ones(2, 4, dtype=torch.float64)

    def solved(error):
        return certified_weights(
            (plan,),
            aggregates=kept.aggregates.of(EDGES),
            mask=kept.mask,
            targets=kept.targets,
            noises=[EnclosedNoise(matrix, error)],
        )

    (weights,) = solved(0.0)
    norms = [
        certified_gradient_norm(
            weights,
            aggregates=kept.aggregates.of(EDGES),
            targets=kept.targets,
            loss=plan.loss,
            ridge=plan.total_ridge,
            noise=EnclosedNoise(matrix, error),
        )
        for error in (0.0, 3.0)
    ]
    assert norms[1] - norms[0] == pytest.approx(3.0 / 30)
    with pytest.raises(NoCertificateError):
        solved(31 * plan.tolerance)


def plan_for(budget):
    return make_plan(budget, loss=SoftMargin(2), num_features=4, num_labelled=30, edge_influence=0.4, ridge=0.5)


def mechanism(budget):
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(30, 4, generator=generator, dtype=torch.float64)
    features /= 2 * torch.linalg.vector_norm(features, dim=1, keepdim=True)
    return ObjectivePerturbation(
        aggregates=Aggregates(features, Schemes(restart=0.8, steps=(2,))),
        plans=(plan_for(budget),),
        mask=torch.ones(30, dtype=torch.bool),
        targets=torch.nn.functional.one_hot(torch.arange(30) % 2, 2).double(),
    )
