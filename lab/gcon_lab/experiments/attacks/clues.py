"""What a white-box attacker has: everything released, and from what it was computed.

Such an attacker reads the method's code. From an account's transcript she has also what a method throws away after training; from
a release folder its weights or statistics, and what they were computed from is rebuilt.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList
from gcon.edges.schemes import propagate
from gcon.learn.believed_counts import with_labels
from gcon.learn.edge_free import learn_without_edges
from gcon.learn.training_rows import training_rows
from gcon.mechanisms.counts import ENDS_OF_AN_EDGE, NeighbourCounts, NoisyCount
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_release import NoisyRelease, NoisyStatistic
from gcon.mechanisms.losses import loss_by_name
from gcon.mechanisms.objective_perturbation import ObjectivePerturbation
from gcon.mechanisms.perturbed_objective import minimise
from gcon.mechanisms.statistic import Statistic
from gcon.methods.evidence import scores_with_own_edges
from gcon.methods.graph_facts import counted_rows
from gcon.methods.model import Model
from gcon.methods.moments import MomentsModel, owners_way
from gcon.methods.objective import ObjectiveModel
from gcon.nodes import PublicNodes
from gcon.privacy.account import TranscriptLine
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.attacks.view import Clue
from gcon_lab.attacks.white_box import (
    NoisyGraph,
    NoisyMatrix,
    NoisyMoments,
    NoisyNeighbourSums,
    NoisyNumber,
    NoisyTable,
    ObjectiveWeights,
)
from gcon_lab.audits.privacy_loss import GaussianNoise, RadialNoise, without_noise
from gcon_lab.mechanisms.gaussian_objective import GaussianObjective
from gcon_lab.mechanisms.neighbour_sums import NoisySums
from gcon_lab.mechanisms.noisy_gradients import NoisyGradients, gradient_plan
from gcon_lab.mechanisms.noisy_graph import RandomFlips, TopPairs
from gcon_lab.mechanisms.output_perturbation import OutputPerturbation

_SEED = 0  # of the edge-free networks, the default; a release does not name it


def clues(lines: Iterable[TranscriptLine]) -> tuple[Clue, ...]:
    """Every line of a transcript as a clue."""
    return tuple(_clue(line) for line in lines)


def _clue(line: TranscriptLine) -> Clue:
    mechanism, value = line.mechanism, line.value
    if isinstance(mechanism, NoisySums):
        return NoisyNeighbourSums(rows=mechanism.rows, value=value, law=mechanism.plan.law, scale=mechanism.plan.scale)
    if isinstance(mechanism, NoisyRelease):
        return statistic_clue(mechanism.statistic, value)
    if isinstance(mechanism, NeighbourCounts):
        return NoisyTable(codes=mechanism.codes, value=value.value, rate=value.rate, one_way=value.one_way)
    if isinstance(mechanism, NoisyCount):
        return NoisyNumber(mechanism.numbers_of, value, mechanism.epsilon / mechanism.sensitivity)
    if isinstance(mechanism, RandomFlips | TopPairs):
        return NoisyGraph(value)
    if isinstance(mechanism, ObjectivePerturbation | GaussianObjective):
        return _objective_clue(mechanism, value[0])
    if isinstance(mechanism, OutputPerturbation):
        return _output_clue(mechanism, value[0])
    assert isinstance(mechanism, NoisyGradients), "a mechanism that this attack does not know"
    return _gradient_clue(mechanism, value)


def statistic_clue(statistic: Statistic, noisy: NoisyStatistic) -> Clue:
    """A noisy statistic with the statistic that it is of."""
    value, deviation, rows = noisy.value, noisy.standard_deviation, _fixed_point_rows(statistic)
    if rows is not None and isinstance(statistic, EdgeMoments):
        return NoisyMoments(statistic.of, rows, value, deviation)
    return NoisyMatrix(statistic.of, value, deviation)


def _fixed_point_rows(statistic: Statistic) -> Tensor | None:
    """The rows as they were used, if the statistic keeps them in this form; without them a pair only costs more time."""
    whole, units = getattr(statistic, "_whole", None), getattr(statistic, "_units", None)
    rows: Tensor | None = getattr(statistic, "_rows", None) if whole is None or units is None else whole * units
    return rows


def _objective_clue(mechanism: ObjectivePerturbation | GaussianObjective, weights: Tensor) -> Clue:
    """The weights of GCON, or of its Gaussian relative."""
    (plan,), mask = mechanism.plans, mechanism.mask
    noisy = plan.needs_noise
    if isinstance(mechanism, ObjectivePerturbation):
        law: RadialNoise | GaussianNoise = RadialNoise(mechanism.plans[0].noise_rate if noisy else 1.0)
    else:
        law = GaussianNoise(mechanism.plans[0].scale if noisy else 1.0)
    return ObjectiveWeights(
        rows=lambda edges: mechanism.aggregates.of(edges)[mask],
        targets=mechanism.targets,
        loss=plan.loss,
        ridge=plan.total_ridge,
        noise=law,
        value=weights,
    )


def _output_clue(mechanism: OutputPerturbation, weights: Tensor) -> Clue:
    """The first graph is solved; a neighbouring one by one Newton step from there, which is all but exact."""
    (plan,), mask = mechanism.plans, mechanism.mask
    columns = torch.arange(mechanism.targets.shape[1])
    known: list[Tensor] = []

    def solution(edges: EdgeList) -> Tensor:
        objective = without_noise(mechanism.aggregates.of(edges)[mask], mechanism.targets, plan.loss, plan.ridge)
        if not known:
            known.append(minimise(objective, torch.tensor([1e-9], dtype=torch.float64))[0])
        inverse = torch.linalg.inv(objective.hessian(known[0], columns))
        return (known[0] - torch.bmm(inverse, objective.gradient(known[0])[:, :, None])[:, :, 0]).T

    return NoisyMatrix(solution, weights, plan.scale)


def _gradient_clue(mechanism: NoisyGradients, weights: Tensor) -> Clue:
    """Only the last weights are released, and their law has no formula: are they nearer to those without noise?"""
    plan = gradient_plan(math.inf, 0.0, sampling=1.0, steps=mechanism.plan.steps, clip=mechanism.plan.clip)
    exact = replace(mechanism, plan=plan)
    return NoisyMatrix(lambda edges: exact.apply(edges, SeededRandomness(0)), weights, 0.0)


def released_clues(model: Model, nodes: PublicNodes) -> tuple[Clue, ...]:
    """What a model tells whoever reads it; nothing if it cannot be rebuilt.

    Args:
        model: a release.
        nodes: the public nodes that it was trained on.

    Privacy:
        Reads released and public values only.
    """
    if isinstance(model, ObjectiveModel):
        return (_weights(model, nodes),)
    return _moments(model, nodes) if isinstance(model, MomentsModel) else ()


def _weights(model: ObjectiveModel, nodes: PublicNodes) -> Clue:
    plan: Any = model.receipt.plan
    expand = "labelled" if plan["num_labelled"] == int(nodes.train_mask.sum()) else "all"
    rows = training_rows(nodes, model.encoder, expand)  # type: ignore[arg-type]
    encoded, schemes = model.encoder.encode(nodes.features), model.schemes
    return ObjectiveWeights(
        rows=lambda edges: propagate(edges, encoded, schemes)[rows.mask],
        targets=rows.targets,
        loss=loss_by_name(model.loss, nodes.num_classes),
        ridge=plan["ridge"] + plan["extra_ridge"],
        noise=RadialNoise(plan["noise_rate"] or 1.0),
        value=model.weights,
    )


def _moments(model: MomentsModel, nodes: PublicNodes) -> tuple[Clue, ...]:
    return (*_statistics(model, nodes), *_tables(model), *_right_answers(model, nodes))


def _statistics(model: MomentsModel, nodes: PublicNodes) -> Iterator[Clue]:
    """The edge-free model is trained again; if that gives other statistics than the released ones, nothing is told."""
    free = learn_without_edges(nodes, seed=_SEED)
    directions = EdgeMoments(free.rows)
    statistics = [directions, EdgeMoments(counted_rows(free.answers)), directions][: len(model.statistics)]
    pairs = list(zip(statistics, model.statistics, strict=True))
    if all(
        statistic.name == noisy.name and math.isclose(statistic.sensitivity, noisy.sensitivity, rel_tol=1e-9)
        for statistic, noisy in pairs
    ):
        yield from (statistic_clue(*pair) for pair in pairs)


def _tables(model: MomentsModel) -> Iterator[Clue]:
    """The last table was counted by the codes in the release; one before it by those of the answers without counts."""
    if model.counts is not None:
        before = [with_labels(model.answers, model.labels).argmax(dim=1)] * (len(model.tables) - 1)
        for table, counted in zip(model.tables, [*before, model.counts.codes], strict=True):
            yield NoisyTable(codes=counted, value=table.value, rate=table.rate, one_way=table.one_way)


def _right_answers(model: MomentsModel, nodes: PublicNodes) -> Iterator[Clue]:
    """The count of validation nodes that owners answer right, which the two ends of an edge can change."""
    asked, settings = nodes.validation_mask, model
    if settings.right is not None and settings.asked == int(asked.sum()):
        way, rows = owners_way(model.best_answers, model.labels, model.counts, settings.homophily)

        def right(edges: EdgeList) -> int:
            scores = scores_with_own_edges(way, rows, edges, nodes.num_classes)
            return int((scores.argmax(dim=1) == nodes.labels)[asked].sum())

        plan: Any = model.receipt.plan
        yield NoisyNumber(right, settings.right, float(plan["answer_epsilon"]) / ENDS_OF_AN_EDGE)
