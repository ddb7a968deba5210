"""The white-box evidence in a release folder: its weights or statistics, and what they were computed from, rebuilt."""

from __future__ import annotations

import math
from typing import Any

from gcon.edges.schemes import propagate
from gcon.learn.edge_free import learn_without_edges
from gcon.learn.pseudo_labels import training_rows
from gcon.mechanisms.losses import loss_by_name
from gcon.methods.moments_model import MomentsModel
from gcon.methods.moments_stages import MomentsEstimate
from gcon.methods.objective_model import ReleasedModel
from gcon.methods.published import PublishedModel
from gcon.nodes import PublicNodes
from gcon_lab.attacks.view import Evidence
from gcon_lab.attacks.white_box import ObjectiveWeights
from gcon_lab.audits.privacy_loss import RadialNoise
from gcon_lab.experiments.attacks.tape import statistics_evidence

_SEED = 0  # of the edge-free networks, the default; a release does not name it


def released_evidence(model: PublishedModel, nodes: PublicNodes) -> tuple[Evidence, ...]:
    """What a model tells whoever reads it; nothing if it cannot be rebuilt.

    Args:
        model: a release.
        nodes: the public nodes that it was trained on.

    Privacy:
        Reads released and public values only.
    """
    if isinstance(model, ReleasedModel):
        return (_weights(model, nodes),)
    return _statistics(model, nodes) if isinstance(model, MomentsModel) else ()


def _weights(model: ReleasedModel, nodes: PublicNodes) -> Evidence:
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
    estimate = MomentsEstimate(nodes, learn_without_edges(nodes, seed=_SEED))
    portions = (*estimate.first_portions(), *estimate.second_portions(model.statistics[:2]))
    same = len(portions) == len(model.statistics) and all(
        portion.statistic.name == noisy.name
        and math.isclose(portion.statistic.sensitivity, noisy.sensitivity, rel_tol=1e-9)
        for portion, noisy in zip(portions, model.statistics, strict=True)
    )
    return tuple(statistics_evidence(portions, model.statistics)) if same else ()
