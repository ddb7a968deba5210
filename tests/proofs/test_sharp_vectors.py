"""The sharp constants: reference vectors, the whole table, and where they may be used."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.proofs.sharp import column_constant, pair_bounds, searched_bounds, searched_supremum

from gcon.edges.schemes import Schemes
from gcon.errors import InputError, UnprovenBoundError
from gcon.mechanisms.influence import (
    ISOLATED_PAIR_RESTART,
    FeatureExtent,
    edge_influence,
    paper_influence,
    sharp_influence,
    sharp_is_proven,
    simple_influence,
)

INFINITY = math.inf
STEPS = (1, 2, 3, 5, 10, INFINITY)
PSI = {
    0.1: (0.9, 1.090800, 1.539001, 2.785591, 4.961895, 5.586207),
    0.2: (0.8, 0.905715, 1.200001, 1.889281, 2.332241, 2.285715),
    0.3: (0.7, 0.725325, 0.931876, 1.219414, 1.325239, 1.209878),
    0.4: (0.6, 0.600001, 0.710924, 0.786147, 0.818132, 0.731732),
    0.5: (0.5, 0.500001, 0.529178, 0.555196, 0.553402, 0.504212),
    0.6: (0.4, 0.4, 0.4, 0.4, 0.4, 0.4),
    0.7: (0.3, 0.3, 0.3, 0.3, 0.3, 0.3),
    0.8: (0.2, 0.2, 0.2, 0.2, 0.2, 0.2),
    0.9: (0.1, 0.1, 0.1, 0.1, 0.1, 0.1),
}
PHI = {
    0.1: (0.636397, 0.856967, 1.398805, 2.596885, 4.780623, 3.950045),
    0.2: (0.565686, 0.710643, 1.055983, 1.770552, 2.318467, 1.616245),
    0.3: (0.494975, 0.567622, 0.765816, 1.147307, 1.276106, 0.855513),
    0.4: (0.424265, 0.454093, 0.564355, 0.703405, 0.757014, 0.527237),
    0.5: (0.353554, 0.358458, 0.420906, 0.451922, 0.465399, 0.372679),
    0.6: (0.282843, 0.282843, 0.303332, 0.313541, 0.314644, 0.282843),
    0.7: (0.212133,) * 6,
    0.8: (0.141422,) * 6,
    0.9: (0.070711,) * 6,
}
CELLS = [(restart, steps, place) for restart in PSI for place, steps in enumerate(STEPS)]


@pytest.mark.parametrize(
    ("first", "second", "restart", "steps", "psi", "phi"),
    [
        (1, 1, 0.8, INFINITY, 0.2000000000, 0.1414213562),
        (1, 4, 0.5, INFINITY, 0.5000000000, 0.3628454282),
        (2, 3, 0.4, INFINITY, 0.7041958042, 0.4991777679),
        (3, 3, 0.2, INFINITY, 1.8117647059, 1.2811111094),
        (5, 20, 0.6, INFINITY, 0.2702257645, 0.1928660409),
        (50, 50, 0.2, INFINITY, 2.2528391704, 1.5929978543),
        (1, 1, 0.8, 2, 0.2000000000, 0.1414213562),
        (1, 7, 0.2, 2, 0.9057142857, 0.7106423941),
        (2, 3, 0.4, 5, 0.7059915625, 0.6219111332),
        (4, 9, 0.6, 10, 0.2906980364, 0.2765246069),
        (1, 5, 0.6, 5, 0.3859955132, 0.3135397125),
        (3, 3, 0.3, 3, 0.7957638889, 0.6981932798),
    ],
)
def test_pair_vectors(first, second, restart, steps, psi, phi):
    got_psi, got_phi = pair_bounds(first, second, restart, steps)
    assert got_psi[0] == pytest.approx(psi, abs=1e-9)
    assert got_phi[0] == pytest.approx(phi, abs=1e-9)
    # Which end is called the first does not matter, up to the few values that the cross term of phi is tried with.
    swapped_psi, swapped_phi = pair_bounds(second, first, restart, steps)
    assert swapped_psi[0] == pytest.approx(psi, abs=1e-9)
    assert swapped_phi[0] == pytest.approx(phi, abs=1e-3)


@pytest.mark.parametrize(
    ("degree", "restart", "value"), [(2, 0.4, 0.3939393939), (5, 0.2, 0.3421052632), (100, 0.8, 0.0982867448)]
)
def test_column_constant_vectors(degree, restart, value):
    assert column_constant(degree, restart) == pytest.approx(value, abs=1e-9)


def test_the_column_constant_falls_from_one_to_its_limit():
    degrees = np.arange(2000)
    for restart in (0.05, 0.3, 0.9):
        values = column_constant(degrees, restart)
        assert values[0] == 1
        assert (np.diff(values) < 0).all()
        assert values[-1] > (1 - restart) / (3 - restart)


@pytest.mark.parametrize(("restart", "steps", "place"), CELLS)
def test_the_table(restart, steps, place):
    psi, phi = searched_bounds(restart, steps)
    assert psi == pytest.approx(PSI[restart][place], abs=3e-6)
    assert phi == pytest.approx(PHI[restart][place], abs=3e-6)
    # What is used is never below the table, the algorithm (raised where its large degrees come out on top) or a closed form.
    used = sharp_influence(restart, steps)
    if steps > 1 and restart < ISOLATED_PAIR_RESTART:
        two_stars = 2 * (1 - restart) ** 2 / (restart * (3 - restart)) if math.isinf(steps) else 0.0
        largest = max(PSI[restart][place], searched_supremum(restart, steps), two_stars)
        assert used == pytest.approx(largest, rel=1e-13)
    assert used >= PSI[restart][place] * (1 - 1e-15)
    assert used >= psi * (1 - 1e-12)
    if math.isinf(steps) and restart <= 0.3:
        assert used >= 2 * (1 - restart) ** 2 / (restart * (3 - restart))
    assert used >= (1 - restart) * (1 - 1e-15)  # the isolated pair is always there
    assert used <= PSI[restart][place] * (1 + 5e-6)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 2, 3, 5, 10])
def test_ends_far_out_come_no_higher_than_the_raised_search(steps):
    """Degrees that the search skips, between its grid points and far beyond its end."""
    degrees = np.concatenate([np.arange(61, 400), np.geomspace(400, 1e12, 150).round()])
    for restart in (0.1, 0.2, 0.4):
        top = searched_supremum(restart, steps)
        for other in (1, 2, 3, 7, 61, 1000, 1e12):
            psi, _ = pair_bounds(degrees, np.full_like(degrees, other), restart, steps)
            assert psi.max() <= top


def test_closed_forms():
    for restart in (0.0, 0.05, 0.33, 0.77, 0.99):
        assert sharp_influence(restart, 1) == 1 - restart
    assert pytest.approx(0.7676, abs=1e-4) == ISOLATED_PAIR_RESTART
    assert pytest.approx(0, abs=1e-12) == 3 * ISOLATED_PAIR_RESTART**2 - ISOLATED_PAIR_RESTART - 1
    for restart in (0.768, 0.85, 0.95):
        for steps in (1, 2, 4, 33, INFINITY):
            assert sharp_influence(restart, steps) == 1 - restart
            if steps <= 4 or math.isinf(steps):
                assert searched_bounds(restart, steps)[0] == pytest.approx(1 - restart, abs=1e-12)
    assert sharp_influence(0.4, 0) == sharp_influence(1.0, 7) == 0


@pytest.mark.parametrize(
    ("restart", "steps", "clip"),
    [
        (0.25, 2, 0.5),
        (0.2, 4, 0.5),
        (0.2, 11, 0.5),
        (0.76, 2, 0.5),
        (0.0, 2, 0.5),
        (0.8, 2, 0.4),
        (0.2, INFINITY, 0.49),
    ],
)
def test_unproven_options_are_refused(restart, steps, clip):
    schemes = Schemes(restart=restart, steps=(steps,), clip=clip)
    extent = FeatureExtent(diameter=math.sqrt(2), longest_row=1.0)
    assert not sharp_is_proven(schemes, steps)
    with pytest.raises(UnprovenBoundError, match="not proven"):
        edge_influence(schemes, extent, num_nodes=10, bound="sharp")
    if clip == 0.5:
        with pytest.raises(UnprovenBoundError, match="not proven"):
            sharp_influence(restart, steps)
    automatic = edge_influence(schemes, extent, num_nodes=10)
    assert automatic.bounds == ("simple",)
    assert automatic.value == extent.diameter * simple_influence(restart, steps, clip=clip)


@pytest.mark.parametrize(
    ("restart", "steps"), [(0.25, 1), (0.0, 1), (0.77, 17), (0.2, 10), (0.6, INFINITY), (0.9, INFINITY)]
)
def test_proven_options_are_used(restart, steps):
    schemes = Schemes(restart=restart, steps=(steps,))
    assert sharp_is_proven(schemes, steps)
    influence = edge_influence(schemes, FeatureExtent(diameter=2.0, longest_row=9.0), num_nodes=10, bound="sharp")
    assert influence.bounds == ("sharp",)
    assert influence.value == pytest.approx(2 * sharp_influence(restart, steps), rel=1e-8)


@pytest.mark.parametrize("restart", [0.1, 0.2, 0.35, 0.5, 0.6, 0.8])
@pytest.mark.parametrize("diameter", [0.3, math.sqrt(2), 2.0])
def test_auto_is_the_smallest_proven_bound_of_every_scheme(restart, diameter):
    schemes = Schemes(restart=restart, steps=(0, 1, 2, 4, 10, INFINITY))
    extent = FeatureExtent(diameter=diameter, longest_row=1.0)
    best = []
    for steps in schemes.steps:
        options = [paper_influence(restart, steps), diameter * simple_influence(restart, steps)]
        if sharp_is_proven(schemes, steps):
            truncation = schemes.truncation(10) if math.isinf(steps) else 0.0
            options.append(diameter * (sharp_influence(restart, steps) + truncation))
        best.append(min(options))
    automatic = edge_influence(schemes, extent, num_nodes=10)
    assert automatic.value == pytest.approx(sum(best) / schemes.num_blocks, rel=1e-12)
    assert automatic.value <= edge_influence(schemes, extent, num_nodes=10, bound="simple").value
    assert automatic.value <= edge_influence(schemes, extent, num_nodes=10, bound="paper").value


def test_an_unknown_bound_is_refused():
    with pytest.raises(InputError, match="influence"):
        edge_influence(Schemes(restart=0.5, steps=(1,)), FeatureExtent(1.0, 1.0), num_nodes=2, bound="guess")
