"""The release's public numbers that the pages compute with, from its receipt."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from gcon.errors import InputError
from gcon.mechanisms.losses import loss_by_name
from gcon.methods.model import Model
from gcon.privacy.budget import NOTHING, Budget

LOWEST, HIGHEST = 0.05, 16.0  # the dial's ends
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


def data_block(name: str, content: object) -> str:
    """JSON inside a page, for its script; nothing in it can end the element that holds it."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return f'<script type="application/json" id="{name}">{text}</script>\n'
