"""The edge influence Psi, recomputed from what the plan says about it (docs/proofs/edge-influence.md).

Restart a, steps m, clip p and the features' diameter D lead to it by one of three bounds, scheme by scheme: `paper`, the paper's
Lemma 2, 2 sum_(t=1..m) (1-a)^t for rows of length 1; `simple`, p D times the same sum; `sharp`, D times a constant where that is
proven. What the rounding of steps may add comes on top.

The diameter itself cannot be recomputed, for the features are not in the folder. It is at most 2 for rows of length 1. That of
rows which were centred at their mean and then scaled to length 1 is above sqrt 2: the rows before scaling sum to 0, so every row
has another one at an angle of more than 90 degrees.
"""

from __future__ import annotations

import math
from typing import Any

from gcon.verify.arithmetic import digits, finite, shown
from gcon.verify.folder import Folder
from gcon.verify.several_edges import edges_of
from gcon.verify.steps import Steps, UnfitError

_ROOM = digits.mpf(10) ** -8  # relative; allowances for rounding
_SHARP_ROOM = digits.mpf(4) / 10**6  # relative; constants of the table have six digits
_MOST_ROUNDING = digits.mpf(10) ** -3  # relative; what the rounding of steps adds for 2^32 nodes is below it
_RECORD = {"restart", "steps", "clip", "bounds", "diameter", "rounding"}
_NOTHING = "no edge is read"
# Theorem 2#: the sharp constant for steps 2, 3, 5, 10 and infinity.
_SHARP_STEPS = (2, 3, 5, 10, math.inf)
_SHARP = {
    0.1: ("1.090800", "1.539001", "2.785591", "4.961895", "5.586207"),
    0.2: ("0.905715", "1.200001", "1.889281", "2.332241", "2.285715"),
    0.3: ("0.725325", "0.931876", "1.219414", "1.325239", "1.209878"),
    0.4: ("0.600001", "0.710924", "0.786147", "0.818132", "0.731732"),
    0.5: ("0.500001", "0.529178", "0.555196", "0.553402", "0.504212"),
    0.6: ("0.4",) * 5,
    0.7: ("0.3",) * 5,
}


def check_influence(folder: Folder, steps: Steps) -> Any:
    """Psi of the plan, for all edges that it protects, held against what the bounds that it names lead to for one."""
    record, influence = folder.plan["influence"], finite(folder.plan, "edge_influence", above=False)
    if not isinstance(record, dict) or set(record) != _RECORD:
        raise UnfitError("'influence' must say where the edge influence comes from")
    used = {name: folder.settings[name] for name in ("restart", "steps", "clip")}
    counts = [math.inf if count == "inf" else count for count in used["steps"]]
    if not steps.check(
        f"Plan and settings propagate in the same way: restart {used['restart']!r}, steps {used['steps']}, clip {used['clip']!r}",
        all(repr(record[name]) == repr(value) for name, value in (used | {"steps": counts}).items()),
    ):
        raise UnfitError("plan and settings speak of different walks")
    restart, clip = digits.mpf(used["restart"]), digits.mpf(used["clip"])
    bounds, diameter = record["bounds"], finite(record, "diameter", above=False)
    if not isinstance(bounds, list) or len(bounds) != len(counts):
        raise UnfitError("'bounds' must name one bound per scheme")
    parts = [_bound(name, restart, clip, count, diameter) for name, count in zip(bounds, counts, strict=True)]
    least, rounding = sum(parts) / len(parts), finite(record, "rounding", above=False)
    room = _SHARP_ROOM if "sharp" in bounds else _ROOM
    edges = edges_of(folder.plan)
    words = "" if edges == 1 else f", {edges} times: once for every edge"
    steps.check(
        f"The edge influence Psi = {shown(influence)} is that of the bounds {bounds} for features of diameter {shown(diameter)}, "
        f"{shown(least)}, and of rounding, {shown(rounding)}{words}",
        bool(least * (1 - _ROOM) <= influence / edges - rounding <= least * (1 + room))
        and bool(rounding <= _MOST_ROUNDING * least),
    )
    steps.check("Rows of length 1 are at most 2 apart, and so is the diameter", bool(diameter <= 2 * (1 + _ROOM)))
    if influence > 0 and folder.document["encoder"]["centre"]:
        steps.check(
            "Rows that were centred at their mean have a diameter above sqrt 2",
            bool(diameter >= digits.sqrt(2) * (1 - _ROOM)),
        )
    return influence


def _bound(name: Any, restart: Any, clip: Any, count: float, diameter: Any) -> Any:
    """Psi of one scheme."""
    free = count == 0 or restart == 1
    if free != (name == _NOTHING):
        raise UnfitError("a scheme that takes a step, and no other, needs a bound")
    if free:
        return digits.mpf(0)
    if name == "paper":
        return 2 * _powers(restart, count)
    if name == "simple":
        return 2 * clip * diameter * _powers(restart, count)
    if name == "sharp" and clip == 0.5:
        return diameter * _sharp(restart, count)
    raise UnfitError("a bound of that name is not proven for these schemes")


def _powers(restart: Any, count: float) -> Any:
    """sum_(t=1..m) (1-a)^t."""
    if restart == 0:
        return digits.mpf(count)
    left = 0 if math.isinf(count) else (1 - restart) ** int(count)
    return (1 - restart) / restart * (1 - left)


def _sharp(restart: Any, count: float) -> Any:
    """1 - a for one step, and for every number of them from 3a^2 - a - 1 >= 0 on; else a cell of the table."""
    if count == 1 or 3 * restart**2 - restart - 1 >= 0:
        return 1 - restart
    cells = _SHARP.get(float(restart), ())
    if count not in _SHARP_STEPS or not cells:
        raise UnfitError("the sharp bound is not proven for this restart and these steps")
    return digits.mpf(cells[_SHARP_STEPS.index(count)])
