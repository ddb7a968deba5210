"""The white-box evidence in a release folder: its weights or statistics, and what they were computed from, rebuilt."""

from __future__ import annotations

import math
from typing import Any

from gcon.edges.schemes import propagate
from gcon.learn.after_release import after_moments
from gcon.learn.edge_free import learn_without_edges
from gcon.learn.training_rows import training_rows
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.losses import loss_by_name
from gcon.mechanisms.neighbour_rows import NeighbourRows
from gcon.mechanisms.statistic import Statistic
from gcon.methods.graph_facts import counted_rows
from gcon.methods.model import Model
from gcon.methods.moments import MomentsModel, believed_moments, spoken_rows
from gcon.methods.objective import ObjectiveModel
from gcon.nodes import PublicNodes
from gcon_lab.attacks.view import Evidence
from gcon_lab.attacks.white_box import ObjectiveWeights
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
    return _statistics(model, nodes) if isinstance(model, MomentsModel) else ()


def _weights(model: ObjectiveModel, nodes: PublicNodes) -> Evidence:
    plan: Any = model.receipt.plan
    expand = "labelled" if plan["num_labelled"] == int(nodes.train_mask.sum()) else "all"
    rows = training_rows(nodes, model.encoder, expand)  # type: ignore[arg-type]
    encoded, schemes = model.encoder.encode(nodes.features), model.settings.schemes
    return ObjectiveWeights(
        rows=lambda edges: propagate(edges, encoded, schemes)[rows.mask],
        targets=rows.targets,
        loss=loss_by_name(model.settings.loss, nodes.num_classes),
        ridge=plan["ridge"] + plan["extra_ridge"],
        noise=RadialNoise(plan["noise_rate"] or 1.0),
        value=model.weights,
    )


def _statistics(model: MomentsModel, nodes: PublicNodes) -> tuple[Evidence, ...]:
    """The edge-free model is trained again; if that gives other statistics than the released ones, nothing is told."""
    free, first = learn_without_edges(nodes, seed=_SEED), model.statistics[0]
    directions = EdgeMoments(free.rows)
    statistics: list[Statistic] = [directions, EdgeMoments(counted_rows(free.answers))]
    if model.cached is None:
        statistics.append(directions)
    else:
        answers = after_moments(free, believed_moments((first,), free)).answers
        statistics.append(NeighbourRows(spoken_rows(answers, model.settings.homophily)))
    pairs = list(zip(statistics, model.statistics, strict=True))
    same = all(
        statistic.name == noisy.name and math.isclose(statistic.sensitivity, noisy.sensitivity, rel_tol=1e-9)
        for statistic, noisy in pairs
    )
    return tuple(statistic_evidence(*pair) for pair in pairs) if same else ()
