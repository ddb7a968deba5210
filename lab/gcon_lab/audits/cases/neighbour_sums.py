"""Noisy neighbour sums on two nodes; many disjoint copies of the pair are many independent runs at once."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList
from gcon.mechanisms.gaussian_curve import gaussian_epsilon
from gcon.privacy.randomness import Randomness
from gcon_lab.audits.cases.case import ONE_ENTRY, AuditCase, Broken, Run, Score, Scores, changed, too_little_noise
from gcon_lab.audits.pairs import copies, two_nodes
from gcon_lab.mechanisms.neighbour_sums import SumsPlan, gaussian_sums_plan, laplace_sums_plan

_DELTA = 0.01


def neighbour_sums() -> list[AuditCase]:
    """Gaussian and Laplace noise, one round and two; and the published calibration, charged with what it costs."""
    published = gaussian_sums_plan(1.0, _DELTA, 1, convention="directed")
    cases = [
        _case(f"{law}, {rounds} round{'s' if rounds > 1 else ''}", plan)
        for law, plans in (
            ("Gaussian", {rounds: gaussian_sums_plan(1.0, _DELTA, rounds) for rounds in (1, 2)}),
            ("Laplace", {rounds: laplace_sums_plan(1.0, rounds) for rounds in (1, 2)}),
        )
        for rounds, plan in plans.items()
    ]
    # GAP's noise, charged with the epsilon that it was made for.
    wrong = Broken(kind=ONE_ENTRY, run=_run(published))
    cases[0] = changed(cases[0], broken=(*cases[0].broken, wrong))
    return [*cases, _case("Gaussian, 1 round, published (directed) calibration", published)]


def _case(options: str, plan: SumsPlan) -> AuditCase:
    gaussian = plan.law == "gaussian"
    # A row of length 1 in two places, every round.
    distance = math.sqrt(2 * plan.rounds) / plan.scale
    return AuditCase(
        mechanism="neighbour-sums",
        options=options,
        claimed=plan.budget,
        pair=two_nodes(),
        run=_run(plan),
        score=_score(plan),
        gaussian=gaussian,
        pair_epsilon=gaussian_epsilon(distance, _DELTA) if gaussian else 2 * plan.rounds / plan.scale,
        broken=too_little_noise(lambda factor: _run(changed(plan, scale=plan.scale * factor)), torch.cat, score=_total),
    )


def _run(plan: SumsPlan) -> Run:
    def run(edges: EdgeList, count: int, randomness: Randomness) -> Tensor:
        many = copies(edges, count)
        # Rows of length 1; in the second round their signs come from what the first one released.
        rows, released = torch.ones(many.num_nodes, 1, dtype=torch.float64), []
        for _ in range(plan.rounds):
            released.append(plan.sums_of(rows).apply(many, randomness))
            rows = torch.where(released[-1] >= 0, 1.0, -1.0).to(torch.float64)
        return torch.stack(released).reshape(plan.rounds, count, 2).transpose(0, 1)

    return run


def _score(plan: SumsPlan) -> Score:
    """The log-likelihood ratio, up to a constant factor: runs x rounds x 2 sums, without the edge all are 0."""

    def score(released: Tensor) -> Scores:
        signs = torch.ones_like(released)
        signs[:, 1:] = torch.where(released[:, :-1] >= 0, 1.0, -1.0)
        change = signs.flip(-1)  # each node receives the other's row
        if plan.law == "gaussian":
            return (released * change).sum(dim=(1, 2)).numpy()
        return (released.abs() - (released - change).abs()).sum(dim=(1, 2)).numpy()

    return score


def _total(released: Tensor) -> Scores:
    """With the same noise the first sums differ by exactly 2, far out too, where the likelihood ratio is flat."""
    return released[:, 0].sum(dim=1).numpy()
