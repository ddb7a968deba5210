"""Aggregates: what is propagated over edges, with bounds from public numbers alone."""

import dataclasses
import math

import pytest
import torch

from gcon.edges.fixed_point import column_units
from gcon.edges.schemes import Schemes, propagate
from gcon.errors import UnprovenBoundError
from gcon.learn.unit_rows import unit_rows
from gcon.mechanisms.aggregates import Aggregates
from gcon.mechanisms.influence import FeatureExtent, edge_influence, feature_extent

SCHEMES = Schemes(restart=0.3, steps=(0, 2, math.inf))


def test_they_are_what_the_kernel_computes(edges, features):
    aggregates = Aggregates(features, SCHEMES)
    assert torch.equal(aggregates.of(edges), propagate(edges, features, SCHEMES))
    assert (aggregates.num_rows, aggregates.num_columns) == (edges.num_nodes, 15)
    mask = torch.arange(edges.num_nodes) % 3 == 0
    some = Aggregates(features, SCHEMES, rows=mask)
    assert torch.equal(some.of(edges), propagate(edges, features, SCHEMES)[mask])
    assert (some.num_rows, some.num_columns) == (int(mask.sum()), 15)
    assert some.edge_influence == aggregates.edge_influence


def test_bounds_cannot_be_given(features):
    for claimed in ("edge_influence", "longest_row", "num_rows", "num_columns", "influence_bounds"):
        with pytest.raises(TypeError, match=claimed):
            Aggregates(features, SCHEMES, **{claimed: 0})
    with pytest.raises(dataclasses.FrozenInstanceError):
        Aggregates(features, SCHEMES).edge_influence = 0.0


def test_the_caller_may_change_his_features_afterwards(edges, features):
    """The bound was computed from what they were."""
    given, mask = features.clone(), torch.arange(len(features)) % 2 == 0
    aggregates = Aggregates(given, SCHEMES, rows=mask)
    expected = propagate(edges, features, SCHEMES)[mask]
    given *= 1000
    mask[:] = True
    assert torch.equal(aggregates.of(edges), expected)


def test_the_bounds_are_those_of_the_public_numbers(edges, features):
    """Those of the features in fixed point, half a unit per entry away, and of 4 units a step for rounding on both sides."""
    aggregates = Aggregates(features, SCHEMES)
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
    aggregates = Aggregates(torch.zeros(edges.num_nodes, 2), SCHEMES)
    assert aggregates.edge_influence == 0
    assert not aggregates.of(edges).any()


@pytest.mark.parametrize("width", [1, 16, 4096, 20_000])
@pytest.mark.parametrize("schemes", [Schemes(0.0, (1000,)), Schemes(0.001, (1000,)), Schemes(0.01, (math.inf,))])
def test_unit_rows_stay_within_length_one_in_the_longest_walks(width, schemes):
    rows = unit_rows(torch.randn(3, width, generator=torch.Generator().manual_seed(0)))
    one = torch.zeros(1, width, dtype=torch.float64)
    one[0, 0] = 1.0
    aggregates = Aggregates(torch.cat([rows, unit_rows(one)]), schemes, bound="paper")
    assert aggregates.longest_row <= 1


def test_no_row_is_longer_than_it_says(edges, features):
    aggregates = Aggregates(unit_rows(features), SCHEMES)
    assert aggregates.longest_row <= 1
    lengths = torch.linalg.vector_norm(aggregates.of(edges), dim=1)
    assert float(lengths.max()) <= aggregates.longest_row / math.sqrt(3) * (1 + 1e-9)


@pytest.mark.parametrize("bound", ["paper", "simple", "sharp"])
def test_the_bound_can_be_chosen(edges, features, bound):
    schemes = Schemes(restart=0.5, steps=(2,))
    aggregates = Aggregates(unit_rows(features), schemes, bound=bound)
    assert aggregates.influence_bounds == (bound,)


def test_an_unproven_bound_is_refused(edges, features):
    with pytest.raises(UnprovenBoundError):
        Aggregates(3 * unit_rows(features), Schemes(0.5, (2,)), bound="paper")
    with pytest.raises(UnprovenBoundError):
        Aggregates(features, Schemes(0.55, (2,)), bound="sharp")
