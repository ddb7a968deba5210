"""Edge influence: proven bounds on how far one edge can move all rows of the aggregates together.

For neighbouring graphs, sum over i of |z_i' - z_i| <= edge influence (Psi of the paper). Three bounds:

- `paper`: 2 sum_{t=1..m} (1 - restart)^t; needs rows of length at most 1 (the paper's Lemma 2, where "=" means "<=").
- `simple`: the same with the diameter of the features instead of 2 (Theorem 0), also for a clipped transition.
- `sharp`: the exact worst case, or close to it (Theorems 1# and 2#), **where it is proven**: one step; every number of
  steps from restart (1 + sqrt 13)/6 = 0.7676 on; and the cells of the table below.

`auto` takes, scheme by scheme, the smallest that is proven for the options in force. Everything else raises. Class sums
have a smaller constant of their own, `class_sum_influence`. Proofs: docs/proofs/edge-influence.md, class-sums.md.
"""

from __future__ import annotations

import hashlib
import math
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import torch
from torch import Tensor

from gcon.edges.schemes import Schemes
from gcon.errors import InputError, UnprovenBoundError
from gcon.mechanisms.sharp import searched_supremum

InfluenceBound = Literal["auto", "paper", "simple", "sharp"]

# From here on the isolated pair is the worst case for every number of steps (3a^2 - a - 1 >= 0).
ISOLATED_PAIR_RESTART = (1 + math.sqrt(13)) / 6

_STEPS = (1, 2, 3, 5, 10, math.inf)
_TABLE = {
    0.1: (0.9, 1.090800, 1.539001, 2.785591, 4.961895, 5.586207),
    0.2: (0.8, 0.905715, 1.200001, 1.889281, 2.332241, 2.285715),
    0.3: (0.7, 0.725325, 0.931876, 1.219414, 1.325239, 1.209878),
    0.4: (0.6, 0.600001, 0.710924, 0.786147, 0.818132, 0.731732),
    0.5: (0.5, 0.500001, 0.529178, 0.555196, 0.553402, 0.504212),
    0.6: (0.4,) * 6,
    0.7: (0.3,) * 6,
    0.8: (0.2,) * 6,
    0.9: (0.1,) * 6,
}
PROVEN_CELLS = {
    (restart, steps): psi for restart, row in _TABLE.items() for steps, psi in zip(_STEPS, row, strict=True)
}

# Class sums: phi beside psi, in the same cells (docs/proofs/class-sums.md, 3).
_CLASS_SUM_TABLE = {
    0.1: (0.856967, 1.398805, 2.596885, 4.780623, 3.950045),
    0.2: (0.710643, 1.055983, 1.770552, 2.318467, 1.616245),
    0.3: (0.567622, 0.765816, 1.147307, 1.276106, 0.855513),
    0.4: (0.454093, 0.564355, 0.703405, 0.757014, 0.527237),
    0.5: (0.358458, 0.420906, 0.451922, 0.465399, 0.372679),
    0.6: (0.282843, 0.303332, 0.313541, 0.314644, 0.282843),
    0.7: (0.3 / math.sqrt(2),) * 5,
    0.8: (0.2 / math.sqrt(2),) * 5,
    0.9: (0.1 / math.sqrt(2),) * 5,
}
PROVEN_CLASS_SUM_CELLS = {
    (restart, steps): phi
    for restart, row in _CLASS_SUM_TABLE.items()
    for steps, phi in zip(_STEPS[1:], row, strict=True)
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
    parts = [_one_scheme(schemes, steps, extent, num_nodes, bound) for steps in schemes.steps]
    value = math.fsum(part for part, _ in parts) / schemes.num_blocks
    return Influence(value, tuple(name for _, name in parts))


def class_sum_influence(schemes: Schemes, extent: FeatureExtent, *, num_nodes: int) -> tuple[Influence, ...]:
    """Scheme by scheme, a bound on the Frobenius change of Z_m' Y by one edge, for non-negative rows of Y of sum at most 1.

    The sharp phi times the diameter where it is proven (Theorem 3#: one step, and the cells of the table); elsewhere the
    edge influence, which always bounds it.

    Args:
        schemes: restart, steps and clip.
        extent: diameter and longest row of the features.
        num_nodes: for the truncation of infinitely many steps.

    Privacy:
        Reads public numbers only.
    """
    return tuple(_one_class_sum(schemes, steps, extent, num_nodes) for steps in schemes.steps)


def _one_class_sum(schemes: Schemes, steps: float, extent: FeatureExtent, num_nodes: int) -> Influence:
    value, name = _one_scheme(schemes, steps, extent, num_nodes, "auto")
    if value > 0 and class_sums_are_proven(schemes, steps):
        truncation = schemes.truncation(num_nodes) if math.isinf(steps) else 0.0
        value, name = min(
            (value, name), (extent.diameter * (class_sum_constant(schemes.restart, steps) + truncation), "phi")
        )
    return Influence(value, (name,))


def class_sum_constant(restart: float, steps: float) -> float:
    """The sharp phi per unit of diameter: (1 - a)/sqrt 2 for one step, else a cell of the table; others raise.

    Example:
        >>> round(class_sum_constant(0.0, 1), 6)
        0.707107
    """
    if steps == 1:
        return (1 - restart) / math.sqrt(2)
    if (restart, steps) not in PROVEN_CLASS_SUM_CELLS:
        raise UnprovenBoundError(f"The class-sum constant is not proven for restart={restart:g}, steps={steps:g}.")
    return PROVEN_CLASS_SUM_CELLS[restart, steps]


def class_sums_are_proven(schemes: Schemes, steps: float) -> bool:
    """Whether the sharp class-sum constant is proven for these options."""
    return schemes.clip == 0.5 and (steps == 1 or (schemes.restart, steps) in PROVEN_CLASS_SUM_CELLS)


def check_bound(bound: str, schemes: Schemes) -> None:
    """Refuse an unknown bound, and one that is not proven for these schemes whatever the features are."""
    if bound not in get_args(InfluenceBound):
        raise InputError("influence", rule=f"must be one of {get_args(InfluenceBound)}", got=bound, fix="Use 'auto'.")
    if bound == "sharp":
        for steps in schemes.steps:
            if not sharp_is_proven(schemes, steps):
                raise UnprovenBoundError(_why_unproven(bound, schemes, steps, FeatureExtent(2.0, 1.0)))


def _one_scheme(
    schemes: Schemes, steps: float, extent: FeatureExtent, num_nodes: int, bound: InfluenceBound
) -> tuple[float, str]:
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
    """The sharp bound per unit of diameter: closed form, or the largest of closed form, table and algorithm."""
    if steps == 0 or restart == 1:
        return 0.0
    if steps == 1 or restart >= ISOLATED_PAIR_RESTART:
        return 1 - restart
    return _sharp_cell(restart, steps)


@lru_cache(maxsize=256)
def _sharp_cell(restart: float, steps: float) -> float:
    candidates = [searched_supremum(restart, steps), PROVEN_CELLS.get((restart, steps), 0.0)]
    if math.isinf(steps):
        candidates.append(2 * (1 - restart) ** 2 / (restart * (3 - restart)))
    return max(candidates)


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
