"""Noisy sums over neighbours: sensitivity on every small graph, the noise's law and scale, what is charged, an audit.

Statistical tests draw from the operating system; each has a false-alarm probability below 1e-6.
"""

import math

import networkx
import numpy as np
import pytest
import scipy.special
import scipy.stats
import torch

from gcon.edges.edge_list import private_edges, public_edges
from gcon.errors import PlanMismatchError
from gcon.mechanisms.composition import gaussian_total
from gcon.mechanisms.gaussian_curve import gaussian_epsilon
from gcon.mechanisms.samplers.rounded import EXACT_GAUSSIAN, SPACING
from gcon.privacy.account import spend, transcript
from gcon.privacy.budget import NOTHING, Budget
from gcon.privacy.ledger import MemoryLedger, Outcome
from gcon.privacy.ledger_file import FileLedger
from gcon.privacy.randomness import SeededRandomness, SystemRandomness
from gcon_lab.audits.cases.case import changed
from gcon_lab.audits.empirical import epsilon_bound
from gcon_lab.mechanisms.neighbour_sums import gaussian_sums_plan, laplace_sums_plan
from gcon_lab.mechanisms.plain_sums import neighbour_sums
from gcon_lab.mechanisms.samplers import EXACT_LAPLACE, laplaces, standard_normals

LEVEL = 1e-6


def edges_of(pairs, size):
    return public_edges(torch.tensor(list(pairs), dtype=torch.int64).reshape(-1, 2).T, size)


def unit_rows(size, width, generator):
    rows = torch.randn(size, width, generator=generator, dtype=torch.float64)
    return rows / rows.norm(dim=1, keepdim=True)


def one_hot_rows(size, width, generator):
    return torch.eye(width, dtype=torch.float64)[torch.randint(width, (size,), generator=generator)]


def all_rounds(plan, rows, edges):
    """The same rows in every round."""
    return [plan.sums_of(rows).apply(edges, SystemRandomness()) for _ in range(plan.rounds)]


# --- sensitivity ------------------------------------------------------------------------------------------------------


def graphs():
    """All graphs of one to five nodes, and some larger ones."""
    yield from networkx.graph_atlas_g()[1:53]
    for seed in range(3):
        yield networkx.gnp_random_graph(30, 0.1 + 0.2 * seed, seed=seed)
    yield networkx.star_graph(60)


def test_one_edge_moves_two_sums_by_one_row_each():
    generator = torch.Generator().manual_seed(0)
    seen = 0
    for graph in graphs():
        size, pairs = graph.number_of_nodes(), list(graph.edges)
        unit, counted = unit_rows(size, 3, generator), one_hot_rows(size, 4, generator)
        shorter = unit * torch.rand(size, 1, generator=generator, dtype=torch.float64)
        full = [neighbour_sums(edges_of(pairs, size), rows) for rows in (unit, shorter, counted)]
        for dropped, (u, v) in enumerate(pairs):
            less = edges_of(pairs[:dropped] + pairs[dropped + 1 :], size)
            moved = [
                whole - neighbour_sums(less, rows) for whole, rows in zip(full, (unit, shorter, counted), strict=True)
            ]
            for change in moved:
                assert set(change.abs().sum(dim=1).nonzero()[:, 0].tolist()) <= {u, v}
            assert float(moved[0].norm()) == pytest.approx(math.sqrt(2), abs=1e-12)  # reached by all unit rows
            assert float(moved[1].norm()) <= math.sqrt(2)
            assert float(moved[2].abs().sum()) == 2
            assert torch.allclose(moved[1][u], shorter[v], atol=1e-12)
            assert torch.allclose(moved[1][v], shorter[u], atol=1e-12)
            seen += 1
    assert seen > 400


def test_sums_are_those_of_the_dense_matrix():
    graph = networkx.gnp_random_graph(25, 0.2, seed=5)
    rows = unit_rows(25, 4, torch.Generator().manual_seed(1))
    dense = torch.from_numpy(networkx.to_numpy_array(graph)) @ rows
    assert torch.allclose(neighbour_sums(edges_of(graph.edges, 25), rows), dense, atol=1e-12)


# --- noise ------------------------------------------------------------------------------------------------------------

PLANS = {
    "gaussian": (gaussian_sums_plan(1.0, 1e-5, 2), scipy.stats.norm),
    "laplace": (laplace_sums_plan(1.0, 2), scipy.stats.laplace),
}


@pytest.fixture(scope="module", params=PLANS)
def noise(request):
    """The noise of both rounds, read off what the mechanism gives out: twice 20,000 numbers."""
    plan, law = PLANS[request.param]
    graph = networkx.gnp_random_graph(2_000, 0.002, seed=1)
    edges = edges_of(graph.edges, 2_000)
    rows = one_hot_rows(2_000, 10, torch.Generator().manual_seed(2))
    exact = neighbour_sums(edges, rows)
    drawn = [(noisy - exact).flatten().numpy() for noisy in all_rounds(plan, rows, edges)]
    return plan, law, drawn


def test_noise_has_the_right_law_at_the_right_scale_only(noise):
    plan, law, drawn = noise
    for sample in drawn:
        assert scipy.stats.kstest(sample, law(scale=plan.scale).cdf).pvalue > LEVEL / 2
        for factor in (2 / 3, 3 / 2):
            assert scipy.stats.kstest(sample, law(scale=factor * plan.scale).cdf).pvalue < LEVEL


def test_the_two_laws_are_told_apart(noise):
    plan, law, drawn = noise
    other = {scipy.stats.norm: scipy.stats.laplace, scipy.stats.laplace: scipy.stats.norm}[law]
    # The other law, with the same standard deviation.
    scale = plan.scale * float(law.std() / other.std())
    assert scipy.stats.kstest(drawn[0], other(scale=scale).cdf).pvalue < LEVEL


def test_rounds_and_entries_draw_independent_noise(noise):
    _, _, (first, second) = noise
    # Two independent lattice points are equal with probability 1e-4 at most: 2 of 20,000 expected, 200 never.
    for one, other in ((first, second), (first[:-1], first[1:]), (first[:-10], first[10:])):
        assert np.mean(one == other) < 0.01
    assert scipy.stats.spearmanr(first, second).pvalue > LEVEL / 3
    assert scipy.stats.spearmanr(first[:-1], first[1:]).pvalue > LEVEL / 3
    columns = first.reshape(2_000, 10)
    assert scipy.stats.spearmanr(columns[:, 0], columns[:, 1]).pvalue > LEVEL / 3


def test_two_runs_differ():
    rows, edges = torch.eye(20, dtype=torch.float64), edges_of([(0, 1), (2, 3)], 20)
    for plan, _ in PLANS.values():
        first, second = (torch.cat(all_rounds(plan, rows, edges)) for _ in range(2))
        assert float((first == second).double().mean()) < 0.02  # 16 of 800; at most one in 8,000 is expected


def spending(plan, ledger, randomness=None):
    private, _ = private_edges(torch.tensor([[0, 1], [1, 2]]), 3)
    return spend(private, plan, ledger=ledger, randomness=randomness or SystemRandomness(), purpose="test")


def test_rows_of_a_later_round_may_come_from_earlier_ones():
    plan, rows, ledger = gaussian_sums_plan(1.0, 1e-5, 3), torch.eye(3, dtype=torch.float64), MemoryLedger("path")
    out = []
    with transcript() as lines, spending(plan, ledger) as account:
        for _ in range(plan.rounds):
            out.append(account.release(plan.sums_of(rows)))
            rows = out[-1] / out[-1].norm(dim=1, keepdim=True)
        with pytest.raises(PlanMismatchError, match="3 round"):
            account.release(plan.sums_of(rows))
    assert all(torch.equal(line.value, sums) for line, sums in zip(lines, out, strict=True))
    assert ledger.total() == Budget(1.0, 1e-5)


def test_a_plan_pays_for_its_own_sums():
    plan, ledger = gaussian_sums_plan(1.0, 1e-5, 2), MemoryLedger("path")
    weak, longer = changed(plan, scale=plan.scale / 2), plan.sums_of(torch.eye(3))
    object.__setattr__(longer, "rows", 2 * torch.eye(3))
    grown = plan.sums_of(torch.eye(3))
    grown.rows.mul_(2)
    for mechanism in (weak.sums_of(torch.eye(3)), laplace_sums_plan(1.0, 2).sums_of(torch.eye(3)), longer, grown):
        with spending(plan, ledger) as account, pytest.raises(PlanMismatchError):
            account.release(mechanism)
    assert {entry.outcome for entry in ledger.entries()} == {Outcome.WITHDRAWN}
    assert ledger.total() == NOTHING


def test_rows_are_those_of_the_moment_when_the_round_was_made():
    plan, rows, edges = gaussian_sums_plan(math.inf, 1e-5, 1), torch.eye(3), edges_of([(0, 1), (1, 2)], 3)
    sums = plan.sums_of(rows)
    rows *= 1000
    assert torch.equal(sums.apply(edges, SystemRandomness()), neighbour_sums(edges, torch.eye(3).double()))


def test_infinite_epsilon_gives_exact_sums():
    rows, edges = torch.eye(5, dtype=torch.float64), edges_of([(0, 1), (1, 2), (3, 1)], 5)
    for plan in (gaussian_sums_plan(math.inf, 1e-5, 2), laplace_sums_plan(math.inf, 2)):
        for sums in all_rounds(plan, rows, edges):
            assert torch.equal(sums, neighbour_sums(edges, rows))
        assert math.isinf(plan.budget.epsilon)


def test_rows_that_are_too_long_are_refused():
    edges = edges_of([(0, 1)], 2)
    diagonal = torch.tensor([[0.6, 0.8], [1.0, 0.0]], dtype=torch.float64)
    for law, (plan, _) in PLANS.items():
        for rows in (
            diagonal * 1.001,
            diagonal * math.nan,
            diagonal * math.inf,
            *([] if law == "gaussian" else [diagonal]),
        ):
            with pytest.raises(PlanMismatchError, match="length at most 1"):
                plan.sums_of(rows)
    PLANS["gaussian"][0].sums_of(diagonal).apply(edges, SystemRandomness())


def test_rows_are_checked_in_every_round_and_what_was_released_stays_charged():
    plan, ledger = laplace_sums_plan(1.0, 2), MemoryLedger("path")
    with spending(plan, ledger) as account:
        account.release(plan.sums_of(torch.eye(3)))
        with pytest.raises(PlanMismatchError, match="length at most 1"):
            plan.sums_of(2 * torch.eye(3))
    assert ledger.total() == Budget(1.0, 0.0)


# --- low bits ---------------------------------------------------------------------------------------------------------


def noise_at(law, places, positive):
    """The noise that the sampler makes of the grid points (k + 1/2) / 2^52."""
    uniforms = (places + 0.5) * 2.0**-52
    if law == "gaussian":
        return scipy.special.ndtri(uniforms)
    return np.where(positive, 1.0, -1.0) * -torch.from_numpy(uniforms).log().numpy()


def possible(released, truth, plan, rounding):
    """The attack: which released numbers some random bits could have led to, if the sum under the noise were `truth`."""
    scaled = (released - truth) / plan.scale
    tails = scipy.special.ndtr(scaled) if plan.law == "gaussian" else np.exp(-np.abs(scaled))
    nearest, found = np.round(tails * 2.0**52 - 0.5), np.zeros(len(released), dtype=bool)
    for offset in range(-60, 61):
        places = np.clip(nearest + offset, 0, 2.0**52 - 1)
        candidates = truth + plan.scale * noise_at(plan.law, places, scaled >= 0)
        found |= rounding(torch.from_numpy(candidates)).numpy() == released
    return found


@pytest.mark.parametrize(("law", "sums"), [("gaussian", (0.0, 0.25)), ("laplace", (0.0, 1.0)), ("laplace", (7.0, 8.0))])
def test_low_bits_tell_nothing(law, sums):
    """Numbers that only one of two sums can lead to: most of them without rounding, none on the lattice."""
    plan, draw = PLANS[law][0], {"gaussian": standard_normals, "laplace": laplaces}[law]
    bare = (sums[0] + plan.scale * draw(SystemRandomness(), 2_000)).numpy()
    assert possible(bare, sums[0], plan, lambda noisy: noisy).mean() > 0.99
    assert possible(bare, sums[1], plan, lambda noisy: noisy).mean() < 0.8
    # A star: the sum of its centre, over one leaf or seven, is `sums[0]`.
    leaves = max(1, round(sums[0]))
    edges = edges_of([(0, leaf) for leaf in range(1, leaves + 1)], leaves + 1)
    rows = torch.full((leaves + 1, 1), sums[0] / leaves, dtype=torch.float64)
    outcomes = [all_rounds(plan, rows, edges) for _ in range(300)]
    released = torch.stack([noisy[0, 0] for outcome in outcomes for noisy in outcome]).numpy()
    spacing = SPACING * math.ulp(plan.scale)
    for truth in sums:
        assert possible(released, truth, plan, lambda noisy: (noisy / spacing).round() * spacing).all()
    assert plan.public_record(())["spacing"] == spacing
    assert plan.public_record(())["noise"] == {"gaussian": EXACT_GAUSSIAN, "laplace": EXACT_LAPLACE}[law]


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("factor", [1.0, 37.3, 1e-3])
def test_every_released_number_lies_on_the_public_lattice(law, factor):
    plan = changed(PLANS[law][0], rounds=3, scale=factor * PLANS[law][0].scale)
    rows = torch.full((200, 5), 0.1, dtype=torch.float64)
    edges = edges_of(networkx.gnp_random_graph(200, 0.05, seed=1).edges, 200)
    for noisy in all_rounds(plan, rows, edges):
        assert torch.equal(noisy.remainder(SPACING * math.ulp(plan.scale)), torch.zeros_like(noisy))


# --- the ledger -------------------------------------------------------------------------------------------------------


def release(plan, ledger, randomness=None):
    """The receipt for all rounds."""
    with spending(plan, ledger, randomness) as account:
        for _ in range(plan.rounds):
            account.release(plan.sums_of(torch.eye(3)))
    return account.receipt


def test_ledger_knows_the_gaussian_distance_and_adds_it_exactly(tmp_path):
    delta, path = 1e-5, tmp_path / "pair.ledger"
    plans = [gaussian_sums_plan(epsilon, delta, rounds) for epsilon, rounds in ((1.0, 2), (0.5, 1), (2.0, 3))]
    memory, file = MemoryLedger("pair"), FileLedger(path, data_set="pair")
    for plan in plans:
        for ledger in (memory, file):
            receipt = release(plan, ledger)
            assert receipt.keeps_promise
            assert receipt.plan["scale"] == plan.scale
    closed_form = gaussian_epsilon(math.hypot(*(math.sqrt(2 * plan.rounds) / plan.scale for plan in plans)), delta)
    for ledger in (memory, FileLedger(path)):
        assert [entry.request.gaussian_distance for entry in ledger.entries()] == [plan.distance for plan in plans]
        assert ledger.total() == Budget(3.5, 3e-5)
        total = gaussian_total(ledger.entries(), extra_delta=delta)
        assert total.epsilon == pytest.approx(closed_form, rel=1e-6)
        assert total.delta == delta
        assert total.epsilon < 3.5


def test_one_release_costs_the_same_under_both_rules():
    ledger = MemoryLedger("pair")
    release(gaussian_sums_plan(1.0, 1e-5, 2), ledger)
    assert gaussian_total(ledger.entries(), extra_delta=1e-5).epsilon == pytest.approx(1.0, rel=1e-6)


def test_laplace_noise_claims_no_gaussian_distance():
    ledger = MemoryLedger("pair")
    release(laplace_sums_plan(1.0, 2), ledger)
    (entry,) = ledger.entries()
    assert entry.request.gaussian_distance is None
    assert entry.request.cost == Budget(1.0, 0.0)


def test_noise_from_a_seed_is_charged_as_infinite():
    for plan, _ in PLANS.values():
        ledger = MemoryLedger("pair")
        receipt = release(plan, ledger, SeededRandomness(3))
        (entry,) = ledger.entries()
        assert math.isinf(ledger.total().epsilon)
        assert entry.request.gaussian_distance is None
        assert not receipt.keeps_promise


# --- audit ------------------------------------------------------------------------------------------------------------


def likelihood_ratio(law, outcome, change):
    """The logarithm of the ratio of densities, up to a positive factor; `outcome` has the sums without the edge taken off."""
    if law == "gaussian":
        return (outcome * change).sum(dim=(-2, -1))
    return (outcome.abs() - (outcome - change).abs()).sum(dim=(-2, -1))


def pair_scores(plan, runs):
    """`runs` runs on two nodes with and without their edge, rows (1) and (1).

    One graph of `runs` separate pairs is `runs` independent runs: neither sums nor noise join the pairs.
    """
    nodes = torch.arange(2 * runs)
    rows = torch.ones(2 * runs, 1, dtype=torch.float64)
    change = torch.ones(plan.rounds, 2, dtype=torch.float64)
    for pairs in (nodes.reshape(-1, 2), nodes[:0].reshape(-1, 2)):
        out = all_rounds(plan, rows, public_edges(pairs.T, 2 * runs))
        outcome = torch.stack(out).reshape(plan.rounds, runs, 2).transpose(0, 1)
        yield likelihood_ratio(plan.law, outcome, change).numpy()


def halved(plan):
    """The same plan with half the noise; `SumsPlan` itself refuses to be one."""
    return changed(plan, scale=plan.scale / 2)


@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_audit_on_two_nodes_finds_epsilon_and_catches_half_the_noise(law, rounds):
    epsilon, delta = 1.0, (0.01 if law == "gaussian" else 0.0)
    plan = gaussian_sums_plan(epsilon, delta, rounds) if law == "gaussian" else laplace_sums_plan(epsilon, rounds)
    assert 0.3 <= epsilon_bound(*pair_scores(plan, 40_000), delta=delta, error=5e-7) <= epsilon
    assert epsilon_bound(*pair_scores(halved(plan), 40_000), delta=delta, error=5e-7) > epsilon


@pytest.mark.slow
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_audit_on_twenty_nodes(law):
    """2,000 runs each on a graph with and without one edge: the bound stays below epsilon, with a quarter of the noise not."""
    graph = networkx.gnp_random_graph(20, 0.2, seed=3)
    pairs = list(graph.edges)
    generator = torch.Generator().manual_seed(4)
    rows = unit_rows(20, 3, generator) if law == "gaussian" else one_hot_rows(20, 3, generator)
    epsilon, delta = 1.0, (0.01 if law == "gaussian" else 0.0)
    plan = gaussian_sums_plan(epsilon, delta, 1) if law == "gaussian" else laplace_sums_plan(epsilon, 1)
    full, less = edges_of(pairs, 20), edges_of(pairs[1:], 20)
    base = neighbour_sums(less, rows)
    change = neighbour_sums(full, rows) - base

    def scores(noise_plan):
        mechanism = noise_plan.sums_of(rows)
        for edges in (full, less):
            out = torch.stack([mechanism.apply(edges, SystemRandomness()) for _ in range(2_000)])
            yield likelihood_ratio(law, out - base, change).numpy()

    assert epsilon_bound(*scores(plan), delta=delta, error=5e-7) <= epsilon
    weak = changed(plan, scale=plan.scale / 4)
    assert epsilon_bound(*scores(weak), delta=delta, error=5e-7) > epsilon
