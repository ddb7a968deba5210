"""What a training costs at prices per hour that the reader sets: made of a machine's cores, its memory and its GPU."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from gcon.errors import InputError

_HOUR, _GIB = 3600, 2**30


class Prices(NamedTuple):
    """Dollars per hour. The defaults are round assumptions, nobody's offer: set your own.

    Attributes:
        core: of one processor core.
        gib: of one GiB of memory.
        gpu: of one GPU, without the machine around it.
    """

    core: float = 0.04
    gib: float = 0.005
    gpu: float = 4.0

    def cost(self, result: Mapping[str, Any]) -> float | None:
        """Dollars for one run of what was measured; None if nothing was, or if nobody knows on what machine."""
        if "seconds" not in result or "cores" not in result:
            return None
        memory = result["host_bytes"] / _GIB
        return float(
            result["seconds"] / _HOUR * (result["cores"] * self.core + memory * self.gib + result["gpus"] * self.gpu)
        )


def prices(text: str) -> Prices:
    """Read `core=0.04,gib=0.005,gpu=4`; what is left out keeps its default.

    Example:
        >>> prices("gpu=2.5")
        Prices(core=0.04, gib=0.005, gpu=2.5)
    """
    found: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        name, _, number = part.partition("=")
        try:
            found[name.strip()] = float(number)
        except ValueError:
            found[name.strip()] = math.nan
    if not found.keys() <= set(Prices._fields) or not all(0 <= price < math.inf for price in found.values()):
        raise InputError(
            "prices",
            rule="must be dollars per hour, for core, gib and gpu",
            got=repr(text[:80]),
            fix="For example core=0.04,gib=0.005,gpu=4.",
        )
    return Prices(**found)
