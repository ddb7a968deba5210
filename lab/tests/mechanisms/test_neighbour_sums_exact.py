"""Sums over neighbours under the noise are exact: rational numbers, where float64 has no bit to spare."""

from fractions import Fraction

import networkx
import pytest
import torch

from gcon.edges.edge_list import public_edges
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.mechanisms import neighbour_sums as module
from gcon_lab.mechanisms.neighbour_sums import gaussian_sums_plan, laplace_sums_plan

PLANS = {"gaussian": gaussian_sums_plan(1.0, 1e-5, 1), "laplace": laplace_sums_plan(1.0, 1)}


@pytest.mark.parametrize("law", PLANS)
@pytest.mark.parametrize("size", [31, 63, 127])
@pytest.mark.parametrize("shape", ["complete", "star"])
def test_what_lies_under_the_noise_is_the_sum_of_short_rows(monkeypatch, law, size, shape):
    """Aligned rows of length 0.99 on just below a power of two nodes: the largest sums there are."""
    summed, covered = [], []
    real = module.neighbour_sums

    def summing(edges, rows):
        summed.append(rows.clone())
        return real(edges, rows)

    def drawing(randomness, values, *, scale, spacing):
        covered.append(values.clone())
        return values

    monkeypatch.setattr(module, "neighbour_sums", summing)
    monkeypatch.setattr(module, {"gaussian": "rounded_noise", "laplace": "rounded_laplace"}[law], drawing)
    rows = 0.99 + 0.005 * torch.rand(size, 1, generator=torch.Generator().manual_seed(size), dtype=torch.float64)
    graph = networkx.complete_graph(size) if shape == "complete" else networkx.star_graph(size - 1)
    edges = public_edges(torch.tensor(list(graph.edges)).T, size)
    PLANS[law].sums_of(rows).apply(edges, SystemRandomness())
    (short,), (sums,) = summed, covered
    assert bool((short <= rows).all())
    assert float((rows - short).max()) < 1e-12
    exact = [Fraction(number) for number in short[:, 0].tolist()]
    expected = [sum(exact[other] for other in graph.neighbors(node)) for node in range(size)]
    assert [Fraction(number) for number in sums[:, 0].tolist()] == expected
