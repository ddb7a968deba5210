"""The solver: right derivatives, the exact minimiser, batches equal to single problems, certificates that refuse."""

import math

import numpy as np
import pytest
import scipy.optimize
import torch

from gcon.mechanisms import perturbed_objective
from gcon.mechanisms.certificate_terms import certified_gradient_norm
from gcon.mechanisms.losses import PseudoHuber, SoftMargin
from gcon.mechanisms.perturbed_objective import PerturbedObjectives, minimise
from gcon.mechanisms.samplers.objective_noise import EnclosedNoise

LOSSES = [SoftMargin(3), PseudoHuber(3, 0.1), PseudoHuber(3, 0.5)]


def problem(losses, ridges, *, rows=60, width=5, noise=1.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    aggregates = torch.randn(rows, width, generator=generator, dtype=torch.float64)
    aggregates /= torch.linalg.vector_norm(aggregates, dim=1, keepdim=True)
    targets = torch.nn.functional.one_hot(torch.randint(0, 3, (rows,), generator=generator), 3).double()
    noises = noise * torch.randn(len(losses), 3, width, generator=generator, dtype=torch.float64)
    return PerturbedObjectives(
        aggregates=aggregates,
        targets=targets,
        losses=losses,
        ridges=torch.tensor(ridges, dtype=torch.float64),
        noises=noises,
    )


def value(objectives, index, weights):
    """The perturbed objective written as in the paper: one problem, no batching."""
    scores = objectives.aggregates @ weights.T
    rows = objectives.num_rows
    return (
        objectives.losses[index].value(scores, objectives.targets).sum() / rows
        + objectives.ridges[index] / 2 * weights.square().sum()
        + (objectives.noises[index] * weights).sum() / rows
    )


def certificate(objectives, index, weights):
    return certified_gradient_norm(
        weights,
        aggregates=objectives.aggregates,
        targets=objectives.targets,
        loss=objectives.losses[index],
        ridge=float(objectives.ridges[index]),
        noise=EnclosedNoise(objectives.noises[index], 0.0),
    )


def tolerance(objectives, size=1e-10):
    return torch.full((len(objectives.losses),), size, dtype=torch.float64)


def test_gradient_and_hessian_are_those_of_the_paper_formula():
    objectives = problem(LOSSES, [0.3, 0.02, 1.0])
    weights = torch.randn(3, 3, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    gradient = objectives.gradient(weights.reshape(-1, 5)).reshape(3, 3, 5)
    hessian = objectives.hessian(weights.reshape(-1, 5), torch.arange(9)).reshape(3, 3, 5, 5)
    for index in range(3):
        point = weights[index].clone().requires_grad_(True)
        expected = torch.autograd.functional.jacobian(lambda at, i=index: value(objectives, i, at), point)
        torch.testing.assert_close(gradient[index], expected, rtol=1e-12, atol=1e-13)
        full = torch.autograd.functional.hessian(lambda at, i=index: value(objectives, i, at), point)
        for label in range(3):
            torch.testing.assert_close(hessian[index, label], full[label, :, label], rtol=1e-11, atol=1e-13)
            other = (label + 1) % 3
            assert float(full[label, :, other].abs().max()) == 0  # classes do not interact


def test_hessian_bound_is_above_every_hessian():
    objectives = problem(LOSSES, [0.3, 0.02, 1.0])
    weights = 3 * torch.randn(9, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    gap = objectives.hessian_bound().repeat_interleave(3, dim=0) - objectives.hessian(weights, torch.arange(9))
    assert float(torch.linalg.eigvalsh(gap).min()) > -1e-12


@pytest.mark.parametrize("ridge", [1e-4, 0.01, 0.2, 2.0, 600.0])
@pytest.mark.parametrize("noise", [0.0, 1.0, 50.0])
def test_every_problem_is_certified(ridge, noise):
    objectives = problem(LOSSES, [ridge] * 3, noise=noise)
    weights = minimise(objectives, tolerance(objectives))
    for index in range(3):
        assert certificate(objectives, index, weights[index]) <= 1e-10


def test_batch_equals_problems_one_by_one():
    objectives = problem(LOSSES, [0.3, 0.02, 1.0])
    together = minimise(objectives, tolerance(objectives))
    for index, loss in enumerate(LOSSES):
        alone = PerturbedObjectives(
            aggregates=objectives.aggregates,
            targets=objectives.targets,
            losses=[loss],
            ridges=objectives.ridges[index : index + 1],
            noises=objectives.noises[index : index + 1],
        )
        torch.testing.assert_close(minimise(alone, tolerance(alone))[0], together[index], rtol=0, atol=1e-8)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_minimiser_agrees_with_an_independent_solver(loss):
    objectives = problem([loss], [0.05], noise=3.0)
    ours = minimise(objectives, tolerance(objectives))[0]

    def flat(point):
        at = torch.from_numpy(point.reshape(3, 5)).requires_grad_(True)
        result = value(objectives, 0, at)
        result.backward()
        return float(result.detach()), at.grad.numpy().ravel()

    found = scipy.optimize.minimize(flat, np.zeros(15), jac=True, method="L-BFGS-B", options={"gtol": 1e-12, "ftol": 0})
    np.testing.assert_allclose(ours.numpy().ravel(), found.x, atol=1e-8)


def test_inputs_are_untouched():
    objectives = problem(LOSSES, [0.3, 0.02, 1.0])
    before = [objectives.aggregates.clone(), objectives.targets.clone(), objectives.noises.clone()]
    minimise(objectives, tolerance(objectives))
    for old, new in zip(before, [objectives.aggregates, objectives.targets, objectives.noises], strict=True):
        assert torch.equal(old, new)


def test_distance_from_the_minimiser_is_what_the_certificate_says():
    """Strong convexity: a point with gradient norm g lies within g / ridge of the minimiser."""
    objectives = problem([SoftMargin(3)], [0.1])
    exact = minimise(objectives, tolerance(objectives, 1e-12))[0]
    generator = torch.Generator().manual_seed(4)
    for size in (1e-8, 1e-4, 1.0):
        point = exact + size * torch.randn(exact.shape, generator=generator, dtype=torch.float64)
        distance = float(torch.linalg.vector_norm(point - exact))
        assert distance <= certificate(objectives, 0, point) / 0.1 * (1 + 1e-6)


def test_certificate_is_not_given_to_an_early_stopped_solver(monkeypatch):
    monkeypatch.setattr(perturbed_objective, "MOST_ITERATIONS", 1)
    objectives = problem([SoftMargin(3)], [0.01])
    assert certificate(objectives, 0, minimise(objectives, tolerance(objectives))[0]) > 1e-10


def test_certificate_counts_its_own_rounding():
    """Even at an exact zero of the gradient the certified norm is positive: it is an upper bound."""
    objectives = problem([SoftMargin(3)], [0.1])
    weights = minimise(objectives, tolerance(objectives, 1e-14))[0]
    assert 1e-16 < certificate(objectives, 0, weights) < 1e-12
    assert not math.isnan(certificate(objectives, 0, weights))


def test_one_feature_one_row():
    objectives = PerturbedObjectives(
        aggregates=torch.ones(1, 1, dtype=torch.float64),
        targets=torch.tensor([[1.0, 0.0]], dtype=torch.float64),
        losses=[SoftMargin(2)],
        ridges=torch.tensor([0.5], dtype=torch.float64),
        noises=torch.zeros(1, 2, 1, dtype=torch.float64),
    )
    weights = minimise(objectives, tolerance(objectives))[0]
    # (s(w) - 1)/2 + w/2 = 0, so w = s(-w) = 0.401...
    assert float(weights[0, 0]) == pytest.approx(1 / (1 + math.exp(float(weights[0, 0]))), abs=1e-9)
    assert float(weights[1, 0]) == pytest.approx(-float(weights[0, 0]), abs=1e-9)
