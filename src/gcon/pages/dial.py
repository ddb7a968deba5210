"""The dial of the promise page: where it starts and which public numbers of the receipt it computes with."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gcon.errors import InputError
from gcon.mechanisms.losses import loss_by_name
from gcon.methods.model import Model
from gcon.privacy.budget import NOTHING, Budget

LOWEST, HIGHEST = 0.05, 16.0  # the slider's ends
STEPS = 1000  # of the slider, from LOWEST to HIGHEST by equal factors
USUAL = Budget(1.0, 1e-5)  # shown where the release itself has no finite budget
MOST_FEATURES = 1_000_000  # the browser sums so many terms
MOST = 1e300  # beyond it no number is a plan's

Shape = dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Dial:
    """Where the dial starts and what it computes.

    Attributes:
        budget: the release's own, or a usual one where it has none.
        is_own: whether the release has that budget.
        lowest, highest: what can be typed.
        shape: the numbers of Theorem 1; None unless the paper's mechanism made the release, once.
    """

    budget: Budget
    is_own: bool
    lowest: float
    highest: float
    shape: Shape | None

    @property
    def place(self) -> int:
        """Where the slider stands."""
        share = math.log(self.budget.epsilon / LOWEST) / math.log(HIGHEST / LOWEST)
        return round(STEPS * min(1.0, max(0.0, share)))


def dial_of(model: Model) -> Dial:
    """The dial of a release.

    Privacy:
        Reads the receipt, which is public.
    """
    own = model.receipt.budget
    is_own = own != NOTHING and math.isfinite(own.epsilon) and own.epsilon > 0 and own.delta > 0
    budget = own if is_own else USUAL
    return Dial(
        budget=budget,
        is_own=is_own,
        lowest=min(LOWEST, budget.epsilon),
        highest=max(HIGHEST, budget.epsilon),
        shape=_shape(model) if model.method == "paper" else None,
    )


def _shape(model: Model) -> Shape | None:
    """What Theorem 1 is evaluated with; None where the receipt does not say it, or nothing needed noise."""
    plan = model.receipt.plan
    try:
        loss = loss_by_name(str(plan.get("loss")), int(str(plan.get("num_classes"))))
    except (InputError, ValueError):
        return None
    named = {
        "ridge": "ridge",
        "noiseShare": "noise_share",
        "numFeatures": "num_features",
        "numLabelled": "num_labelled",
        "numClasses": "num_classes",
        "edgeInfluence": "edge_influence",
    }
    found = {name: plan.get(key) for name, key in named.items()}
    shape = {
        name: float(value) for name, value in found.items() if isinstance(value, int | float) and abs(value) < MOST
    }
    if len(shape) < len(named) or not all(value > 0 for value in shape.values()):
        return None
    if shape["numFeatures"] > MOST_FEATURES or not shape["noiseShare"] < 1:
        return None
    return shape | {
        "slopeBound": loss.slope_bound,
        "curvatureBound": loss.curvature_bound,
        "curvatureSlopeBound": loss.curvature_slope_bound,
    }
