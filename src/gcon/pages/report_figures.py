"""The report's figures as SVG text that goes straight into an HTML page and follows its colours.

Colours are drawn as marks that are replaced by the page's CSS variables, so one figure serves light and dark. Text stays
text. Without dates and with fixed ids, equal records give equal bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from gcon.errors import MissingExtraError
from gcon.pages.report import OPERATOR_ONLY, ModelScores, ReportData, mean_and_deviation
from gcon.pages.svg import inline_svg, svg_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT, MAIN, SECOND = "#010a01", "#010a02", "#010a03", "#010a04"
REFERENCES = {
    "edge-free": ("#010a05", ":"),
    "one-hop": ("#010a06", "--"),
    "self-training": ("#010a07", "-."),
    "non-private": ("#010a08", (0, (8, 3))),
}
PAPER = "#010a09"
WIDTH = 4.6  # inches: a phone shows all of it, in letters that can be read
_VARIABLES = {INK: "ink", FAINT: "faint", MAIN: "main", SECOND: "second", PAPER: "objective"} | {
    colour: kind for kind, (colour, _) in REFERENCES.items()
}


def check_matplotlib() -> None:
    """Raise `MissingExtraError` unless figures can be drawn; worth asking before hours of work."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtraError("matplotlib", extra="report") from None


def accuracy_figure(data: ReportData) -> str:
    """Accuracy with own edges against epsilon: mean and standard deviation over runs, and reference lines."""
    figure, axes = _canvas(WIDTH, 3.4)
    budgets = [model.epsilon or 0.0 for model in data.private]
    values = [mean_and_deviation(model.own_edges) for model in data.private]
    means = [mean for mean, _ in values]
    axes.fill_between(
        budgets, [mean - sd for mean, sd in values], [mean + sd for mean, sd in values], color=MAIN, alpha=0.25, lw=0
    )
    axes.plot(budgets, means, color=MAIN, marker="o", lw=2, label="private, own edges (band: ± one std. deviation)")
    if papers := data.of_kind("paper"):
        levels = [mean_and_deviation(model.own_edges)[0] for model in papers]
        name = f"{papers[0].name}, own edges"
        axes.plot(
            [model.epsilon or 0.0 for model in papers], levels, color=PAPER, marker="s", lw=1.4, ls=":", label=name
        )
    for kind, (colour, style) in REFERENCES.items():
        for model in data.of_kind(kind):
            level, spread = mean_and_deviation(model.own_edges or model.none)
            read = "own edges" if model.own_edges else "no edge read"
            axes.axhspan(level - spread, level + spread, color=colour, alpha=0.1, lw=0)
            axes.axhline(level, color=colour, linestyle=style, lw=1.6, label=f"{model.name}, {read}")
    axes.set_xscale("log")
    axes.set_xticks(budgets, [f"{budget:g}" for budget in budgets])
    axes.minorticks_off()
    axes.set_xlabel("privacy budget epsilon")
    axes.set_ylabel("correct labels, test nodes")
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.45, -0.2), fontsize=9, handlelength=3.2)
    _mark(axes)
    return _svg(figure, "accuracy", "Accuracy against epsilon")


def noise_figure(data: ReportData) -> str:
    """The noise over what one edge can change, by budget."""
    figure, axes = _canvas(WIDTH, 2.7)
    levels = sorted(data.noise, key=lambda level: level.epsilon)
    names = [f"{level.epsilon:g}" for level in levels]
    bars = axes.bar(names, [level.noise_to_edge for level in levels], color=MAIN, alpha=0.75, width=0.55)
    axes.bar_label(bars, [f"{level.noise_to_edge:.4g}" for level in levels], padding=3)
    axes.axhline(1.0, color=INK, linestyle="--", lw=1, label="noise as large as one edge")
    axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), fontsize=9)
    axes.set_ylim(0, 1.18 * max(1.0, *(level.noise_to_edge for level in levels)))
    axes.set_xlabel("privacy budget epsilon")
    axes.set_ylabel("noise / one edge")
    return _svg(figure, "noise", "Noise by budget")


def access_figure(data: ReportData) -> str:
    """Every model under the kinds of access, side by side."""
    figure, axes = _canvas(WIDTH - 1.95, 0.9 + 0.36 * len(data.models))
    kinds: tuple[tuple[str, Callable[[ModelScores], Sequence[float]], str, str, float], ...] = (
        ("none", lambda model: model.none, SECOND, "s", 0.2),
        ("cached", lambda model: model.cached, PAPER, "D", 0.0),
        ("own edges", lambda model: model.own_edges, MAIN, "o", -0.2),
    )
    for label, scores_of, colour, marker, shift in kinds:
        points = [(place, scores) for place, model in enumerate(data.models) if (scores := scores_of(model))]
        values = [mean_and_deviation(scores) for _, scores in points]
        if points:
            axes.errorbar(
                [mean for mean, _ in values],
                [place - shift for place, _ in points],
                xerr=[spread for _, spread in values],
                fmt=marker,
                color=colour,
                capsize=3,
                label=label,
            )
    axes.set_yticks(range(len(data.models)), [_title(model) for model in data.models], fontsize=9)
    axes.invert_yaxis()
    axes.set_xlabel("correct labels (± one std. deviation)", fontsize=9)
    axes.legend(
        frameon=False, loc="upper center", bbox_to_anchor=(0.1, -0.6 / (0.36 * len(data.models))), ncols=3, fontsize=9
    )
    _mark(axes, side="right")  # over the names, which take half of the width
    return _svg(figure, "access", "Accuracy by access")


def confusion_figure(data: ReportData) -> str:
    """Counts by true and predicted class; the deeper the colour, the larger the share of its row."""
    from matplotlib.patches import Rectangle

    size = len(data.class_names)
    side = min(6.4, 1.9 + 0.5 * size)
    figure, axes = _canvas(side, side * 0.9)
    for row, counts in enumerate(data.confusion):
        for column, count in enumerate(counts):
            share = count / max(1, sum(counts))
            axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=MAIN, alpha=0.45 * share, lw=0))
            axes.text(column, row, str(count), ha="center", va="center")
    axes.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5), xlabel="predicted class", ylabel="true class")
    long = max(map(len, data.class_names)) > 4
    slanted: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if long else {}
    axes.set_xticks(range(size), data.class_names, **slanted)
    axes.set_yticks(range(size), data.class_names)
    axes.tick_params(length=0)
    axes.grid(False)
    return _svg(figure, "confusion", "Confusion matrix")


def reliability_figure(data: ReportData) -> str:
    """How often the model is right at each level of its own sureness; on the diagonal its word can be taken."""
    figure, axes = _canvas(WIDTH, 3.8)
    seen = [entry.confidence for entry in data.reliability]
    pad = max(0.001, 0.08 * (max(seen) - min(seen)))
    axes.plot([0, 1], [0, 1], color=INK, linestyle="--", lw=1, label="perfectly calibrated")
    right = [entry.accuracy for entry in data.reliability]
    axes.plot(seen, right, color=MAIN, lw=1.2, marker="o", label="the model (a dot: one tenth of the nodes)")
    axes.set(xlim=(max(0.0, min(seen) - pad), min(1.0, max(seen) + pad)), ylim=(0, 1.15))
    axes.set(xlabel="probability of the predicted class", ylabel="share that is right")
    axes.legend(frameon=False, loc="upper left", fontsize=9)
    return _svg(figure, "calibration", "Reliability")


def _title(model: ModelScores) -> str:
    return model.name if model.epsilon is None else f"{model.name}, epsilon {model.epsilon:g}"


def _canvas(width: float, height: float) -> tuple[Figure, Axes]:
    check_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    axes = figure.add_subplot()
    axes.patch.set_alpha(0)
    for spine in axes.spines.values():
        spine.set_color(FAINT)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(color=FAINT, labelcolor=INK)
    axes.grid(True, color=FAINT, alpha=0.5, lw=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def _mark(axes: Axes, *, side: Literal["left", "right"] = "left") -> None:
    axes.set_title(OPERATOR_ONLY, fontsize=9, fontweight="bold", loc=side)


def _svg(figure: Figure, name: str, title: str) -> str:
    """The figure for the inside of the page, in the page's colours."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_color(INK)
    drawn = svg_text(figure, name, transparent=True)
    for colour, variable in _VARIABLES.items():
        drawn = drawn.replace(colour, f"var(--{variable})")
    return inline_svg(drawn, name, title)
