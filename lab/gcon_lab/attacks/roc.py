"""How good an attack is: the ROC curve, its area, true positives at few false ones, what a promise allows, and a drawing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gcon.errors import InputError
from gcon_lab.tables import svg_text

Floats = NDArray[np.float64]
_LEAST = 1e-3
_STYLES = ("-", "--", "-.", ":")


@dataclass(frozen=True, eq=False)
class Roc:
    """Rates at every cut, from (0, 0) to (1, 1).

    Example:
        >>> import torch
        >>> roc = roc_of(torch.tensor([3.0, 2.0, 1.0, 0.0]), torch.tensor([True, True, False, False]))
        >>> roc.area, roc.true_positives_at(0.01)
        (1.0, 1.0)
    """

    false_positives: Floats
    true_positives: Floats

    @property
    def area(self) -> float:
        """AUC: the chance that a linked pair scores above an unlinked one; ties count one half."""
        return float(np.trapezoid(self.true_positives, self.false_positives))

    def true_positives_at(self, most: float) -> float:
        """The largest measured rate of true positives with a rate of false ones of at most `most`; nothing between cuts."""
        return float(self.true_positives[self.false_positives <= most].max())


def roc_of(scores: Tensor, linked: Tensor) -> Roc:
    """The curve of these scores; equal scores are one cut."""
    values, truth = scores.double().numpy(), linked.numpy().astype(bool)
    if not truth.any() or truth.all():
        raise InputError("linked", rule="must hold both kinds of pairs", got="one kind", fix="Sample both.")
    if np.isnan(values).any():
        raise InputError("scores", rule="must be numbers", got="NaN", fix="Check the model's answers.")
    order = np.argsort(-values, kind="stable")
    values, truth = values[order], truth[order]
    ends = np.flatnonzero(np.append(values[1:] != values[:-1], True))
    hits, alarms = np.cumsum(truth)[ends] / truth.sum(), np.cumsum(~truth)[ends] / (~truth).sum()
    return Roc(np.append(0.0, alarms), np.append(0.0, hits))


def most_true_positives(false_positives: Floats | Sequence[float], epsilon: float, delta: float) -> Floats:
    """What (epsilon, delta) allows for an edge whose presence is a coin's: two lines, and the lower one counts.

    TPR <= e^epsilon FPR + delta, and the same with the roles exchanged, 1 - FPR <= e^epsilon (1 - TPR) + delta.

    Example:
        >>> most_true_positives([0.0, 0.1, 0.5], math.log(3), 0.01).round(4).tolist()
        [0.01, 0.31, 0.8367]
    """
    rates = np.asarray(false_positives, dtype=np.float64)
    if math.isinf(epsilon):
        return np.ones_like(rates)
    low, high = math.exp(epsilon) * rates + delta, 1 - math.exp(-epsilon) * (1 - delta - rates)
    limit: Floats = np.clip(np.minimum(low, high), 0.0, 1.0)
    return limit


def roc_figure(curves: Mapping[str, Roc], *, title: str, promise: tuple[float, float] | None) -> str:
    """An SVG file's text.

    Args:
        curves: by name.
        title: above the drawing.
        promise: (epsilon, delta), drawn as the limit for an edge whose presence is a coin's; None without a promise.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 5.6))
    axes = figure.add_subplot()
    rates = np.logspace(np.log10(_LEAST), 0, 400)
    axes.plot(rates, rates, color="#888888", lw=1, label="guessing")
    if promise is not None:
        words = f"limit of epsilon {promise[0]:g}, delta {promise[1]:g} for a coin-tossed pair"
        axes.plot(rates, most_true_positives(rates, *promise), color="black", lw=2, label=words)
    for place, (name, roc) in enumerate(curves.items()):
        axes.step(
            np.maximum(roc.false_positives, _LEAST),
            np.maximum(roc.true_positives, _LEAST),
            where="post",
            linestyle=_STYLES[place % len(_STYLES)],
            color=f"C{place % 10}",
            lw=1.5,
            label=f"{name} (AUC {roc.area:.3f})",
        )
    axes.set(xscale="log", yscale="log", xlim=(_LEAST, 1), ylim=(_LEAST, 1.05))
    axes.set(xlabel="false positives", ylabel="true positives")
    axes.set_title(title, fontsize=10, loc="left")
    axes.grid(True, alpha=0.3)
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)
    return svg_text(figure, "roc") + "\n"
