"""The GPU's kernels, walks and statistics give the bits of the processor. On a bare machine: pytest --noconftest."""

from __future__ import annotations

import math

import pytest
import torch
from tests.edges.kernels.agreement import (
    GRAPHS,
    WALKS,
    WIDTHS,
    expected_step,
    expected_totals,
    random_graph,
    scaled_origin,
    star,
    state,
    step_of,
    totals_of,
)

from gcon.edges.edge_list import public_edges
from gcon.edges.fixed_point import Walk
from gcon.edges.kernels import multiply, multiply_torch
from gcon.edges.schemes import Schemes, propagate
from gcon.mechanisms.counts import NeighbourCounts
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.mechanisms.bilinear_sums import BilinearSums
from gcon_lab.mechanisms.class_sums import ClassSums
from gcon_lab.mechanisms.walk_moments import WalkMoments

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device on this machine")
KERNELS = ("triton", "torch")


def kernel_named(name):
    if name == "torch":
        return multiply_torch
    from gcon.edges.kernels import multiply_triton

    return multiply_triton


@pytest.fixture(scope="module", params=GRAPHS)
def edges(request):
    return GRAPHS[request.param]()


@pytest.fixture(params=KERNELS)
def kernel(request):
    return kernel_named(request.param)


def same(found, expected):
    assert found.is_cuda
    assert torch.equal(found.cpu(), expected)


def test_the_gpu_has_a_kernel_of_its_own():
    assert multiply.KERNELS["cuda"] == "gcon.edges.kernels.multiply_triton"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("walk", WALKS, ids=str)
def test_a_step_has_the_bits_of_the_plain_kernel(edges, kernel, walk, width):
    for current, origin in (
        (state(edges.num_nodes, width, 1), state(edges.num_nodes, width, 2)),
        (-state(edges.num_nodes, width, 0, bits=50, extreme=True), state(edges.num_nodes, width, 0, extreme=True)),
    ):
        expected = expected_step(edges, current, origin, walk)
        same(step_of(kernel, edges, current.cuda(), origin.cuda(), walk), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_step_back_to_features_has_the_same_bits(edges, kernel, dtype):
    origin, scale = scaled_origin(edges.num_nodes, 3, 12, dtype)
    current = state(edges.num_nodes, 3, 1)
    expected = expected_step(edges, current, origin, WALKS[1], scale)
    same(step_of(kernel, edges, current.cuda(), origin.cuda(), WALKS[1], scale.cuda()), expected)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("dtype", "bits"), [(torch.int32, 22), (torch.int64, 39)])
def test_totals_have_the_bits_of_the_plain_kernel(edges, kernel, width, dtype, bits):
    for rows in (
        state(edges.num_nodes, width, 4, bits=bits).to(dtype),
        -state(edges.num_nodes, width, 0, bits=bits, extreme=True).to(dtype),
    ):
        same(totals_of(kernel, edges, rows.cuda()), expected_totals(edges, rows))


def test_rows_that_several_programs_share(kernel):
    """More neighbours than one program takes: on the star of 40,000 leaves the centre is shared between five."""
    edges = star(40_000)
    for current in (state(40_001, 3, 5), state(40_001, 3, 0, bits=50, extreme=True)):
        expected = expected_step(edges, current, current, WALKS[1])
        same(step_of(kernel, edges, current.cuda(), current.cuda(), WALKS[1]), expected)


def test_many_random_steps(kernel):
    """Weights of all degrees from 0 to 400 and all sizes of numbers: a fused operation would change some of these bits."""
    edges = random_graph(5_000, 200_000, 6)
    generator = torch.Generator().manual_seed(7)
    for _ in range(5):
        restart, clip, weight = torch.rand(3, generator=generator, dtype=torch.float64).tolist()
        walk = Walk(restart=restart, clip=0.01 + 0.49 * clip, self_weight=1 + 9 * weight)
        current, origin = state(5_000, 8, 8), state(5_000, 8, 9)
        found = step_of(kernel, edges, current.cuda(), origin.cuda(), walk)
        same(found, step_of(multiply_torch, edges, current, origin, walk))


@pytest.mark.parametrize("width", [1, 8, 9, 40])
@pytest.mark.parametrize(
    "schemes",
    [Schemes(0.0, (7,)), Schemes(0.3, (0, 2, math.inf)), Schemes(0.8, (3,), clip=0.03), Schemes(1.0, (2,))],
    ids=str,
)
def test_propagation_has_the_bits_of_the_processor(schemes, width):
    edges = random_graph(700, 5_000, 10)
    features = torch.randn(700, width, generator=torch.Generator().manual_seed(11), dtype=torch.float64)
    for given in (features, features.float(), features.T.contiguous().T):
        same(propagate(edges, given.cuda(), schemes), propagate(edges, given, schemes))


def test_statistics_have_the_bits_of_the_processor():
    edges, generator = random_graph(9_000, 60_000, 12), torch.Generator().manual_seed(13)
    rows = torch.randn(9_000, 20, generator=generator, dtype=torch.float64)
    answers = torch.rand(9_000, 4, generator=generator, dtype=torch.float64)
    schemes = Schemes(0.4, (0, 2, math.inf))
    for make in (
        lambda device: EdgeMoments(rows, device=device),
        lambda device: BilinearSums(rows, answers, 2.5, device=device),
        lambda device: ClassSums(rows, answers, schemes, device=device),
        lambda device: WalkMoments(rows, schemes, device=device),
    ):
        found, expected = (make(device).precisely(edges) for device in ("cuda", "cpu"))
        assert torch.equal(found.value, expected.value)
        assert torch.equal(found.rest, expected.rest)


@pytest.mark.parametrize("rate", [0.5, math.inf])
@pytest.mark.parametrize("one_way", [False, True])
@pytest.mark.parametrize("num_codes", [2, 10, 70])
def test_noisy_counts_are_the_whole_numbers_of_the_processor(num_codes, one_way, rate):
    edges, generator = random_graph(9_000, 60_000, 15), torch.Generator().manual_seed(16)
    codes = torch.randint(-1 if one_way else 0, num_codes, (9_000,), generator=generator)
    options = {"codes": codes, "num_codes": num_codes, "rate": rate, "one_way": one_way}
    found, expected = (
        NeighbourCounts(**options, device=device).apply(edges, SeededRandomness(17)) for device in ("cuda", "cpu")
    )
    assert torch.equal(found.value, expected.value)


def test_transposed_rows_are_read_as_they_are():
    edges = public_edges(torch.tensor([[0, 1, 2], [1, 2, 3]]), 4)
    rows = torch.randn(3, 4, generator=torch.Generator().manual_seed(14), dtype=torch.float64).T
    for make in (
        lambda device: BilinearSums(rows, rows, device=device),
        lambda device: EdgeMoments(rows, device=device),
    ):
        assert torch.equal(make("cuda").of(edges), make("cpu").of(edges))
