"""Settings for a budget: free choices by rehearsal, one paid choice if asked for, defaults for the rest."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from gcon.errors import InputError
from gcon.graphs.graph import PrivateGraph
from gcon.pipeline import Settings
from gcon.privacy.budget import NOTHING, Budget, round_down_difference
from gcon.privacy.ledger import Ledger
from gcon.privacy.randomness import Randomness
from gcon.tune.paid import RESTARTS, choose_inference_restart
from gcon.tune.rehearse import Rehearsal, best, combinations, rehearse

How = Literal["free", "paid", "default"]


@dataclass(frozen=True)
class Choice:
    """One setting, its value, and what the choice rests on."""

    setting: str
    value: object
    how: How
    why: str


@dataclass(frozen=True, eq=False)
class Tuned:
    """What was chosen.

    Attributes:
        settings: for `gcon.pipeline.train`; their epsilon is what is left after the paid choice.
        choices: every setting with its reason.
        cost: what the choice cost.
        rehearsals: all scores without edges.
    """

    settings: Settings
    choices: tuple[Choice, ...]
    cost: Budget
    rehearsals: tuple[Rehearsal, ...]


def tune(
    graph: PrivateGraph,
    base: Settings,
    *,
    pay: float | None = None,
    ledger: Ledger | None = None,
    randomness: Callable[[], Randomness],
    draws: int = 3,
    step: Callable[[str], None] = lambda done: None,
) -> Tuned:
    """Choose settings for a budget.

    Args:
        graph: public nodes and private edges; the edges are read only if `pay` is given.
        base: the budget and the defaults.
        pay: the part of epsilon that buys the inference restart; None leaves its default.
        ledger: pays it.
        randomness: a fresh source of noise for every use.
        draws: rehearsals of each candidate.
        step: told what was done, for a progress bar.

    Privacy:
        Without `pay` nothing depends on edges. With it, the choice costs (pay, 0) and the settings keep the rest, so
        that choice and training together cost what was asked for.
    """
    if pay is not None and not 0 < pay < base.epsilon < math.inf:
        raise InputError(
            "pay",
            rule="must lie between 0 and a finite epsilon",
            got=pay,
            fix="A tenth of epsilon; training gets the rest.",
        )
    if pay is not None and ledger is None:
        raise InputError("ledger", rule="must be given to pay", got=None, fix="Pass the ledger of the data.")
    budgeted = base if pay is None else replace(base, epsilon=round_down_difference(base.epsilon, pay))
    rehearsals = rehearse(graph.nodes, combinations(budgeted), draws=draws, randomness=randomness, step=step)
    winner = best(rehearsals)
    settings, why = winner.settings, f"best of {len(rehearsals)} rehearsals without edges, {draws} draws each"
    choices = [
        Choice("hidden", settings.encoder.hidden, "free", why),
        Choice("loss", settings.loss, "free", why),
        Choice("ridge", settings.ridge, "free", why),
        Choice(
            "restart", settings.schemes.restart, "default", "candidates trained on the edges would be releases each"
        ),
        Choice("steps", settings.schemes.steps, "default", "as for the restart"),
    ]
    cost = NOTHING
    if pay is None or ledger is None:
        choices.append(Choice("inference_restart", settings.inference_restart, "default", "only edges can tell: pay"))
    else:
        chosen = choose_inference_restart(winner.model, graph, epsilon=pay, ledger=ledger, randomness=randomness())
        settings, cost = replace(settings, inference_restart=RESTARTS[chosen.value]), chosen.receipt.budget
        words = f"private selection among {len(RESTARTS)} values for epsilon {pay:g}"
        choices.append(Choice("inference_restart", settings.inference_restart, "paid", words))
    return Tuned(settings, tuple(choices), cost, tuple(rehearsals))
