"""The ensemble once moments are released: features rescaled by them join it, and then the released sums.

Free: reads released and public numbers only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from gcon.learn.edge_free import PENALTIES, EdgeFree
from gcon.learn.ensemble import Ensemble, Rows, View, view_of
from gcon.learn.rescaling import FILTERS, rescaling

_SUM_PENALTIES = (1.0, 10.0)
TAUGHT_SHARE = 0.8  # of the unlabelled nodes; answers that have seen the graph may teach more than edge-free ones
_LEAST_ANSWER, _LEAST_SCALE = 1e-4, 1e-12


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class AfterMoments:
    """What moments make of the edge-free model.

    Attributes:
        answers: class probabilities of all nodes.
        ensemble: with members on rescaled features.
        rescaled: the first of these features.
    """

    answers: Tensor
    ensemble: Ensemble
    rescaled: View

    def with_sums(self, sums: Tensor) -> Tensor:
        """Answers with members on released sums too: beside the answers, alone, and beside rescaled features."""
        heard = view_of(_standard(sums.double()))
        own = view_of(_standard(self.answers.double().clamp_min(_LEAST_ANSWER).log()))
        ensemble = self.ensemble
        views = ensemble.sampled([_beside(own, heard), heard, _beside(self.rescaled, heard)])
        return ensemble.taught(views, _SUM_PENALTIES).taught(views, _SUM_PENALTIES, TAUGHT_SHARE).answers


def after_moments(free: EdgeFree, moments: Tensor) -> AfterMoments:
    """The ensemble with members on features rescaled by moments of its directions."""
    ensemble, rows = free.ensemble, free.rows
    rescaled = [view_of(rows, rescaling(rows, moments, ridge=ridge, power=power)) for ridge, power in FILTERS]
    views = ensemble.sampled(rescaled)
    ensemble = ensemble.taught(views, PENALTIES).taught(views, PENALTIES, TAUGHT_SHARE)
    return AfterMoments(answers=ensemble.answers, ensemble=ensemble, rescaled=rescaled[0])


def _beside(first: View, second: View) -> View:
    def opened() -> Rows:
        left, right = first(), second()
        return lambda nodes: torch.cat([left(nodes), right(nodes)], dim=1)

    return opened


def _standard(rows: Tensor) -> Tensor:
    """Columns of mean 0, all divided by the deviation of the whole; float32."""
    centred = rows - rows.mean(dim=0)
    return (centred / max(float(centred.std()), _LEAST_SCALE)).float()
