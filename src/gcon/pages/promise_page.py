"""What index.html shows: what the model can give away about connections, with a dial for epsilon, and what accuracy costs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gcon.mechanisms.gaussian_curve import gaussian_multiplier
from gcon.methods.model import Model
from gcon.pages import measured
from gcon.pages.dial import HIGHEST, LOWEST, STEPS, dial_of
from gcon.privacy.attacker import best_advantage, best_true_positive_rate, right_at_most
from gcon.privacy.budget import MOST_EDGES, NOTHING, protected_change
from gcon.privacy.receipt import Receipt

FALSE_ALARMS = 0.01


def promise_values(model: Model) -> dict[str, object]:
    """The values of promise.html.

    Privacy:
        Reads the released model's receipt, which is public, and committed measurements of public graphs.
    """
    dial, method, receipt = dial_of(model), model.method, model.receipt
    budget = dial.budget
    advantage = best_advantage(budget)
    graphs = {name: measured.graph_title(name) for name in measured.graphs()}
    measured_budgets, measurements = measured.measurements(method)
    edges, several = protected_change(record=receipt.plan).edges, several_edges(model)
    return {
        "connections": "one connection" if edges == 1 else f"any {edges} connections together",
        "several": several,
        "dial": dial,
        "sentences": model.statement().sentences,
        "reads_nothing": receipt.budget == NOTHING,
        "advantage": advantage,
        "right": right_at_most(budget),
        "total": receipt.total,
        "right_in_all": right_at_most(receipt.total),
        "found": best_true_positive_rate(budget, FALSE_ALARMS),
        "shown": math.ceil(50 * (1 + advantage) - 1e-9),  # dots of 100
        "multiplier": gaussian_multiplier(budget.epsilon, budget.delta) if method == "moments" else None,
        "own_noise": _own_noise(receipt),
        "graphs": graphs,
        "first_graph": receipt.data_set if receipt.data_set in graphs else next(iter(graphs)),
        "legend": measured.legend(method),
        "compared": measured.comparisons(method),
        "budgets": [budget for budget in measured_budgets if budget != "epsilon inf"],
        "measured_budgets": measured_budgets,
        "measurements": measurements,
        "facts": {
            "start": budget.epsilon,
            "delta": budget.delta,
            "low": LOWEST,
            "high": HIGHEST,
            "steps": STEPS,
            "falseAlarms": FALSE_ALARMS,
            "shape": dial.shape,
            "several": several,
            **measured.chart_facts(method),
        },
    }


def several_edges(model: Model, numbers: Sequence[int] = range(1, MOST_EDGES + 1)) -> list[dict[str, float]]:
    """For some numbers of connections, 1 to 10, that change together: what is promised, and how often guesses are right at most.

    Where nothing is promised, guesses may always be right. Empty for a model without a promise.
    """
    found = model.by_edges(numbers)
    return [
        {
            "edges": edges,
            "epsilon": 0.0 if budget is None else budget.epsilon,
            "delta": 1.0 if budget is None else budget.delta,
            "right": 1.0 if budget is None else right_at_most(budget),
        }
        for edges, budget in found.items()
    ]


def _own_noise(receipt: Receipt) -> str:
    """What the receipt says about the noise that was really added."""
    if not receipt.keeps_promise:
        return "This model itself keeps no promise, whatever its noise."
    distance, rate, ridge = (receipt.plan.get(name) for name in ("distance", "noise_rate", "ridge"))
    if isinstance(distance, int | float) and distance > 0:
        return (
            f"The receipt of this model says: {1 / (distance * protected_change(record=receipt.plan).edges):.6g} times."
        )
    if isinstance(rate, int | float) and isinstance(ridge, int | float):
        return f"The receipt of this model says: noise rate {rate:.6g}, ridge {ridge:.6g}."
    return "The receipt of this model names no noise."
