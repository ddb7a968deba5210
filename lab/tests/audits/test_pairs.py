"""Pairs of graphs: copies, the directed star, and the search."""

import math

import pytest
import torch

from gcon.edges.schemes import Schemes, propagate
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon_lab.audits.pairs import (
    copies,
    directed_star,
    listed_twice,
    path_of_four,
    search_pairs,
    star_and_node,
    two_nodes,
)
from gcon_lab.mechanisms.class_sums import ClassSums


@pytest.mark.parametrize("pair", [two_nodes(), path_of_four(), star_and_node(5)])
def test_pairs_differ_in_one_edge(pair):
    both = [{tuple(edge) for edge in edges.edge_index().T.tolist()} for edges in (pair.joined, pair.apart)]
    assert both[1] < both[0]
    assert len(both[0] - both[1]) == 2


def test_copies_do_not_touch():
    edges = copies(path_of_four().joined, 3)
    assert edges.num_nodes == 12
    assert edges.degrees.tolist() == [1, 2, 2, 1] * 3
    assert edges.neighbours(5).tolist() == [4, 6]
    assert [len(copies(edges, 2).columns) for edges in (two_nodes().joined, two_nodes().apart)] == [4, 0]


def test_copies_keep_what_a_reader_should_have_dropped():
    edges = copies(listed_twice().joined, 2)
    assert edges.degrees.tolist() == [2, 2, 2, 2]
    assert edges.columns.tolist() == [1, 1, 0, 0, 3, 3, 2, 2]
    assert len(copies(listed_twice().apart, 2).columns) == 0


@pytest.mark.parametrize(("leaves", "expected"), [(10, 4.32), (100, 33.12)])
def test_the_directed_star_of_the_specification(leaves, expected):
    pair, schemes = directed_star(leaves), Schemes(restart=0.2, steps=(2,))
    features = torch.ones(leaves + 2, 1, dtype=torch.float64)
    features[1] = -1
    change = propagate(pair.joined, features, schemes) - propagate(pair.apart, features, schemes)
    assert float(change.abs().sum()) == pytest.approx(expected)


def test_the_search_finds_the_known_maximum_and_no_more():
    schemes = Schemes(restart=0.8, steps=(math.inf,))
    found = search_pairs(lambda x, y: ClassSums(x, y, schemes), num_nodes=4, tries=200)
    assert found == pytest.approx(1.0, abs=1e-6)
    assert found <= 1


def test_the_search_exceeds_a_sensitivity_that_is_too_small():
    def with_too_little(rows, _):
        moments = EdgeMoments(rows)
        moments.sensitivity /= math.sqrt(2)
        return moments

    assert search_pairs(with_too_little, num_nodes=3, tries=20) > 1.4
