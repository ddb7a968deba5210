"""Nearest rows by cells: close to the exact ones, the same every time, and bounded where many rows are equal."""

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from gcon.learn import cells, sample
from gcon.learn.feature_graph import feature_graph


def topics(count=6000, width=30, latent=6, seed=0):
    """Rows near a curved surface of few dimensions, as features of people tend to be."""
    random = np.random.default_rng(seed)
    places = random.standard_normal((40, latent))[random.integers(40, size=count)] * 2
    places += 0.7 * random.standard_normal((count, latent))
    rows = np.tanh(places @ random.standard_normal((latent, width)) / 2) + 0.05 * random.standard_normal((count, width))
    return normalize(torch.from_numpy(rows).float(), dim=1)


@pytest.fixture(scope="module")
def rows():
    return topics()


@pytest.fixture(scope="module")
def exact(rows):
    return feature_graph(rows, 20)


def recall(found, exact):
    return float((found.places.long()[:, :, None] == exact.places[:, None]).any(dim=2).double().mean())


def test_nearly_all_nearest_rows_are_found(rows, exact, monkeypatch):
    monkeypatch.setattr(sample, "COMPARED_NODES", 1000)
    found = feature_graph(rows, 20)
    assert found.places.shape == exact.places.shape
    assert recall(found, exact) > 0.95
    assert bool((found.cosines[:, :-1] >= found.cosines[:, 1:]).all())
    own = (rows[:, None] * rows[found.places.long()]).sum(dim=2).clamp_min(0)
    assert torch.allclose(found.cosines, own, atol=1e-5)
    assert not bool((found.places == torch.arange(len(rows))[:, None]).any())
    ordered = found.places.sort(dim=1).values
    assert bool((ordered[:, 1:] > ordered[:, :-1]).all())  # nobody twice


def test_the_same_rows_give_the_same_neighbours_whatever_the_threads(rows):
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    first = cells.matches_in_cells(rows, 20)
    try:
        torch.set_num_threads(2 if threads == 1 else 1)
        second = cells.matches_in_cells(rows, 20)
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(*pair) for pair in zip(first, second, strict=True))
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("kind", ["zeros", "equal", "two kinds", "half zeros"])
def test_equal_rows_cost_no_more_than_others(kind, monkeypatch):
    compared = []
    compare = cells._Matches.compare

    def counted(self, who, inside):
        compared.append(len(who) * len(inside))
        compare(self, who, inside)

    monkeypatch.setattr(cells._Matches, "compare", counted)
    size = 20_000
    units = torch.zeros(size, 4)
    if kind != "zeros":
        units[:, 0] = 1
    if kind == "two kinds":
        units[::2] = torch.tensor([0.0, 1, 0, 0])
    if kind == "half zeros":
        units[: size // 2] = 0
    places, cosines = cells.matches_in_cells(units, 20)
    assert int(places.min()) >= 0
    assert not bool((places == torch.arange(size)[:, None]).any())
    expected = units.norm(dim=1)[:, None].expand(-1, 20)
    assert torch.allclose(cosines, expected)
    per_row = sum(compared) / size  # beside all pairs, 20,000
    assert per_row < cells.PROBES * cells._LARGEST_CELL + 2000


def test_lonely_rows_get_neighbours_too(monkeypatch):
    """A cell with fewer rows than neighbours asked for, and no other cell in reach."""
    monkeypatch.setattr(cells, "PROBES", 1)
    monkeypatch.setattr(cells, "ROWS_PER_CELL", 8)
    places, cosines = cells.matches_in_cells(topics(5000), 20)
    assert int(places.min()) >= 0
    assert bool((cosines >= -1.001).all())
    assert not bool((places == torch.arange(5000)[:, None]).any())
