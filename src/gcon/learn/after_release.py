"""The ensemble once moments are released: features rescaled by them join it.

Free: reads released and public numbers only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from torch import Tensor

from gcon.learn.edge_free import PENALTIES, EdgeFree
from gcon.learn.ensemble import Ensemble, pseudo_labels
from gcon.learn.rescaling import FILTERS, rescaling

TAUGHT_SHARE = 0.8  # of the unlabelled nodes; answers that have seen the graph may teach more than edge-free ones


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class AfterMoments:
    """What moments make of the edge-free model.

    Attributes:
        free: the edge-free model.
        answers: class probabilities of all nodes.
        judged: those of the judges, without what their own labels taught.
        ensemble: with members on rescaled features of the sampled nodes.
        rescaled: the first of these features.
    """

    free: EdgeFree
    answers: Tensor
    judged: Tensor
    ensemble: Ensemble
    rescaled: Tensor


def after_moments(free: EdgeFree, moments: Tensor) -> AfterMoments:
    """The ensemble with members on features rescaled by moments of its directions."""
    rows = free.sample.at(free.rows)
    views = [rescaling(free.rows, moments, ridge=ridge, power=power)(rows) for ridge, power in FILTERS]
    ensemble = free.ensemble.taught(views, PENALTIES)
    lesson = pseudo_labels(ensemble.answers, free.sample.nodes, TAUGHT_SHARE)
    ensemble = ensemble.taught(views, PENALTIES, lesson)
    answers = free.sample.everywhere(ensemble.answers, free.rows)
    return AfterMoments(free=free, answers=answers, judged=ensemble.judged, ensemble=ensemble, rescaled=views[0])
