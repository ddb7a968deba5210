"""Searches for a pair of graphs that moves a statistic further than its claimed sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gcon.edges.schemes import Schemes
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon_lab.audits.pairs import MakeStatistic
from gcon_lab.mechanisms.bilinear_sums import BilinearSums
from gcon_lab.mechanisms.class_sums import ClassSums
from gcon_lab.mechanisms.walk_moments import WalkMoments

# Their worst graphs are large stars, or their bound is a simple one.
_NOT_TIGHT = ("restart 0.2, limit", "restart 0.4, 2 steps, clip 0.3")


@dataclass(frozen=True, eq=False, kw_only=True)
class SearchCase:
    """A statistic as a function of public features and classes.

    Attributes:
        mechanism: always `search`.
        options: the statistic in words.
        make: features and one-hot classes -> the statistic.
        num_nodes: of the graphs.
        tries: pairs that are computed.
        tight: whether small graphs come so near to the sensitivity that one too small by sqrt 2 would be exceeded.
    """

    mechanism: str = "search"
    options: str
    make: MakeStatistic
    num_nodes: int = 6
    tries: int = 800
    tight: bool = True


def searches() -> list[SearchCase]:
    """Every statistic, in its main options."""
    schemes = {
        "restart 0.8, limit": Schemes(restart=0.8, steps=(math.inf,)),
        "restart 0.2, 2 steps": Schemes(restart=0.2, steps=(2,)),
        "restart 0.2, limit": Schemes(restart=0.2, steps=(math.inf,)),
        "restart 0, 1 step": Schemes(restart=0.0, steps=(1,)),
        "restart 0.4, 2 steps, clip 0.3": Schemes(restart=0.4, steps=(2,), clip=0.3),
    }
    return [
        SearchCase(options="edge moments", make=lambda features, _: EdgeMoments(features)),
        SearchCase(options="bilinear sums, self weight 1", make=BilinearSums),
        SearchCase(options="bilinear sums, self weight 4", make=lambda x, y: BilinearSums(x, y, 4.0)),
        *(
            SearchCase(
                options=f"class sums, {words}",
                make=lambda x, y, one=one: ClassSums(x, y, one),  # type: ignore[misc]
                tight=words not in _NOT_TIGHT,
                tries=200 if words in _NOT_TIGHT else 800,
            )
            for words, one in schemes.items()
        ),
        SearchCase(
            options="walk moments, restart 0.2, 2 steps",
            make=lambda features, _: WalkMoments(features, schemes["restart 0.2, 2 steps"]),
        ),
    ]
