"""Listening at the gates while a method trains: what it releases, and from what it was computed.

A white-box attacker reads the method's code and everything released, also what a method throws away after training. The
methods do not hand that out, so for the time of one training their way to the gate is led past a tape. Nothing else
changes: the ledger is charged, and the edges stay behind the gate.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList
from gcon.edges.schemes import Schemes, propagate
from gcon.mechanisms.aggregates import aggregate_privately
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_release import GaussianRelease, NoisyStatistic, Portion, Stage
from gcon.mechanisms.neighbour_rows import NeighbourRows
from gcon.mechanisms.newton import minimise
from gcon.mechanisms.objective_perturbation import ObjectivePerturbation
from gcon.mechanisms.statistic import Statistic
from gcon.privacy.gates import map_into_gate, release_statistic
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.attacks.view import Evidence
from gcon_lab.attacks.white_box import (
    NoisyGraph,
    NoisyMatrix,
    NoisyMoments,
    NoisySums,
    ObjectiveWeights,
    without_noise,
)
from gcon_lab.audits.privacy_loss import GaussianNoise, RadialNoise
from gcon_lab.mechanisms.gaussian_objective import GaussianObjective
from gcon_lab.mechanisms.neighbour_sums import NoisyNeighbourSums, RowsOfRound
from gcon_lab.mechanisms.noisy_gradients import NoisyGradients, gradient_plan
from gcon_lab.mechanisms.noisy_graph import RandomFlips, TopPairs
from gcon_lab.mechanisms.output_perturbation import OutputPerturbation

_ROOMS = ("gcon_lab.methods.", "gcon.methods.moments", "gcon.methods.objective", "gcon.methods.objective")
RowsOfEdges = Callable[[EdgeList], Tensor]


@dataclass
class Tape:
    """What was heard: evidence of every release, and the last function of the edges that led to one."""

    evidence: list[Evidence] = field(default_factory=list)
    rows: RowsOfEdges | None = None

    def release(self, mechanism: Any, bounded: Any, **others: Any) -> Any:
        """`release_statistic`, and remember."""
        rows: list[Tensor] = []
        portions: list[Portion] = []
        if isinstance(mechanism, NoisyNeighbourSums):
            mechanism = replace(mechanism, rows=_heard_rows(mechanism.rows, rows))
        if isinstance(mechanism, GaussianRelease):
            mechanism = replace(mechanism, stages=tuple(_heard_stage(stage, portions) for stage in mechanism.stages))
        released = release_statistic(mechanism, bounded, **others)
        self.evidence += self._evidence(mechanism, released.value, rows, portions)
        return released

    def aggregates(self, edges: Any, features: Tensor, schemes: Schemes, **others: Any) -> Any:
        """`aggregate_privately`, and remember."""
        self.rows = lambda opened: propagate(opened, features, schemes)
        return aggregate_privately(edges, features, schemes, **others)

    def mapped(self, function: RowsOfEdges, private: Any, description: str) -> Any:
        """`map_into_gate`, and remember."""
        self.rows = function
        return map_into_gate(function, private, description)

    def _evidence(
        self, mechanism: Any, value: Any, rows: Sequence[Tensor], portions: Sequence[Portion]
    ) -> list[Evidence]:
        if isinstance(mechanism, NoisyNeighbourSums):
            law, scale = mechanism.plan.law, mechanism.plan.scale
            return [
                NoisySums(rows=row.double(), value=sums, law=law, scale=scale)
                for row, sums in zip(rows, value, strict=True)
            ]
        if isinstance(mechanism, GaussianRelease):
            return statistics_evidence(portions, value)
        if isinstance(mechanism, RandomFlips | TopPairs):
            return [NoisyGraph(value)]
        assert self.rows is not None, "weights are computed from rows"
        if isinstance(mechanism, ObjectivePerturbation | GaussianObjective):
            return [objective_evidence(mechanism, value[0], self.rows)]
        if isinstance(mechanism, OutputPerturbation):
            return [_output_evidence(mechanism, value[0], self.rows)]
        assert isinstance(mechanism, NoisyGradients), "a mechanism that this attack does not know"
        return [_gradient_evidence(mechanism, value, self.rows)]


@contextmanager
def listening() -> Iterator[Tape]:
    """Hear all that methods release inside this block (of this process; not for threads)."""
    tape = Tape()
    changes = {release_statistic: tape.release, aggregate_privately: tape.aggregates, map_into_gate: tape.mapped}
    found = [
        (module, name, true)
        for room, module in list(sys.modules.items())
        if room.startswith(_ROOMS)
        for true in changes
        for name in (true.__name__,)
        if getattr(module, name, None) is true
    ]
    try:
        for module, name, true in found:
            setattr(module, name, changes[true])
        yield tape
    finally:
        for module, name, true in found:
            setattr(module, name, true)


def statistics_evidence(portions: Sequence[Portion], released: Sequence[NoisyStatistic]) -> list[Evidence]:
    """Every noisy statistic with the statistic that it is of."""
    found: list[Evidence] = []
    for portion, noisy in zip(portions, released, strict=True):
        statistic, value, deviation = portion.statistic, noisy.value, noisy.standard_deviation
        rows = _fixed_point_rows(statistic)
        if rows is not None and isinstance(statistic, EdgeMoments):
            found.append(NoisyMoments(statistic.of, rows, value, deviation))
        elif rows is not None and isinstance(statistic, NeighbourRows):
            found.append(NoisySums(rows=rows, value=value, law="gaussian", scale=deviation))
        else:
            found.append(NoisyMatrix(statistic.of, value, deviation))
    return found


def _fixed_point_rows(statistic: Statistic) -> Tensor | None:
    """The rows as they were used, if the statistic keeps them in this form; without them a pair only costs more time."""
    whole, units = getattr(statistic, "_whole", None), getattr(statistic, "_units", None)
    rows: Tensor | None = getattr(statistic, "_rows", None) if whole is None or units is None else whole * units
    return rows


def objective_evidence(
    mechanism: ObjectivePerturbation | GaussianObjective, weights: Tensor, rows: RowsOfEdges
) -> Evidence:
    """The weights of GCON, or of its Gaussian relative."""
    (plan,), mask = mechanism.plans, mechanism.mask
    noisy = plan.needs_noise
    if isinstance(mechanism, ObjectivePerturbation):
        law: RadialNoise | GaussianNoise = RadialNoise(mechanism.plans[0].noise_rate if noisy else 1.0)
    else:
        law = GaussianNoise(mechanism.plans[0].scale if noisy else 1.0)
    return ObjectiveWeights(
        rows=lambda edges: rows(edges)[mask],
        targets=mechanism.targets,
        loss=plan.loss,
        ridge=plan.total_ridge,
        noise=law,
        value=weights,
    )


def _output_evidence(mechanism: OutputPerturbation, weights: Tensor, rows: RowsOfEdges) -> Evidence:
    """The first graph is solved; a neighbouring one by one Newton step from there, which is all but exact."""
    (plan,), mask = mechanism.plans, mechanism.mask
    columns = torch.arange(mechanism.targets.shape[1])
    known: list[Tensor] = []

    def solution(edges: EdgeList) -> Tensor:
        objective = without_noise(rows(edges)[mask], mechanism.targets, plan.loss, plan.ridge)
        if not known:
            known.append(minimise(objective, torch.tensor([1e-9], dtype=torch.float64))[0])
        inverse = torch.linalg.inv(objective.hessian(known[0], columns))
        return (known[0] - torch.bmm(inverse, objective.gradient(known[0])[:, :, None])[:, :, 0]).T

    return NoisyMatrix(solution, weights, plan.scale)


def _gradient_evidence(mechanism: NoisyGradients, weights: Tensor, rows: RowsOfEdges) -> Evidence:
    """Only the last weights are released, and their law has no formula: are they nearer to those without noise?"""
    plan = gradient_plan(math.inf, 0.0, sampling=1.0, steps=mechanism.plan.steps, clip=mechanism.plan.clip)
    exact = replace(mechanism, plan=plan)
    return NoisyMatrix(lambda edges: exact.apply(rows(edges), SeededRandomness(0)), weights, 0.0)


def _heard_rows(function: RowsOfRound, heard: list[Tensor]) -> RowsOfRound:
    def rows(released: Sequence[Tensor]) -> Tensor:
        heard.append(function(released).detach())
        return heard[-1]

    return rows


def _heard_stage(stage: Stage, heard: list[Portion]) -> Stage:
    def portions(released: tuple[NoisyStatistic, ...]) -> Sequence[Portion]:
        found = stage(released)
        heard.extend(found)
        return found

    return portions
