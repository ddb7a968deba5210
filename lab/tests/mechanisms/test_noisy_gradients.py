"""Noisy gradients: what one edge changes, the clipped sum, the noise, and an audit on the worst pair of small graphs.

Tests of chance use the system's randomness; each fails by chance with probability below 1e-6.
"""

import math
from fractions import Fraction
from types import SimpleNamespace

import networkx
import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcon.edges.edge_list import private_edges, public_edges
from gcon.edges.schemes import Schemes, propagate
from gcon.errors import InputError, PlanMismatchError
from gcon.mechanisms.samplers.rounded import SPACING
from gcon.privacy.account import release_once
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness, SystemRandomness
from gcon_lab.mechanisms import noisy_gradients
from gcon_lab.mechanisms.noisy_gradients import (
    GradientPlan,
    NoisyGradients,
    clipped_residuals,
    fixed_directions,
    gradient_plan,
)
from gcon_lab.mechanisms.replaced_pair import replaced_pair_epsilon

LEVEL = 1e-7
ONE_STEP = Schemes(restart=0, steps=(1,))


def by_hand(deviation, *, sampling=1.0, steps=1, clip=1.0, epsilon=1.0):
    """A plan with any noise, also with too little; `GradientPlan` itself refuses to be one."""
    return SimpleNamespace(
        budget=Budget(epsilon, 1e-5), sampling=sampling, steps=steps, clip=clip, standard_deviation=deviation
    )


def on_rows(**options):
    """The mechanism on rows that are handed in where edges would be."""
    return NoisyGradients(rows=lambda rows: rows, **options)


def test_one_edge_changes_two_rows_only():
    """All graphs of up to five nodes, every edge; the symmetric normalisation would change more."""
    generator = torch.Generator().manual_seed(0)
    features = torch.nn.functional.normalize(torch.randn(5, 3, generator=generator, dtype=torch.float64), dim=1)
    more_by_symmetric = 0
    for atlas in networkx.graph_atlas_g()[1:53]:
        size, ends = atlas.number_of_nodes(), [sorted(edge) for edge in atlas.edges]
        for dropped in ends:
            kept = [edge for edge in ends if edge != dropped]
            full, less = (
                public_edges(torch.tensor(some, dtype=torch.int64).reshape(-1, 2).T, size) for some in (ends, kept)
            )
            rows = [propagate(edges, features[:size], ONE_STEP) for edges in (full, less)]
            changed = (rows[0] != rows[1]).any(dim=1).nonzero()[:, 0].tolist()
            assert set(changed) <= set(dropped)
            symmetric = [_symmetric(edges) for edges in (full, less)]
            more_by_symmetric += int((symmetric[0] != symmetric[1]).any(dim=1).sum() > 2)
    assert more_by_symmetric > 0


def _symmetric(edges):
    dense = torch.eye(edges.num_nodes, dtype=torch.float64)
    dense[tuple(edges.edge_index())] = 1
    scale = dense.sum(dim=1).rsqrt()
    return scale[:, None] * dense * scale


def random_case(seed, nodes=7, width=4, classes=3):
    rng = np.random.default_rng(seed)
    rows, weights = torch.from_numpy(rng.standard_normal((nodes, width))), rng.standard_normal((width, classes))
    targets = torch.eye(classes, dtype=torch.float64)[torch.from_numpy(rng.integers(classes, size=nodes))]
    return rows, targets, torch.from_numpy(3 * weights)


def clipped_sum(rows, targets, weights, *, clip):
    return fixed_directions(rows).T @ clipped_residuals(rows, targets, weights, clip=clip)


@given(seed=st.integers(0, 2**32 - 1), clip=st.sampled_from([1e-3, 0.1, 0.7, 1.0, 100.0]))
def test_clipped_sum_is_that_of_single_gradients(seed, clip):
    rows, targets, weights = random_case(seed)
    total = torch.zeros_like(weights)
    for row, target in zip(rows, targets, strict=True):
        leaf = weights.clone().requires_grad_(True)
        torch.nn.functional.cross_entropy((row @ leaf)[None], target[None]).backward()
        gradient = leaf.grad
        total += gradient * min(1.0, clip / float(gradient.norm()))
    # Seven nodes have 23 bits each for direction and residual.
    assert torch.allclose(clipped_sum(rows, targets, weights, clip=clip), total, rtol=0, atol=7 * 2**-20 * clip)


@given(seed=st.integers(0, 2**32 - 1), clip=st.sampled_from([0.05, 0.5, 2.0]), scale=st.sampled_from([1.0, 1e3, 1e-3]))
def test_two_rows_move_the_sum_by_at_most_four_clips(seed, clip, scale):
    rows, targets, weights = random_case(seed)
    changed = rows.clone()
    changed[:2] = scale * torch.from_numpy(np.random.default_rng(seed + 1).standard_normal((2, 4)))
    before, one, both = (
        clipped_sum(some, targets, weights, clip=clip) for some in (rows, torch.cat([changed[:1], rows[1:]]), changed)
    )
    assert float((one - before).norm()) <= 2 * clip * (1 + 1e-9)
    assert float((both - before).norm()) <= 4 * clip * (1 + 1e-9)


@given(
    seed=st.integers(0, 2**32 - 1), clip=st.sampled_from([1e-6, 0.05, 1e6]), size=st.sampled_from([1e-3, 1.0, 1e200])
)
def test_gradients_are_short_and_add_exactly_in_any_order(seed, clip, size):
    """Every node's matrix is at most `clip` long, and float64 adds them as rational numbers would, in any batch."""
    rows, targets, weights = random_case(seed)
    rows[1], rows[2, 0] = 0.0, math.inf
    directions, residuals = fixed_directions(size * rows), clipped_residuals(size * rows, targets, weights, clip=clip)
    lengths = directions.norm(dim=1) * residuals.norm(dim=1)
    assert float(lengths.max()) <= clip * (1 + 1e-12)
    drawn = torch.from_numpy(np.random.default_rng(seed).permutation(7)[:5])
    total = directions[drawn].T @ residuals[drawn]
    for a in range(4):
        for c in range(3):
            products = [Fraction(float(directions[i, a])) * Fraction(float(residuals[i, c])) for i in drawn]
            assert Fraction(float(total[a, c])) == sum(products)


def opposite_graphs():
    """Two graphs of six nodes, one edge {0, 1} apart, that turn the rows of both its ends around.

    Nodes 0 and 1 have the feature (1, 0) and two friends each, whose features add to (-1.5, 0). Alone the mean points
    to the left, together to the right.
    """
    high = math.sqrt(1 - 0.75**2)
    features = torch.tensor(
        [[1, 0], [1, 0], [-0.75, high], [-0.75, -high], [-0.75, high], [-0.75, -high]], dtype=torch.float64
    )
    apart = [[0, 2], [0, 3], [1, 4], [1, 5]]
    return [
        propagate(public_edges(torch.tensor(ends).T, 6), features, ONE_STEP)[:2] for ends in (apart, [*apart, [0, 1]])
    ]


@pytest.mark.parametrize("wide", [1e305, math.inf, math.nan])
def test_a_gradient_that_is_not_finite_adds_nothing(wide):
    """Overflowing scores, and rows that are not finite: the other nodes' gradients are summed as if it were not there."""
    rows, targets, weights = random_case(5)
    broken = rows.clone()
    broken[2] = wide
    others = torch.arange(len(rows)) != 2
    for scale in (1.0, 1e6):
        expected = clipped_sum(rows[others], targets[others], scale * weights, clip=0.5)
        assert bool(torch.isfinite(expected).all())
        assert torch.allclose(clipped_sum(broken, targets, 1e6 * weights, clip=0.5), expected, atol=1e-5) == (
            scale == 1e6
        )
    for number in (math.inf, -math.inf, math.nan):  # weights too
        weights[1, 1] = number
        assert float(clipped_sum(rows, targets, weights, clip=0.5).norm()) <= 7 * 0.5


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_whether_the_release_is_finite_does_not_depend_on_rows(optimiser):
    """Two nodes whose scores overflow or do not, as one edge may decide: the weights are finite either way."""
    plan = gradient_plan(1.0, 1e-5, sampling=1.0, steps=5, clip=1.0)
    mechanism = on_rows(plan=plan, labels=torch.tensor([0, 1]), num_classes=2, learning_rate=1e6, optimiser=optimiser)
    for size in (1.0, 1e300, 1e305):
        rows = size * torch.tensor([[1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
        assert bool(torch.isfinite(mechanism.apply(rows, SystemRandomness())).all())


def test_four_clips_are_reached():
    apart, joined = opposite_graphs()
    assert torch.allclose(apart, torch.tensor([[-1 / 6, 0.0]] * 2, dtype=torch.float64))
    assert torch.allclose(joined, torch.tensor([[1 / 8, 0.0]] * 2, dtype=torch.float64))
    targets, weights = torch.tensor([[1.0, 0.0]] * 2, dtype=torch.float64), torch.zeros(2, 2, dtype=torch.float64)
    sums = [clipped_sum(rows, targets, weights, clip=0.05) for rows in (apart, joined)]
    assert float((sums[0] - sums[1]).norm()) == pytest.approx(4 * 0.05, rel=1e-6)


def accepted(sample, deviation):
    return bool(scipy.stats.kstest(sample, scipy.stats.norm(scale=deviation).cdf).pvalue > LEVEL)


@pytest.mark.parametrize("sampling", [1.0, 0.2])
def test_noise_of_one_step_at_the_right_scale_only(sampling):
    """Zero rows have no gradient: the weights are noise, of standard deviation rate * sigma / (q n_0)."""
    plan = gradient_plan(1.0, 1e-5, sampling=sampling, steps=1, clip=0.5)
    assert replaced_pair_epsilon(sampling, plan.standard_deviation / 0.5, 1, 1e-5) <= 1.0
    mechanism = on_rows(plan=plan, labels=torch.zeros(5, dtype=torch.int64), num_classes=4, learning_rate=0.3)
    sample = mechanism.apply(torch.zeros(5, 1500, dtype=torch.float64), SystemRandomness()).flatten().numpy()
    deviation = 0.3 * plan.standard_deviation / (sampling * 5)
    assert accepted(sample, deviation)
    assert not accepted(sample, deviation * 2 / 3)
    assert not accepted(sample, deviation * 3 / 2)


def test_every_step_has_noise_of_its_own():
    """Ten steps of pure noise add in squares."""
    mechanism = on_rows(plan=by_hand(2.0, steps=10), labels=torch.tensor([0]), num_classes=4)
    sample = mechanism.apply(torch.zeros(1, 1500, dtype=torch.float64), SystemRandomness()).flatten().numpy()
    assert accepted(sample, 2.0 * math.sqrt(10))
    assert not accepted(sample, 2.0 * 10)


def test_an_empty_batch_still_takes_a_noisy_step():
    """At q = 1e-9 nobody is drawn (but for a chance of 1e-8), and the weights are noise all the same."""
    plan = by_hand(1.0, sampling=1e-9)
    mechanism = on_rows(plan=plan, labels=torch.zeros(5, dtype=torch.int64), num_classes=4, learning_rate=5e-9)
    sample = mechanism.apply(torch.ones(5, 1000, dtype=torch.float64), SystemRandomness()).flatten().numpy()
    assert accepted(sample, 1.0)
    assert not accepted(sample, 1.5)


def test_sampling_rate_and_constant_denominator():
    """Without noise one step of n_0 equal gradients is (number drawn) / (q n_0) of one of them: a binomial count."""
    nodes, sampling = 20_000, 0.3
    plan = GradientPlan(budget=Budget(math.inf, 0.0), sampling=sampling, steps=1, clip=10.0, standard_deviation=0.0)
    mechanism = on_rows(plan=plan, labels=torch.zeros(nodes, dtype=torch.int64), num_classes=2)
    weights = mechanism.apply(torch.ones(nodes, 1, dtype=torch.float64), SystemRandomness())
    count = float(weights[0, 0]) / 0.5 * sampling * nodes
    assert count == pytest.approx(round(count), abs=1e-6)
    assert scipy.stats.binomtest(round(count), nodes, sampling).pvalue > LEVEL


def test_without_noise_it_is_gradient_descent():
    """Infinite epsilon and q = 1, with sgd and adam: the same as autograd with torch's optimisers."""
    rows, targets, _ = random_case(3)
    labels = targets.argmax(dim=1)
    plan = gradient_plan(math.inf, 1e-5, sampling=1.0, steps=30, clip=10.0)
    for optimiser, kind in (("sgd", torch.optim.SGD), ("adam", torch.optim.Adam)):
        mechanism = on_rows(plan=plan, labels=labels, num_classes=3, learning_rate=0.1, optimiser=optimiser)
        weights = torch.zeros(4, 3, dtype=torch.float64, requires_grad=True)
        optimizer = kind([weights], lr=0.1)
        for _ in range(30):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(rows @ weights, labels).backward()
            optimizer.step()
        found = mechanism.apply(rows, SystemRandomness())
        assert found.dtype == torch.float64
        assert torch.allclose(found, weights.detach(), rtol=0, atol=1e-4)


def drawn_counts(nodes, *, sampling, steps):
    """How often every node was drawn, read off the weights: node i alone moves row i, by `clip` each time."""
    plan = gradient_plan(math.inf, 1e-5, sampling=sampling, steps=steps, clip=1e-3)
    mechanism = on_rows(plan=plan, labels=torch.zeros(nodes, dtype=torch.int64), num_classes=2)
    weights = mechanism.apply(torch.eye(nodes, dtype=torch.float64), SystemRandomness())
    counts = weights[:, 0] * math.sqrt(2) / 1e-3 * sampling * nodes
    assert torch.allclose(counts, counts.round(), atol=1e-3)
    return counts.round().numpy()


def plausible(counts, size, sampling):
    """Whether the variance of binomial counts is right (chi-square; a binomial's tails are lighter)."""
    statistic = float(((counts - size * sampling) ** 2).sum() / (size * sampling * (1 - sampling)))
    return bool(
        scipy.stats.chi2(len(counts)).cdf(statistic) > LEVEL and scipy.stats.chi2(len(counts)).sf(statistic) > LEVEL
    )


def test_every_step_draws_a_batch_of_its_own():
    """A node is in a binomial number of steps; with one batch for all steps it would be in none or in all."""
    counts = drawn_counts(800, sampling=0.4, steps=20)
    assert plausible(counts, 20, 0.4)
    assert not plausible(np.where(counts > 8, 20, 0), 20, 0.4)


def test_batches_have_no_fixed_size():
    """Nodes are drawn independently: the size of a batch is binomial too."""
    sizes = np.array([drawn_counts(100, sampling=0.4, steps=1).sum() for _ in range(300)])
    assert plausible(sizes, 100, 0.4)
    assert not plausible(np.full(300, 40), 100, 0.4)


# --- what the optimiser sees ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("optimiser", "kind"), [("sgd", torch.optim.SGD), ("adam", torch.optim.Adam)])
def test_the_weights_follow_from_noisy_sums_alone(monkeypatch, optimiser, kind):
    """The noisy sums of all steps, given to torch's optimiser, lead to the same weights: no clean sum is read."""
    seen = []
    keep = noisy_gradients.rounded_noise

    def recording(*arguments, **options):
        seen.append(keep(*arguments, **options))
        return seen[-1]

    monkeypatch.setattr(noisy_gradients, "rounded_noise", recording)
    rows, targets, _ = random_case(8)
    plan = gradient_plan(4.0, 1e-3, sampling=0.5, steps=12, clip=0.5)
    mechanism = on_rows(plan=plan, labels=targets.argmax(dim=1), num_classes=3, learning_rate=0.2, optimiser=optimiser)
    found = mechanism.apply(rows, SystemRandomness())
    weights = torch.zeros(4, 3, dtype=torch.float64, requires_grad=True)
    optimizer = kind([weights], lr=0.2)
    for noisy in seen:
        weights.grad = noisy / (0.5 * len(rows))
        optimizer.step()
    assert len(seen) == 12
    assert torch.allclose(found, weights.detach(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_every_step_is_rounded_to_the_lattice(optimiser):
    """Steps of one node at rate 1: the weights are minus a sum of lattice points. Adam's first step forgets the size."""
    plan = gradient_plan(1.0, 1e-5, sampling=1.0, steps=3, clip=0.3)
    mechanism = on_rows(plan=plan, labels=torch.tensor([0]), num_classes=3, optimiser=optimiser)
    rows = torch.from_numpy(np.random.default_rng(0).standard_normal((1, 50)))
    weights = mechanism.apply(rows, SystemRandomness())
    on_lattice = torch.equal(weights.remainder(SPACING * math.ulp(plan.standard_deviation)), torch.zeros_like(weights))
    assert on_lattice == (optimiser == "sgd")
    assert mechanism.record["spacing"] == SPACING * math.ulp(plan.standard_deviation)


def measured(deviation, *, runs=2_000, sampling=0.7, steps=2, delta=0.3, clip=0.05, cut=1.8, optimiser="sgd"):
    """Clopper-Pearson lower bound on epsilon (each side fails with probability 1e-7) on the worst pair of graphs."""
    plan = by_hand(clip * deviation, sampling=sampling, steps=steps, clip=clip)
    mechanism = on_rows(plan=plan, labels=torch.tensor([0, 0]), num_classes=2, learning_rate=0.01, optimiser=optimiser)
    hits = []
    for rows in opposite_graphs():
        # The weights along the gradients' common direction, in units of clip: number of ends drawn, plus noise.
        found = torch.stack([mechanism.apply(rows, SystemRandomness())[0] for _ in range(runs)])
        along = (found @ torch.tensor([-1.0, 1.0], dtype=torch.float64)) / math.sqrt(2) * sampling * 2 / 0.01 / clip
        hits.append(int((along > cut).sum()))
    low = scipy.stats.beta.ppf(LEVEL, max(hits), runs - max(hits) + 1)
    high = scipy.stats.beta.isf(LEVEL, min(hits) + 1, runs - min(hits))
    return math.log(max(low - delta, 1e-9) / high)


@pytest.mark.slow
def test_audit_stays_below_epsilon_and_catches_half_the_noise():
    """At half the noise the bound passes epsilon with probability above 1 - 1e-6 (binomial tails at a fixed cut).

    The large delta keeps the audit short: at the right noise the same event is worth an epsilon of 1.37.
    """
    noise = gradient_plan(1.5, 0.3, sampling=0.7, steps=2, clip=1.0).standard_deviation
    assert 0 < measured(noise) <= 1.5
    assert measured(noise / 2) > 1.5


@pytest.mark.slow
def test_audit_with_adam():
    """One step of Adam keeps the signs of the noisy sum: those of two entries tell the graphs apart best."""
    noise = gradient_plan(1.5, 0.3, sampling=1.0, steps=1, clip=1.0).standard_deviation
    options = {
        "sampling": 1.0,
        "steps": 1,
        "cut": 10.0,
        "optimiser": "adam",
        "runs": 1_000,
    }  # both signs right: 57; one: 0
    assert measured(noise, **options) <= 1.5
    assert measured(noise / 2, **options) > 1.5


def test_record_and_distance():
    plan = gradient_plan(1.0, 1e-5, sampling=1.0, steps=100, clip=0.1)
    mechanism = on_rows(plan=plan, labels=torch.tensor([0, 1]), num_classes=2)
    assert mechanism.gaussian_distance == pytest.approx(0.4 * 10 / plan.standard_deviation)
    assert mechanism.record["standard_deviation"] == plan.standard_deviation
    assert mechanism.budget == Budget(1.0, 1e-5)
    sampled = on_rows(plan=by_hand(1.0, sampling=0.5), labels=torch.tensor([0]), num_classes=2)
    assert sampled.gaussian_distance is None


def test_rows_are_computed_from_opened_edges_and_paid_once():
    features, ledger = torch.eye(4, dtype=torch.float64), MemoryLedger("path")
    plan = gradient_plan(1.0, 1e-5, sampling=1.0, steps=3, clip=0.5)
    seen = []

    def rows(edges):
        seen.append(ledger.total())
        return propagate(edges, features, ONE_STEP)[:3]

    mechanism = NoisyGradients(plan=plan, rows=rows, labels=torch.tensor([0, 1, 1]), num_classes=2)
    private, _ = private_edges(torch.tensor([[0, 1, 2], [1, 2, 3]]), 4)
    released = release_once(mechanism, private, ledger=ledger, randomness=SystemRandomness(), purpose="test")
    assert seen == [Budget(1.0, 1e-5)] == [ledger.total()]  # once, and paid before
    assert released.value.shape == (4, 2)
    assert released.receipt.plan["standard_deviation"] == plan.standard_deviation


def test_refusals():
    for options in (
        {"learning_rate": 0.0},
        {"learning_rate": 1.1e6},
        {"optimiser": "lbfgs"},
        {"labels": torch.empty(0, dtype=torch.int64)},
    ):
        with pytest.raises(InputError):
            on_rows(**{"plan": by_hand(1.0), "labels": torch.tensor([0]), "num_classes": 2, **options})
    with pytest.raises(PlanMismatchError):
        on_rows(plan=by_hand(1.0), labels=torch.tensor([0]), num_classes=2).apply(
            torch.zeros(2, 3), SeededRandomness(0)
        )
