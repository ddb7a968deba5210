"""A small paid look at the edges: how many there are a node, and how often they stay inside a class."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gcon.edges.graph import PrivateGraph
from gcon.errors import check_number
from gcon.learn.edge_free import learn_without_edges
from gcon.machine import threads_for
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_release import gaussian_plan
from gcon.methods.evidence import above_chance
from gcon.methods.graph_facts import counted_rows, degree_error, graph_facts
from gcon.privacy.account import check_charge, spend
from gcon.privacy.budget import checked_budget
from gcon.privacy.ledger import Ledger
from gcon.privacy.randomness import Randomness
from gcon.privacy.receipt import Receipt


@dataclass(frozen=True, kw_only=True)
class Look:
    """What a look showed; every error is one standard deviation.

    Attributes:
        homophily: the share of edges inside a class.
        above_chance: the same on a scale where 0 is chance and 1 perfect.
        mean_degree: noise can make it negative.
        receipt: what was paid.
    """

    homophily: float
    homophily_error: float
    above_chance: float
    above_chance_error: float
    mean_degree: float
    mean_degree_error: float
    receipt: Receipt


def take_look(
    graph: PrivateGraph,
    *,
    epsilon: float,
    delta: float | None = None,
    ledger: Ledger,
    randomness: Randomness,
) -> Look:
    """Buy homophily and mean degree: one Gaussian release of the edge moments of edge-free answers.

    Args:
        graph: public nodes and private edges.
        epsilon: what the look costs; finite, for instance 0.1.
        delta: None for min(1e-5, 1/(10 n)).
        ledger: pays before any edge is read.
        randomness: the source of the noise.

    Privacy:
        Costs (epsilon, delta), by the sensitivity of edge moments (docs/proofs/edge-moments.md). The answers that are
        compared along edges come from public nodes alone.
    """
    nodes = graph.nodes
    check_look(epsilon)
    budget = checked_budget(epsilon, delta, nodes.num_nodes)
    plan, purpose = gaussian_plan(budget.epsilon, budget.delta, method="advice"), "a look at homophily and mean degree"
    check_charge(plan.budget, ledger=ledger, randomness=randomness, purpose=purpose)
    with threads_for(*nodes.features.shape):
        free = learn_without_edges(nodes, seed=0)
    with spend(graph.edges, plan, ledger=ledger, randomness=randomness, purpose=purpose) as account:
        moments = account.release(plan.noisy(EdgeMoments(counted_rows(free.answers)), share=1.0))
    facts = graph_facts(moments, free.answers, free.examples)
    return Look(
        homophily=facts.homophily,
        homophily_error=facts.homophily_error,
        above_chance=above_chance(facts.homophily, nodes.num_classes),
        above_chance_error=facts.homophily_error * nodes.num_classes / (nodes.num_classes - 1),
        mean_degree=facts.mean_degree,
        mean_degree_error=degree_error(moments.standard_deviation, nodes.num_nodes),
        receipt=account.receipt,
    )


def check_look(look: float, epsilon: float | None = None) -> None:
    """Raise `InputError` unless a look is a positive, finite part of the budget; worth asking before a ledger is made."""
    most = math.inf if epsilon is None else epsilon
    check_number(
        "look",
        look,
        allowed=lambda number: 0 < number < most,
        rule="must lie between 0 and epsilon" if epsilon is not None else "must be a finite number above 0",
        fix="A tenth of the budget, for instance 0.1; training gets the rest.",
    )
