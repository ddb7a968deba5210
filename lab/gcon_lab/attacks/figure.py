"""ROC curves on logarithmic axes, with what a promise allows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gcon_lab.attacks.roc import Roc, most_true_positives
from gcon_lab.tables import svg_text

_LEAST = 1e-3
_STYLES = ("-", "--", "-.", ":")


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
