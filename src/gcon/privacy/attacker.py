"""What a budget means for somebody who tries to tell whether an edge is there.

Differential privacy is a statement about tests: no rule that decides from the release whether the edge is present, with
false positive rate f, has a true positive rate above min(e^eps f + delta, 1 - e^-eps (1 - delta - f)).
"""

from __future__ import annotations

import math

from gcon.privacy.budget import Budget


def best_true_positive_rate(budget: Budget, false_positive_rate: float) -> float:
    """The highest true positive rate that any attack can have at this false positive rate.

    Example:
        >>> round(best_true_positive_rate(Budget(1.0, 1e-5), 0.01), 4)
        0.0272
    """
    if budget.epsilon > 700:
        return 1.0
    grow = math.exp(budget.epsilon)
    straight = grow * false_positive_rate + budget.delta
    mirrored = 1 - (1 - budget.delta - false_positive_rate) / grow
    return max(false_positive_rate, min(1.0, straight, mirrored))


def best_advantage(budget: Budget) -> float:
    """The largest difference between true and false positive rate: 0 is blind, 1 is certain.

    Example:
        >>> round(best_advantage(Budget(1.0, 1e-5)), 4)
        0.4621
    """
    if budget.epsilon > 700:
        return 1.0
    grow = math.exp(budget.epsilon)
    return min(1.0, (grow - 1 + 2 * budget.delta) / (grow + 1))


def right_at_most(budget: Budget) -> float:
    """How often guesses are right at most where a coin is right half of the time."""
    return (1 + best_advantage(budget)) / 2


def in_words(budget: Budget) -> str:
    """Both numbers as a sentence."""
    if math.isinf(budget.epsilon):
        return "Nothing is promised: an attacker may be certain."
    return (
        f"An attacker who guesses whether a given edge exists, from a fair coin's start, is right at most "
        f"{50 * (1 + best_advantage(budget)):.1f} % of the time; at 1 % false alarms at most "
        f"{100 * best_true_positive_rate(budget, 0.01):.1f} % of the edges are recognised."
    )
