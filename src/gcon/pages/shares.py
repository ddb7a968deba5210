"""Shares of right answers with what is chance in them: counted on public nodes, or by noisy counts that were paid for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from gcon.mechanisms.counts import ENDS_OF_AN_EDGE, geometric_deviation
from gcon.methods.accuracy import beyond
from gcon.methods.model import Model
from gcon.methods.moments import MomentsModel
from gcon.privacy.ledger import LedgerEntry, Outcome
from gcon.privacy.randomness import SystemRandomness

MOST_NOISE = 0.2  # of a share: a noisier one says nothing
PAID_PURPOSE = "accuracy with own edges, to be published"


@dataclass(frozen=True, kw_only=True)
class Share:
    """A share of right answers, with the standard deviation of everything that is chance in it.

    Noise can make it more than 1 or less than 0: it is said as it was released, and drawn as far as it can be.
    """

    value: float
    deviation: float
    nodes: str

    @property
    def low(self) -> float:
        """One standard deviation less; as far as it can be drawn."""
        return _drawn(self.value - self.deviation)

    @property
    def high(self) -> float:
        """One standard deviation more; as far as it can be drawn."""
        return _drawn(self.value + self.deviation)

    @property
    def drawn(self) -> float:
        """The share, as far as it can be drawn."""
        return _drawn(self.value)

    @property
    def words(self) -> str:
        """In per cent, with no digit that is chance alone."""
        return f"{100 * self.value:.{self._digits}f}"

    @property
    def give_or_take(self) -> str:
        """The deviation in per cent, with as many digits."""
        return f"{100 * self.deviation:.{self._digits}f}"

    @property
    def _digits(self) -> int:
        return 1 if self.deviation < 0.03 else 0


def _drawn(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def share_of(right: Tensor, part: str) -> Share:
    """The share of nodes that are answered right."""
    value, count = float(right.double().mean()), len(right)
    return Share(value=value, deviation=_chance(value, count), nodes=f"{count} {part} nodes")


def _chance(value: float, count: int) -> float:
    """The standard deviation of a share of so many nodes; as if one more were right and one more wrong, so never 0."""
    share = (value * count + 1) / (count + 2)
    return math.sqrt(share * (1 - share) / (count + 2))


def _keeps_promise(entry: LedgerEntry) -> bool:
    """Whether what was bought may be published: with noise, from the system's randomness."""
    asked = entry.request
    return (
        entry.outcome is Outcome.RELEASED
        and math.isfinite(asked.cost.epsilon)
        and asked.randomness == SystemRandomness.source
    )


def paid_share(model: Model, entries: Sequence[LedgerEntry] = ()) -> Share | None:
    """How often owners are answered right from their own edges, as far as somebody paid for that number.

    Bought from the ledger for this very model, which its time of release tells, or counted inside its own budget: whichever
    has the least noise and chance in it, and of several such the last one bought. None also if the noise drowns it.
    """
    known: list[tuple[float, float, int, str]] = []
    for entry in reversed(entries):
        bought = entry.result or {}
        if (
            entry.request.purpose == PAID_PURPOSE
            and _keeps_promise(entry)
            and bought.get("model") == model.receipt.time
        ):
            value, noise, count = (float(str(bought[key])) for key in ("micro_f1", "standard_deviation", "nodes"))
            known.append((noise, value, int(count), "test"))
    if isinstance(model, MomentsModel) and model.right is not None and model.own_edges:
        # Else not counted, or counted for answers that nobody is given.
        asked, epsilon = model.asked, float(str(model.receipt.plan["answer_epsilon"]))
        noise = geometric_deviation(epsilon / ENDS_OF_AN_EDGE) / asked if math.isfinite(epsilon) else 0.0
        known.append((noise, model.right / asked, asked, "validation"))
    if not known:
        return None
    # By their noise and sizes, not by their values: whoever chose by these would choose high ones.
    noise, value, number, part = min(known, key=lambda each: math.hypot(each[0], _chance(0.5, each[2])))
    if noise > MOST_NOISE:
        return None
    told = f" {round(value * number)} of them right ({beyond(value)})," if beyond(value) else ""
    return Share(
        value=value,
        deviation=math.hypot(noise, _chance(_drawn(value), number)),
        nodes=f"{number} {part} nodes,{told} by a noisy count",
    )
