"""Edge influence: proven bounds on how far one edge can move all rows of the aggregates together.

For neighbouring graphs, sum over i of |z_i' - z_i| <= edge influence (Psi of the paper). Three bounds:

- `paper`: 2 sum_{t=1..m} (1 - restart)^t; needs rows of length at most 1 (the paper's Lemma 2, where "=" means "<=").
- `simple`: the same with the diameter of the features instead of 2 (Theorem 0), also for a clipped transition.
- `sharp`: the exact worst case, or close to it (Theorems 1# and 2#), **where it is proven**: one step; every number of
  steps from restart (1 + sqrt 13)/6 = 0.7676 on; and the cells of the table below.

`auto` takes, scheme by scheme, the smallest that is proven for the options in force. Everything else raises. Proofs:
docs/proofs/edge-influence.md.
"""

from __future__ import annotations

import hashlib
import math
import sys
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from gcon.edges.schemes import Schemes
from gcon.errors import InputError, UnprovenBoundError

InfluenceBound = Literal["auto", "paper", "simple", "sharp"]

# From here on the isolated pair is the worst case for every number of steps (3a^2 - a - 1 >= 0).
ISOLATED_PAIR_RESTART = (1 + math.sqrt(13)) / 6

# Below it, for the steps 2, 3, 5, 10 and infinity: proven for all degrees (docs/proofs/edge-influence.md, 7.4).
_SHARP_STEPS = (2, 3, 5, 10, math.inf)
_SHARP = {
    0.1: (1.0908, 1.539001475999944, 2.7855925856187853, 4.961898561897808, 5.586211892246779),
    0.2: (0.905715, 1.2000011839999858, 1.8892817697278743, 2.332242512645089, 2.285716404897803),
    0.3: (0.725325, 0.931876, 1.219414, 1.3252398224645225, 1.209878),
    0.4: (0.600001, 0.710924, 0.786147, 0.818132, 0.731732),
    0.5: (0.500001, 0.529178, 0.555196, 0.553402, 0.504212),
    0.6: (0.4000000000000001, 0.4000000000000001, 0.4000000000000001, 0.4, 0.4),
    0.7: (0.30000000000000004, 0.30000000000000004, 0.30000000000000004, 0.3000000000000001, 0.30000000000000004),
}
PROVEN_CELLS = {
    (restart, steps): psi for restart, row in _SHARP.items() for steps, psi in zip(_SHARP_STEPS, row, strict=True)
}


@dataclass(frozen=True)
class Influence:
    """A proven bound and where it comes from."""

    value: float
    bounds: tuple[str, ...]


@dataclass(frozen=True)
class FeatureExtent:
    """Two public facts about the features: how far apart two rows can be, and how long a row can be."""

    diameter: float
    longest_row: float


def edge_influence(
    schemes: Schemes, extent: FeatureExtent, *, num_nodes: int, bound: InfluenceBound = "auto"
) -> Influence:
    """Psi of the concatenated aggregates: the mean over the schemes of each scheme's bound.

    Args:
        schemes: restart, steps and clip.
        extent: diameter and longest row of the features.
        num_nodes: for the truncation of infinitely many steps.
        bound: which bound to use; `auto` is the smallest proven one.

    Privacy:
        Reads public numbers only.
    """
    check_bound(bound, schemes)
    parts = [one_scheme(schemes, steps, extent, num_nodes, bound) for steps in schemes.steps]
    value = math.fsum(part for part, _ in parts) / schemes.num_blocks
    return Influence(value, tuple(name for _, name in parts))


def check_bound(bound: str, schemes: Schemes) -> None:
    """Refuse an unknown bound, and one that is not proven for these schemes whatever the features are."""
    if bound not in get_args(InfluenceBound):
        raise InputError("influence", rule=f"must be one of {get_args(InfluenceBound)}", got=bound, fix="Use 'auto'.")
    if bound == "sharp":
        for steps in schemes.steps:
            if not sharp_is_proven(schemes, steps):
                raise UnprovenBoundError(_why_unproven(bound, schemes, steps, FeatureExtent(2.0, 1.0)))


def one_scheme(
    schemes: Schemes, steps: float, extent: FeatureExtent, num_nodes: int, bound: InfluenceBound
) -> tuple[float, str]:
    """Of one number of steps: the bound, and which it is."""
    if steps == 0 or schemes.restart == 1:
        return 0.0, "no edge is read"
    options: list[tuple[float, str]] = []
    if bound in ("auto", "paper") and extent.longest_row <= 1:
        options.append((paper_influence(schemes.restart, steps), "paper"))
    if bound in ("auto", "simple"):
        options.append((extent.diameter * simple_influence(schemes.restart, steps, clip=schemes.clip), "simple"))
    if bound in ("auto", "sharp") and sharp_is_proven(schemes, steps):
        sharp = extent.diameter * sharp_influence(schemes.restart, steps)
        if math.isinf(steps):
            # The sharp bound of the limit does not dominate that of a long finite run, so the truncation is added.
            sharp += extent.diameter * schemes.truncation(num_nodes)
        options.append((sharp, "sharp"))
    if not options:
        raise UnprovenBoundError(_why_unproven(bound, schemes, steps, extent))
    value, name = min(options)
    if extent.diameter > 0 and not value >= sys.float_info.min:
        raise InputError(  # an influence of 0 says that no edge matters; it must not come from a product that vanished
            "clip",
            rule="must leave an influence that float64 can hold",
            got=schemes.clip,
            fix="Raise clip, or scale the features.",
        )
    return value, name


def paper_influence(restart: float, steps: float) -> float:
    """2 (1 - a)/a (1 - (1 - a)^m), and 2m at restart 0: for rows of length at most 1."""
    return 2 * simple_influence(restart, steps)


def simple_influence(restart: float, steps: float, *, clip: float = 0.5) -> float:
    """2p sum_{t=1..m} (1 - a)^t per unit of diameter (p = 1/2 without clipping)."""
    if steps == 0:
        return 0.0
    if restart == 0:
        return 2 * clip * steps
    decay = 1.0 if math.isinf(steps) else -math.expm1(steps * math.log1p(-restart)) if restart < 1 else 1.0
    return 2 * clip * (1 - restart) / restart * decay


def sharp_influence(restart: float, steps: float) -> float:
    """The sharp bound per unit of diameter: closed form, or a cell of the table; others raise."""
    if steps == 0 or restart == 1:
        return 0.0
    if steps == 1 or restart >= ISOLATED_PAIR_RESTART:
        return 1 - restart
    if (restart, steps) not in PROVEN_CELLS:
        raise UnprovenBoundError(f"The sharp bound is not proven for restart={restart:g}, steps={steps:g}.")
    return PROVEN_CELLS[restart, steps]


def sharp_is_proven(schemes: Schemes, steps: float) -> bool:
    """Whether the sharp constant counts as proven for these options."""
    if schemes.clip < 0.5:
        return False
    if steps <= 1 or schemes.restart >= ISOLATED_PAIR_RESTART:
        return True
    return (schemes.restart, steps) in PROVEN_CELLS


def _why_unproven(bound: str, schemes: Schemes, steps: float, extent: FeatureExtent) -> str:
    if bound == "paper":
        return (
            f"influence='paper' needs feature rows of length at most 1; the longest is {extent.longest_row:g}. "
            "Scale the rows, or use influence='auto'."
        )
    return (
        f"influence='sharp' is not proven for restart={schemes.restart:g}, steps={steps:g}, clip={schemes.clip:g}. It is "
        f"proven for one step, for restart >= {ISOLATED_PAIR_RESTART:.4f}, and for the tabulated cells (restart 0.1 to "
        "0.9, steps 1, 2, 3, 5, 10, infinity). Use influence='auto'."
    )


def feature_extent(features: Tensor, *, exact_up_to: int = 25_000) -> FeatureExtent:
    """Diameter and longest row of public features, never rounded down.

    Exact (all pairs) for up to `exact_up_to` rows; beyond that, twice the largest distance from the mean row or sqrt(2)
    times the longest row for non-negative features, whichever is smaller.

    Privacy:
        Reads public features only.
    """
    if len(features) > exact_up_to:
        return _measured_extent(features, exact=False)
    features = features.to(torch.float64)
    known = _checksum(features)
    # All pairs of rows take longer than the propagation itself, and many schemes share their features.
    extent = _EXTENTS.get(known)
    if extent is None:
        extent = _measured_extent(features, exact=True)
        if len(_EXTENTS) >= _MOST_EXTENTS:
            _EXTENTS.clear()
        _EXTENTS[known] = extent
    return extent  # not looked up again: another thread may have cleared the memory


_EXTENTS: dict[str, FeatureExtent] = {}
_MOST_EXTENTS = 64
_ROWS_AT_ONCE = 2**18


def _checksum(features: Tensor) -> str:
    digest = hashlib.sha256(str(tuple(features.shape)).encode())
    digest.update(features.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def fixed_point_extent(features: Tensor, units: Tensor) -> FeatureExtent:
    """Diameter and longest row of features that are rounded to multiples of their columns' units."""
    extent, unit = feature_extent(features), float(torch.linalg.vector_norm(units))
    if extent.longest_row == 0:
        return extent
    return FeatureExtent(extent.diameter + unit, extent.longest_row + unit / 2)


def _measured_extent(features: Tensor, *, exact: bool) -> FeatureExtent:
    # Python's own numbers: the smallest number of a short integer type has no opposite there.
    size = max(float(features.max()), -float(features.min()))
    if not math.isfinite(size):
        raise InputError("features", rule="must hold finite numbers", got="others", fix="Replace missing values.")
    if size == 0:
        return FeatureExtent(0.0, 0.0)
    # Measured at the scale of the largest entry: squares of tiny features would vanish.
    extent = _scaled_extent(features / size) if exact else _streamed_extent(features, size)
    longest = extent.longest_row * size
    # Products below the normal numbers may round to 0, which would say that no edge matters.
    diameter = max(extent.diameter * size * (1 + 1e-9), sys.float_info.min)
    # A length within rounding of 1 is 1: rows were scaled to it.
    return FeatureExtent(diameter, longest if longest > 1 + 1e-12 else min(longest, 1.0))


def _scaled_extent(features: Tensor) -> FeatureExtent:
    longest = float(torch.linalg.vector_norm(features, dim=1).max())
    return FeatureExtent(min(_exact_diameter(features), 2 * longest), longest)


def _streamed_extent(features: Tensor, size: float) -> FeatureExtent:
    """Of features / size, in little memory. Any centre will do for the bound, so its own rounding does not matter."""
    parts = features.split(_ROWS_AT_ONCE)
    centre = torch.stack([(part.to(torch.float64) / size).sum(dim=0) for part in parts]).sum(dim=0) / len(features)
    longest = spread = 0.0
    for part in parts:
        rows = part.to(torch.float64) / size
        longest = max(longest, float(torch.linalg.vector_norm(rows, dim=1).max()))
        spread = max(spread, float(torch.linalg.vector_norm(rows - centre, dim=1).max()))
    diameter = min(2 * spread, 2 * longest)
    if float(features.min()) >= 0:
        diameter = min(diameter, math.sqrt(2) * longest)
    return FeatureExtent(diameter + 8 * (features.shape[1] + 4) * 2.0**-53 * longest, longest)


def _exact_diameter(features: Tensor) -> float:
    largest = 0.0
    for start in range(0, features.shape[0], 1024):
        distances = torch.cdist(features[start : start + 1024], features[start:], compute_mode="use_mm_for_euclid_dist")
        largest = max(largest, float(distances.max()))
    # The squared distances come from a matrix product: their error is relative to the longest row, not to them.
    longest = float(features.square().sum(dim=1).max())
    return math.sqrt(largest**2 + 8 * (features.shape[1] + 4) * 2.0**-53 * longest)
