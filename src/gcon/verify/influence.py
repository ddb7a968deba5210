"""The range that the edge influence Psi can lie in, from restart a, steps m and clip p alone (docs/proofs/edge-influence.md).

From above: the paper's Lemma 2, 2 sum_(t=1..m) (1-a)^t for rows of length 1, whose diameter is at most 2.

From below: two nodes without other edges. Joining them moves both rows by half of (1 - r_m) times their distance, with r_0 = 1
and r_t = (1-a)(1-2p) r_(t-1) + a, so no bound can be below (1 - r_m) times the diameter. The diameter of rows that were
centred at their mean and then scaled to length 1 is above sqrt 2: the rows before scaling sum to 0, so every row has another one
at an angle of more than 90 degrees. Without a centre nothing is known of the diameter.
"""

from __future__ import annotations

import math
from typing import Any

from gcon.verify.arithmetic import digits, finite, shown
from gcon.verify.folder import Folder
from gcon.verify.steps import Steps

_ROOM = digits.mpf(10) ** -8  # relative; allowances for rounding


def check_influence(folder: Folder, steps: Steps) -> Any:
    """Psi of the plan, held against its range."""
    settings, influence = folder.settings, finite(folder.plan, "edge_influence", above=False)
    restart, clip = digits.mpf(settings["restart"]), digits.mpf(settings["clip"])
    counts = [math.inf if count == "inf" else count for count in settings["steps"]]
    most = sum(_lemma_two(restart, count) for count in counts) / len(counts)
    steps.check(
        f"The edge influence Psi = {shown(influence)} is at most that of rows of length 1 over steps {settings['steps']} with "
        f"restart {settings['restart']!r}, the mean of 2 sum_(t=1..m) (1-a)^t = {shown(most)}",
        bool(influence <= most * (1 + _ROOM)),
    )
    if influence > 0 and folder.document["encoder"]["centre"]:
        least = digits.sqrt(2) * sum(_lone_pair(restart, clip, count) for count in counts) / len(counts)
        steps.check(
            f"It is at least that of two lone nodes among rows centred at their mean, sqrt 2 times the mean of 1 - r_m = "
            f"{shown(least)}",
            bool(influence >= least * (1 - _ROOM)),
        )
    return influence


def _lemma_two(restart: Any, count: float) -> Any:
    if count == 0 or restart == 1:
        return digits.mpf(0)
    if restart == 0:
        return digits.mpf(2 * count)
    left = 0 if math.isinf(count) else (1 - restart) ** int(count)
    return 2 * (1 - restart) / restart * (1 - left)


def _lone_pair(restart: Any, clip: Any, count: float) -> Any:
    """1 - r_m; r_m falls to its limit a/(1 - (1-a)(1-2p))."""
    if count == 0 or restart == 1:
        return digits.mpf(0)
    kept = (1 - restart) * (1 - 2 * clip)
    limit = restart / (1 - kept)
    return 1 - limit - (0 if math.isinf(count) else (1 - limit) * kept ** int(count))
