"""Every mechanism as it is: no bound above its claim, and at least half of epsilon where the pair is tight.

A bound is wrong with probability at most 1e-8, and there are fewer than a hundred here.
"""

import math
from pathlib import Path

import numpy as np
import pytest
from lab.tests.audits.all_cases import CASES

import gcon
import gcon_lab
from gcon.mechanisms.gaussian_curve import gaussian_epsilon
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.audits.cases.case import RepeatedRandomness
from gcon_lab.audits.cases.larger_graphs import larger_graph
from gcon_lab.audits.cases.registry import ABOUT, MECHANISMS, makers
from gcon_lab.audits.measure import (
    HONEST,
    measure,
    measure_one_run,
    measure_search,
    units_of,
    wrong_bound_probability,
)

pytestmark = pytest.mark.slow

ERROR = 1e-8
MADE = makers(larger_graph)
# Few runs are enough where a bound is only held against the claim; runs of these are slow.
SLOW = {"staged-release": 300, "noisy-graph": 1_000, "objective-perturbation": 1_000, "gaussian-objective": 1_000}
# Half of epsilon is found with these; others are searched by the command only, since their runs are slow.
SEARCHED = {
    "edge-moments": 20_000,
    "class-sums": 300_000,  # with 100,000 the half was missed now and then
    "walk-moments": 100_000,
    "bilinear-sums": 100_000,
    "neighbour-counts": 20_000,
    "mixed-release": 100_000,
    "several-edges": 100_000,
    "neighbour-sums": 100_000,
    "noisy-count": 8_000,
    "selection": 8_000,
    "noisy-gradients": 30_000,
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_bound_is_above_the_claim(case):
    finding = measure(case, runs=SLOW.get(case.mechanism, 2_000), error=ERROR)
    assert finding.good, finding
    assert finding.best <= case.claimed.epsilon
    if case.pair_epsilon is not None:
        assert finding.best <= case.pair_epsilon <= case.claimed.epsilon * (1 + 1e-6)


TIGHT = [case for case in CASES if case.tight and case.mechanism in SEARCHED]


@pytest.mark.slow
@pytest.mark.parametrize("case", TIGHT, ids=lambda case: case.name)
def test_half_of_epsilon_is_found_on_tight_pairs(case):
    """Several deviations above the half, and no chance for more than epsilon: see ERROR."""
    finding = measure(case, runs=SEARCHED[case.mechanism], error=1e-3)
    assert case.claimed.epsilon / 2 <= finding.best, finding


def test_every_mechanism_with_exact_calibration_has_a_tight_pair():
    tight = {case.mechanism for case in CASES if case.tight}
    assert set(MECHANISMS) - tight == {"objective-perturbation", "gaussian-objective"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_pairs_are_neighbours_and_scores_are_numbers(case):
    changed = 3 if case.mechanism == "several-edges" else 1
    assert len(case.pair.joined.columns) == len(case.pair.apart.columns) + 2 * changed
    scores = case.score(case.run(case.pair.joined, 3, SystemRandomness()))
    assert scores.shape == (3,)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_same_bytes_give_the_same_release(case):
    """What the audit of reused noise takes for granted."""
    first, second = (case.score(case.run(case.pair.apart, 1, RepeatedRandomness(5))) for _ in range(2))
    assert first.tolist() == second.tolist()


def test_batches_draw_the_noise_of_single_releases():
    """Scores of a batch have the spread that one release states: within 3 %, which is more than 6 deviations."""
    for case in CASES:
        if case.mechanism in ("edge-moments", "class-sums", "bilinear-sums"):
            scores = case.score(case.run(case.pair.apart, 30_000, SystemRandomness()))
            joined = case.score(case.run(case.pair.joined, 30_000, SystemRandomness()))
            distance = (joined.mean() - scores.mean()) / scores.std()
            assert distance == pytest.approx(_distance(case), abs=0.06), case.name


def _distance(case):
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        too_small = gaussian_epsilon(middle, case.claimed.delta) < case.pair_epsilon
        low, high = (middle, high) if too_small else (low, middle)
    return high


@pytest.mark.parametrize("case", MADE["canary-edge"](), ids=lambda case: case.options)
def test_a_canary_edge_in_a_larger_graph(case):
    finding = measure(case, runs=2_000, error=ERROR)
    assert finding.good, finding
    assert 0 < case.pair_epsilon < case.claimed.epsilon


@pytest.mark.parametrize("case", MADE["one-run"](), ids=lambda case: case.options)
def test_one_run_with_many_canaries(case):
    finding = measure_one_run(case, HONEST, case.release, error=ERROR)
    assert finding.good, finding
    for kind, release in case.broken.items():
        finding = measure_one_run(case, kind, release, error=1e-4)
        assert finding.outcome == "caught", finding


@pytest.mark.slow
@pytest.mark.parametrize("case", MADE["search"](), ids=lambda case: case.options)
def test_no_searched_pair_exceeds_a_sensitivity(case):
    finding = measure_search(case)
    assert finding.good, finding
    assert finding.change <= 1 + 1e-9
    assert not case.tight or finding.change > math.sqrt(0.5)


def test_all_bounds_together_have_the_asked_for_confidence():
    units = units_of(CASES, broken=False, runs=None)
    bounds = sum(1 + case.gaussian for case in CASES)
    assert wrong_bound_probability(units, 0.95) == pytest.approx(0.05 / bounds)
    assert set(MADE) == set(ABOUT)


def test_nothing_outside_the_audit_can_reach_what_is_broken():
    readers = [
        path.relative_to(root.parent).as_posix()
        for root in (Path(gcon.__file__).parent, Path(gcon_lab.__file__).parent)
        for path in root.rglob("*.py")
        if "gcon_lab.audits.cases" in path.read_text() and "audits" not in path.relative_to(root).parts[:-1]
    ]
    assert readers == ["gcon_lab/cli/audit.py"]
