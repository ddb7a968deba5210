"""Settings for a budget: free choices by rehearsal, one paid choice if asked for, defaults for the rest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gcon.choose.paid_restart import RESTARTS, choose_inference_restart
from gcon.choose.rehearsal import Rehearsal, best, combinations, rehearse
from gcon.edges.graph import PrivateGraph
from gcon.errors import InputError
from gcon.methods.objective import Objective
from gcon.nodes import PublicNodes
from gcon.privacy.account import NO_PROMISE, check_charge
from gcon.privacy.budget import NOTHING, Budget, checked_budget, round_down_difference
from gcon.privacy.ledger import Ledger
from gcon.privacy.randomness import Randomness, SystemRandomness

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
        settings: for training (`Objective.train`); their epsilon is what is left after the paid choice.
        choices: every setting with its reason.
        cost: what the ledger was charged for the choice; infinite if its noise came from a seed.
        rehearsals: all scores without edges.
    """

    settings: Objective
    choices: tuple[Choice, ...]
    cost: Budget
    rehearsals: tuple[Rehearsal, ...]


def tune(
    nodes: PublicNodes,
    base: Objective,
    *,
    randomness: Callable[[], Randomness],
    draws: int = 3,
    step: Callable[[str], None] = lambda done: None,
) -> Tuned:
    """Choose settings for a budget from public nodes alone.

    Args:
        nodes: the public side of the graph.
        base: the budget and the defaults.
        randomness: a fresh source of noise for every use.
        draws: rehearsals of each candidate.
        step: told what was done, for a progress bar.

    Privacy:
        Free: there is no argument that could hold an edge.
    """
    rehearsals = rehearse(nodes, combinations(base), draws=draws, randomness=randomness, step=step)
    settings = best(rehearsals).settings
    unpaid = Choice("inference_restart", settings.inference_restart, "default", "only edges can tell: pay")
    return Tuned(settings, (*_free_choices(settings, rehearsals), unpaid), NOTHING, tuple(rehearsals))


def tune_paid(
    graph: PrivateGraph,
    base: Objective,
    *,
    pay: float,
    ledger: Ledger,
    randomness: Callable[[], Randomness],
    draws: int = 3,
    step: Callable[[str], None] = lambda done: None,
) -> Tuned:
    """Choose settings as `tune` does, and buy the inference restart with a part of the budget.

    Args:
        graph: public nodes and private edges; the edges are read after the ledger was charged.
        base: the budget of choice and training together, and the defaults.
        pay: the part of epsilon that buys the inference restart.
        ledger: pays it. Refused, with nothing charged, if its ceiling has no room for the training that is to follow.
        randomness: a fresh source of noise for every use.
        draws: rehearsals of each candidate.
        step: told what was done, for a progress bar.

    Privacy:
        The choice costs (pay, 0) and the settings keep the rest, so that choice and training together cost what was
        asked for.
    """
    check_payment(base, pay)
    whole = checked_budget(base.epsilon, base.delta, graph.nodes.num_nodes)  # of choice and training together
    check_charge(whole, ledger=ledger, randomness=SystemRandomness(), purpose="choice and training")
    budgeted = replace(base, epsilon=round_down_difference(base.epsilon, pay))
    rehearsals = rehearse(graph.nodes, combinations(budgeted), draws=draws, randomness=randomness, step=step)
    winner = best(rehearsals)
    chosen = choose_inference_restart(winner.model, graph, epsilon=pay, ledger=ledger, randomness=randomness())
    settings = replace(winner.settings, inference_restart=RESTARTS[chosen.value])
    cost = chosen.receipt.budget if chosen.receipt.keeps_promise else NO_PROMISE
    words = f"private selection among {len(RESTARTS)} values for epsilon {cost.epsilon:g}"
    paid = Choice("inference_restart", settings.inference_restart, "paid", words)
    return Tuned(settings, (*_free_choices(settings, rehearsals), paid), cost, tuple(rehearsals))


def check_payment(base: Objective, pay: float) -> None:
    """Raise `InputError` unless `pay` is a part of a finite epsilon; worth asking before a ledger is made."""
    if not 0 < pay < base.epsilon < math.inf:
        raise InputError(
            "pay",
            rule="must lie between 0 and a finite epsilon",
            got=pay,
            fix="A tenth of epsilon; training gets the rest.",
        )


def _free_choices(settings: Objective, rehearsals: Sequence[Rehearsal]) -> list[Choice]:
    """What the rehearsals chose, and what stays as it was because only training on the edges could tell."""
    draws = len(rehearsals[0].scores)
    why = f"best of {len(rehearsals)} rehearsals without edges, {draws} draws each"
    trained = "candidates trained on the edges would be releases each"
    return [
        Choice("hidden", settings.encoder.hidden, "free", why),
        Choice("loss", settings.loss, "free", why),
        Choice("ridge", settings.ridge, "free", why),
        Choice("restart", settings.schemes.restart, "default", trained),
        Choice("steps", settings.schemes.steps, "default", "as for the restart"),
    ]
