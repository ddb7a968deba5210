"""The white-box evidence in a release folder: its weights or statistics, and what they were computed from, rebuilt."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from gcon.edges.edge_list import EdgeList
from gcon.edges.schemes import propagate
from gcon.learn.believed_counts import with_labels
from gcon.learn.edge_free import learn_without_edges
from gcon.learn.training_rows import training_rows
from gcon.mechanisms.counts import ENDS_OF_AN_EDGE
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.losses import loss_by_name
from gcon.methods.evidence import scores_with_own_edges
from gcon.methods.graph_facts import counted_rows
from gcon.methods.model import Model
from gcon.methods.moments import MomentsModel, owners_way
from gcon.methods.objective import ObjectiveModel
from gcon.nodes import PublicNodes
from gcon_lab.attacks.view import Evidence
from gcon_lab.attacks.white_box import NoisyNumber, NoisyTable, ObjectiveWeights
from gcon_lab.audits.privacy_loss import RadialNoise
from gcon_lab.experiments.attacks.evidence import statistic_evidence

_SEED = 0  # of the edge-free networks, the default; a release does not name it


def released_evidence(model: Model, nodes: PublicNodes) -> tuple[Evidence, ...]:
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


def _weights(model: ObjectiveModel, nodes: PublicNodes) -> Evidence:
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


def _moments(model: MomentsModel, nodes: PublicNodes) -> tuple[Evidence, ...]:
    return (*_statistics(model, nodes), *_tables(model), *_right_answers(model, nodes))


def _statistics(model: MomentsModel, nodes: PublicNodes) -> Iterator[Evidence]:
    """The edge-free model is trained again; if that gives other statistics than the released ones, nothing is told."""
    free = learn_without_edges(nodes, seed=_SEED)
    directions = EdgeMoments(free.rows)
    statistics = [directions, EdgeMoments(counted_rows(free.answers)), directions][: len(model.statistics)]
    pairs = list(zip(statistics, model.statistics, strict=True))
    if all(
        statistic.name == noisy.name and math.isclose(statistic.sensitivity, noisy.sensitivity, rel_tol=1e-9)
        for statistic, noisy in pairs
    ):
        yield from (statistic_evidence(*pair) for pair in pairs)


def _tables(model: MomentsModel) -> Iterator[Evidence]:
    """The last table was counted by the codes in the release; one before it by those of the answers without counts."""
    if model.counts is not None:
        before = [with_labels(model.answers, model.labels).argmax(dim=1)] * (len(model.tables) - 1)
        for table, counted in zip(model.tables, [*before, model.counts.codes], strict=True):
            yield NoisyTable(codes=counted, value=table.value, rate=table.rate)


def _right_answers(model: MomentsModel, nodes: PublicNodes) -> Iterator[Evidence]:
    """The count of validation nodes that owners answer right, which the two ends of an edge can change."""
    asked, settings = nodes.validation_mask, model
    if settings.right is not None and settings.asked == int(asked.sum()):
        way, rows = owners_way(model.best_answers, model.labels, model.counts, settings.homophily)

        def right(edges: EdgeList) -> int:
            scores = scores_with_own_edges(way, rows, edges, nodes.num_classes)
            return int((scores.argmax(dim=1) == nodes.labels)[asked].sum())

        plan: Any = model.receipt.plan
        yield NoisyNumber(right, settings.right, float(plan["answer_epsilon"]) / ENDS_OF_AN_EDGE)
