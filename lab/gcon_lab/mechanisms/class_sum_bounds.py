"""What one edge can change in class sums: a smaller constant than the edge influence (docs/proofs/class-sums.md)."""

from __future__ import annotations

import math

from gcon.edges.schemes import Schemes
from gcon.errors import UnprovenBoundError
from gcon.mechanisms.influence import FeatureExtent, Influence, one_scheme

_STEPS = (2, 3, 5, 10, math.inf)
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
    (restart, steps): phi for restart, row in _CLASS_SUM_TABLE.items() for steps, phi in zip(_STEPS, row, strict=True)
}


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
    value, name = one_scheme(schemes, steps, extent, num_nodes, "auto")
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
