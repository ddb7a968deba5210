"""The private entry: private in, private out, with bounds from public numbers."""

import math

import pytest
import torch

from gcon.edges.edge_list import public_edges
from gcon.edges.fixed_point import column_units
from gcon.edges.schemes import Schemes, propagate
from gcon.errors import BoundaryError, UnprovenBoundError
from gcon.learn.unit_rows import unit_rows
from gcon.mechanisms.aggregates import aggregate_privately
from gcon.mechanisms.influence import FeatureExtent, edge_influence, feature_extent
from gcon.privacy.boundary import Private
from gcon.privacy.opening import map_private, open_private

SCHEMES = Schemes(restart=0.3, steps=(0, 2, math.inf))


def test_the_private_entry_computes_what_the_kernel_does(edges, features):
    aggregates = aggregate_privately(Private(edges, "edges"), features, SCHEMES)
    assert torch.equal(open_private(aggregates.value), propagate(edges, features, SCHEMES))
    assert (aggregates.num_rows, aggregates.num_columns) == (edges.num_nodes, 15)


def test_no_edge_is_read_before_it_is_opened(edges, features):
    reads = []
    watched = map_private(lambda opened: reads.append(1) or opened, Private(edges, "edges"), "watched edges")
    aggregates = aggregate_privately(watched, features, SCHEMES)
    assert not reads
    assert isinstance(aggregates.value, Private)
    open_private(aggregates.value)
    open_private(aggregates.value)
    assert reads == [1]


def test_the_caller_may_change_his_features_afterwards(edges, features):
    """The bound was computed from what they were."""
    given, mask = features.clone(), torch.arange(len(features)) % 2 == 0
    aggregates = aggregate_privately(Private(edges, "edges"), given, SCHEMES, rows=mask)
    expected = propagate(edges, features, SCHEMES)[mask]
    given *= 1000
    mask[:] = True
    assert torch.equal(open_private(aggregates.value), expected)


def test_the_bounds_are_those_of_the_public_numbers(edges, features):
    """Those of the features in fixed point, half a unit an entry away, and of 4 units a step for rounding on both sides."""
    aggregates = aggregate_privately(Private(edges, "edges"), features, SCHEMES)
    extent, unit = feature_extent(features), float(column_units(features).norm())
    rounded = FeatureExtent(extent.diameter + unit, extent.longest_row + unit / 2)
    expected = edge_influence(SCHEMES, rounded, num_nodes=edges.num_nodes)
    steps = min(SCHEMES.limit_iterations(edges.num_nodes), 1 / 0.3)
    rounding = 4 * steps * unit / math.sqrt(3)
    least = expected.value + 2 * edges.num_nodes * rounding
    assert least <= aggregates.edge_influence <= expected.value * (1 + 2e-9) + 1.02 * (least - expected.value)
    assert aggregates.influence_bounds == expected.bounds
    assert rounded.longest_row + rounding <= aggregates.longest_row <= extent.longest_row + unit + 1.02 * rounding
    nearly = edge_influence(SCHEMES, extent, num_nodes=edges.num_nodes).value
    assert nearly <= aggregates.edge_influence <= nearly * (1 + 1e-8) + 1e-9


def test_features_of_zeros_have_no_influence(edges):
    aggregates = aggregate_privately(Private(edges, "edges"), torch.zeros(edges.num_nodes, 2), SCHEMES)
    assert aggregates.edge_influence == 0
    assert not open_private(aggregates.value).any()


@pytest.mark.parametrize("width", [1, 16, 4096, 20_000])
@pytest.mark.parametrize("schemes", [Schemes(0.0, (1000,)), Schemes(0.001, (1000,)), Schemes(0.01, (math.inf,))])
def test_unit_rows_stay_within_length_one_in_the_longest_walks(width, schemes):
    rows = unit_rows(torch.randn(3, width, generator=torch.Generator().manual_seed(0)))
    one = torch.zeros(1, width, dtype=torch.float64)
    one[0, 0] = 1.0
    edges = public_edges(torch.tensor([[0, 1], [1, 2]]), 4)
    aggregates = aggregate_privately(Private(edges, "edges"), torch.cat([rows, unit_rows(one)]), schemes, bound="paper")
    assert aggregates.longest_row <= 1


def test_no_row_is_longer_than_it_says(edges, features):
    aggregates = aggregate_privately(Private(edges, "edges"), unit_rows(features), SCHEMES)
    assert aggregates.longest_row <= 1
    lengths = torch.linalg.vector_norm(open_private(aggregates.value), dim=1)
    assert float(lengths.max()) <= aggregates.longest_row / math.sqrt(3) * (1 + 1e-9)


def test_printing_shows_public_numbers_only(edges, features):
    shown = repr(aggregate_privately(Private(edges, "edges"), features, SCHEMES))
    assert "<private: aggregates of nodes>" in shown
    assert "tensor" not in shown


def test_the_aggregates_are_private(edges, features):
    value = aggregate_privately(Private(edges, "edges"), features, SCHEMES).value
    for way_out in (len, list, torch.sum, bool):
        with pytest.raises(BoundaryError):
            way_out(value)


@pytest.mark.parametrize("bound", ["paper", "simple", "sharp"])
def test_the_bound_can_be_chosen(edges, features, bound):
    schemes = Schemes(restart=0.5, steps=(2,))
    aggregates = aggregate_privately(Private(edges, "edges"), unit_rows(features), schemes, bound=bound)
    assert aggregates.influence_bounds == (bound,)


def test_an_unproven_bound_is_refused(edges, features):
    with pytest.raises(UnprovenBoundError):
        aggregate_privately(Private(edges, "edges"), 3 * unit_rows(features), Schemes(0.5, (2,)), bound="paper")
    with pytest.raises(UnprovenBoundError):
        aggregate_privately(Private(edges, "edges"), features, Schemes(0.55, (2,)), bound="sharp")
