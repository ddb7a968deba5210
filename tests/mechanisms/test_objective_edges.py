"""Objective perturbation and several edges: how far they move rows, what that costs, and plans that protect them."""

import dataclasses
import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gcon.edges.edge_list import public_edges
from gcon.edges.schemes import Schemes, propagate
from gcon.errors import InputError, PlanMismatchError
from gcon.mechanisms.aggregates import Aggregates
from gcon.mechanisms.losses import loss_by_name
from gcon.mechanisms.objective_perturbation import ObjectivePerturbation
from gcon.mechanisms.objective_plan import make_plan
from gcon.mechanisms.theorem import influence_of, objective_by_edges
from gcon.privacy.budget import Budget
from gcon.verify.arithmetic import digits
from gcon.verify.objective_steps import _promise
from gcon.verify.theorem import Public, loss_bounds
from gcon_lab.mechanisms.gaussian_objective_plan import make_gaussian_objective_plan

DELTA, CLASSES, NODES = 1e-5, 2, 7
PAIRS = list(itertools.combinations(range(NODES), 2))


def planned(edges=1, epsilon=1.0, **changes):
    options = {
        "loss": loss_by_name("soft-margin", 7),
        "num_features": 16,
        "num_labelled": 2995,
        "edge_influence": 0.48,
        "ridge": 0.2,
    }
    return make_plan(Budget(epsilon, DELTA), protect_edges=edges, **(options | changes))


def said(plan, numbers=range(1, 11)):
    return objective_by_edges(plan.public_record(), plan.budget, numbers)


@pytest.mark.parametrize("edges", [1, 2, 5, 10])
def test_the_plan_of_several_edges_is_that_of_their_influence(edges):
    several, far = planned(edges), planned(edge_influence=influence_of(edges, 0.48))
    assert several.theorem == far.theorem
    assert several.theorem.edge_influence >= edges * 0.48
    assert several.public_record() == far.public_record() | ({"protect_edges": edges} if edges > 1 else {})
    assert said(several)[edges] == several.budget


def test_vectors():
    """Row 1 of the reference table, calibrated for one edge and for five: what is promised for others."""
    assert {edges: each.epsilon for edges, each in said(planned(), (2, 5, 10)).items()} == {
        1: 1.0, 2: 1.998, 5: 4.992, 10: 9.982
    }  # fmt: skip
    assert {edges: each.epsilon for edges, each in said(planned(5), (1, 2, 10)).items()} == {
        1: 0.2017, 2: 0.4013, 5: 1.0, 10: 1.998
    }  # fmt: skip
    assert planned(5).noise_rate == pytest.approx(0.3354750324, rel=1e-9)


@pytest.mark.parametrize(
    ("changes", "epsilon"),
    [
        ({}, 1.0),
        ({}, 20.0),
        ({"num_labelled": 140, "edge_influence": 8.0, "ridge": 0.01, "margin": 1e-3}, 0.5),
        ({"loss": loss_by_name("pseudo-huber:0.2", 3), "num_labelled": 19717, "edge_influence": 7.1}, 2.0),
        ({"num_features": 1, "num_labelled": 10, "noise_share": 0.5, "loss": loss_by_name("soft-margin", 2)}, 1.0),
        ({"num_labelled": 140, "edge_influence": 8.0, "noise_share": 0.999}, 0.5),
    ],
)
def test_the_verifiers_numbers_and_the_rule_for_groups(changes, epsilon):
    """Recomputed with sixty digits; more edges cost more; and never more than k eps and the delta of a group."""
    for protected in (1, 3, 10):
        plan = planned(protected, epsilon, **changes)
        record, theorem = plan.public_record(), plan.theorem
        public = Public(
            epsilon=digits.mpf(plan.exact.epsilon),
            delta=digits.mpf(plan.exact.delta),
            noise_share=digits.mpf(plan.noise_share),
            width=plan.num_features,
            rows=plan.num_labelled,
            influence=digits.mpf(theorem.edge_influence),
            ridge=digits.mpf(theorem.ridge),
            loss=loss_bounds(plan.loss.name, plan.loss.num_classes),
        )
        stated = said(plan)
        for edges, each in stated.items():
            least, delta = _promise(public, record, digits.mpf(edges) / protected)
            least = min(least, epsilon) if edges < protected else max(least, epsilon)
            assert least * (1 - 1e-12) <= each.epsilon <= least * 1.002
            assert delta <= each.delta * (1 + 1e-11)
        assert sorted(stated.values(), key=lambda each: each.epsilon) == list(stated.values())
        for edges, each in stated.items():
            if edges % protected == 0:
                times = edges // protected
                assert each.epsilon <= times * epsilon * 1.001
                assert each.delta <= 1.01 * DELTA * sum(math.exp(min(700, step * epsilon)) for step in range(times))


def graph(pairs):
    ends = torch.tensor(sorted(pairs), dtype=torch.int64).reshape(-1, 2).T
    return public_edges(ends, NODES)


@settings(max_examples=60, deadline=None)
@given(
    st.sets(st.sampled_from(PAIRS)),
    st.sets(st.sampled_from(PAIRS), min_size=1, max_size=10),
    st.sampled_from([(0.2, (1,)), (0.5, (2,)), (0.8, (0, 2)), (0.4, (math.inf,))]),
    st.integers(0, 10**6),
)
def test_the_privacy_loss_of_all_good_weights(before, changed, walk, seed):
    """Rows move by at most k times the influence, and the loss (4) of the proof keeps what is stated for k edges."""
    edges, draws = len(changed), torch.Generator().manual_seed(seed)
    features = torch.randn(NODES, 2, generator=draws, dtype=torch.float64)
    features /= torch.linalg.vector_norm(features, dim=1, keepdim=True) * (1 + 1e-6)
    carried = Aggregates(features, Schemes(*walk))
    rows = [propagate(graph(pairs), features, Schemes(*walk)) for pairs in (before, before ^ changed)]
    moved = float(torch.linalg.vector_norm(rows[1] - rows[0], dim=1).sum())
    assert moved <= influence_of(edges, carried.edge_influence)
    plan = planned(
        loss=loss_by_name("soft-margin", CLASSES),
        num_features=carried.num_columns,
        num_labelled=NODES,
        edge_influence=carried.edge_influence,
        ridge=0.5,
    )
    stated = said(plan, (edges,))[edges].epsilon
    targets = torch.rand(NODES, CLASSES, generator=draws, dtype=torch.float64)
    weights = torch.randn(CLASSES, carried.num_columns, generator=draws, dtype=torch.float64)
    weights *= plan.theorem.weight_norm_bound / torch.linalg.vector_norm(weights, dim=1, keepdim=True)
    parts = [noise_and_jacobian(each, weights, targets, plan) for each in rows]
    loss = parts[0][1] - parts[1][1] + plan.noise_rate * (parts[1][0] - parts[0][0])
    assert abs(loss) <= stated


def noise_and_jacobian(rows, weights, targets, plan):
    """The lengths of the noise (1), and the logarithm of the Jacobian (2), that lead to these weights."""
    chances = torch.sigmoid(rows @ weights.T)
    noise = -((chances - targets) / CLASSES).T @ rows - len(rows) * plan.total_ridge * weights
    curved = chances * (1 - chances) / CLASSES
    jacobians = torch.einsum("ij,ia,ib->jab", curved, rows, rows)
    jacobians += len(rows) * plan.total_ridge * torch.eye(rows.shape[1], dtype=torch.float64)
    return float(torch.linalg.vector_norm(noise, dim=1).sum()), float(torch.logdet(jacobians).sum())


def test_wrong_numbers_and_plans_of_too_little_influence_are_refused():
    for wrong in (0, 11, 2.5, "two"):
        with pytest.raises(InputError, match="protect_edges"):
            planned(wrong)
        with pytest.raises(PlanMismatchError):
            dataclasses.replace(planned(), protect_edges=wrong)
    features = torch.eye(6, 4, dtype=torch.float64) * 0.5
    carried = Aggregates(features, Schemes(0.5, (1,)))
    loss, rows = loss_by_name("soft-margin", CLASSES), {"num_features": 4, "num_labelled": 6}
    plan = planned(2, loss=loss, edge_influence=carried.edge_influence, **rows)
    options = {"aggregates": carried, "mask": torch.ones(6, dtype=torch.bool), "targets": torch.ones(6, CLASSES)}
    assert ObjectivePerturbation(plans=(plan,), **options).record["protect_edges"] == 2
    with pytest.raises(PlanMismatchError, match="edge influence"):
        ObjectivePerturbation(plans=(dataclasses.replace(plan, protect_edges=3),), **options)
    with pytest.raises(PlanMismatchError):  # its theorem is proven for one edge
        make_gaussian_objective_plan(plan.budget, loss=loss, edge_influence=0.4, ridge=1.0, protect_edges=2, **rows)
