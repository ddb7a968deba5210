"""The paper's four figures from their points: SVG for pages and documents, PNG for everything else.

The background is white and part of the drawing, so it can be read in a dark page, too. Equal points give equal bytes.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gcon_lab.experiments.reproduce.points import ANY, GRAPHS, KINDS, Kind, Panel, Point, lines_of, panels, places_of
from gcon_lab.experiments.sweep.grid import ALL_STEPS, BUDGETS
from gcon_lab.tables import svg_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, with two of Tol's for the seventh and eighth.
BLUE, SKY, GREEN, ORANGE, PINK, RED = "#0072b2", "#56b4e9", "#009e73", "#e69f00", "#cc79a7", "#d55e00"
WINE, OLIVE, INK, GREY = "#882255", "#7d7d2a", "#111111", "#5f666b"

_STAR = (6, 2, 0)  # a six-armed asterisk
_KNOWN: dict[str, tuple[str, Any]] = {
    "GCON": (BLUE, "s"),
    "GCON, honest": (SKY, "D"),
    "DP-SGD": (GREEN, "v"),
    "DPGCN": (ORANGE, "|"),
    "LPGNet": (PINK, "+"),
    "GAP": (RED, "x"),
    "ProGAP": (WINE, _STAR),
    "MLP": (OLIVE, "^"),
    "restart 0.8": (BLUE, "s"),
    "restart 0.6": (RED, "o"),
    "restart 0.4": (ORANGE, "x"),
    "restart 0.2": (GREEN, _STAR),
}
_SPARE = ((PINK, "h"), (WINE, "<"), (OLIVE, ">"), (SKY, "p"), (GREEN, "d"), (ORANGE, "8"))
_DASHES = ((5, 2), (2, 1.5), (9, 2.5), (6, 2, 1.5, 2), (6, 2, 1.5, 2, 1.5, 2), (12, 3, 3, 3))
_GREYS = (INK, GREY, "#8b6f47", "#3d4a52", GREY, "#8b6f47")
_PER_LETTER, _PER_COLUMN = 0.075, 0.75  # inches at the legend's size of text, a little generous
_LOOK: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],  # comes with matplotlib, so text has the same width everywhere
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.edgecolor": "#8a9197",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e2e5e7",
    "grid.linewidth": 0.6,
    "xtick.color": "#8a9197",
    "xtick.labelcolor": "#1d2226",
    "ytick.color": "#8a9197",
    "ytick.labelcolor": "#1d2226",
}


@dataclass(frozen=True)
class LineStyle:
    """One line's look.

    Attributes:
        colour: of line, marks and band.
        marked: whether places are marked.
        layer: higher ones lie above lower ones.
        drawing: the arguments of matplotlib's `plot`.
    """

    colour: str
    marked: bool
    layer: float
    drawing: dict[str, Any]


def styles_of(lines: Mapping[str, Kind]) -> dict[str, LineStyle]:
    """A look for every line, in the order given; unknown names get what the known ones do not use."""
    spare, controls, references = iter(_SPARE * len(lines)), 0, 0
    styles = {}
    for line, kind in lines.items():
        if kind == "control":
            styles[line] = _dashed(_GREYS[controls % len(_GREYS)], _DASHES[controls % len(_DASHES)], width=1.3)
            controls += 1
        elif kind == "non-private":
            styles[line] = _marked(INK, ("v", "o", "^")[references % 3], width=1.0, layer=3)
            references += 1
        else:
            colour, mark = _KNOWN.get(line) or next(spare)
            thick = line == "GCON"
            styles[line] = _marked(colour, mark, width=2.4 if thick else 1.3, layer=6 if thick else 4)
    return styles


def _marked(colour: str, mark: Any, *, width: float, layer: float) -> LineStyle:
    edge = 1.7 if mark in ("|", "+", "x") else 1.1  # marks without an inside need more ink
    size = 7.5 if mark == _STAR else 5.5
    drawing = {"color": colour, "marker": mark, "lw": width, "ms": size, "mew": edge, "mfc": "white", "zorder": layer}
    return LineStyle(colour, True, layer, drawing)


def _dashed(colour: str, dashes: tuple[float, ...], *, width: float) -> LineStyle:
    return LineStyle(colour, False, 2, {"color": colour, "linestyle": (0, dashes), "lw": width, "zorder": 2})


@dataclass(frozen=True)
class Axis:
    """The horizontal axis: what it says, which places it always has, whether these are evenly spaced names."""

    label: str
    least: tuple[float, ...]
    even: bool

    def position(self, place: float, places: Sequence[float]) -> float:
        return float(places.index(place)) if self.even else place


_EPSILON = Axis("privacy budget epsilon", BUDGETS, even=False)
_PROPAGATION = Axis("propagation steps", ALL_STEPS, even=True)
_AXES = {"fig1": _EPSILON, "fig2": _PROPAGATION, "fig3": _PROPAGATION, "fig4": _EPSILON}


def draw(figure: str, points: Sequence[Point]) -> tuple[str, bytes]:
    """One figure as SVG text and PNG bytes: means with bands of one standard deviation, a panel per graph.

    Args:
        figure: fig1, fig2, fig3 or fig4.
        points: its own; what is missing is left empty.
    """
    from matplotlib import style

    with style.context(["default", _LOOK]):
        drawn = _figure(figure, points)
        buffer = io.BytesIO()
        drawn.savefig(buffer, format="png", dpi=160, bbox_inches="tight", metadata={"Software": None})
        return svg_text(drawn, figure) + "\n", buffer.getvalue()


def _figure(name: str, points: Sequence[Point]) -> Figure:
    from matplotlib.figure import Figure

    rows = panels(points, GRAPHS[name])
    lines = lines_of(points)
    styles = styles_of(lines)
    columns = len(rows[0])
    figure = Figure(
        figsize=(max(3.15 * columns, 9.6), (3.6 if len(rows) == 1 else 3.1) * len(rows) + 1.0), layout="constrained"
    )
    # A graph's panels share their scale, so that two readings can be compared.
    grid = figure.subplots(len(rows), columns, squeeze=False, sharey="col")
    for row, axes_row in zip(rows, grid, strict=True):
        for panel, axes in zip(row, axes_row, strict=True):
            axes.set_gid(f"panel-{_slug(panel.graph)}-{rows.index(row)}")
            _panel(axes, panel, _AXES[name], styles)
        axes_row[0].set_ylabel("micro-F1 (test)")
    for column, axes in enumerate(grid[0]):
        _scale(axes, [point for row in rows for point in row[column].points])
    _legend(figure, lines, styles)
    return figure


def _panel(axes: Axes, panel: Panel, axis: Axis, styles: Mapping[str, LineStyle]) -> None:
    words = [panel.title, *textwrap.wrap(panel.reading, 36)]
    axes.set_title("\n".join(words), fontsize=9 if panel.reading else 10)
    places = places_of(panel.points, axis.least)
    positions = [axis.position(place, places) for place in places]
    margin = 0.06 * (positions[-1] - positions[0])
    axes.set_xlim(positions[0] - margin, positions[-1] + margin)
    axes.set_xticks(positions, ["∞" if math.isinf(place) else f"{place:g}" for place in places])
    axes.set_xlabel(axis.label)
    axes.tick_params(axis="y", labelleft=True)
    if not panel.points:
        axes.text(0.5, 0.5, "no results yet", transform=axes.transAxes, ha="center", va="center", color="#59636b")
        axes.tick_params(axis="y", left=False, labelleft=False)
        axes.grid(visible=False)
    for number, (line, look) in enumerate(styles.items()):
        own = [point for point in panel.points if point.line == line]
        identity = f"{axes.get_gid()}-line-{number}-{_slug(line)}"
        for level in (point for point in own if point.place == ANY):
            _level(axes, level, positions, look, identity)
        placed = sorted((point for point in own if point.place != ANY), key=lambda point: float(point.place))
        if placed:
            where = [axis.position(float(point.place), places) for point in placed]
            low, high = ([point.mean + sign * point.deviation for point in placed] for sign in (-1, 1))
            axes.fill_between(where, low, high, color=look.colour, alpha=0.13, lw=0, zorder=look.layer - 1)
            axes.plot(where, [point.mean for point in placed], **look.drawing, gid=identity)


def _level(axes: Axes, point: Point, positions: Sequence[float], look: LineStyle, identity: str) -> None:
    # A marked level line has its marks at the ticks, as in the paper; an unmarked one runs from side to side.
    left, right = axes.get_xlim()
    axes.fill_between(
        [left, right],
        point.mean - point.deviation,
        point.mean + point.deviation,
        color=look.colour,
        alpha=0.07,
        lw=0,
        zorder=1,
    )
    where = [left, *positions, right]
    marks: dict[str, Any] = {"markevery": slice(1, -1)} if look.marked else {}
    axes.plot(where, [point.mean] * len(where), **look.drawing, **marks, gid=f"{identity}-level")


def _scale(axes: Axes, points: Sequence[Point]) -> None:
    """Everything in sight, but never so close that a difference of nothing looks like one."""
    if not points:
        axes.set_ylim(0, 1)
        return
    low = min(point.mean - point.deviation for point in points)
    high = max(point.mean + point.deviation for point in points)
    spare = max(0.04 * (high - low), 0.5 * (0.05 - (high - low)), 0.002)
    axes.set_ylim(max(0.0, low - spare), min(1.0, high + spare))


def _legend(figure: Figure, lines: Mapping[str, Kind], styles: Mapping[str, LineStyle]) -> None:
    """One legend for all panels, below them: every kind of line has a heading and columns of its own."""
    from matplotlib.lines import Line2D

    if not lines:
        return
    blank = Line2D([], [], linestyle="none")
    columns = _columns(lines, figure.get_figwidth())
    handles, words = [], []
    for heading, *entries in columns:
        handles += [blank, *(Line2D([], [], **styles[entry].drawing) if entry else blank for entry in entries)]
        words += [heading or " ", *(entry or " " for entry in entries)]  # an empty label would be left out
    legend = figure.legend(
        handles,
        words,
        loc="outside lower center",
        ncols=len(columns),
        frameon=False,
        fontsize=8.5,
        handlelength=3.6,
        columnspacing=1.6,
        labelspacing=0.45,
    )
    legend.set_gid("legend")
    for text in legend.get_texts()[:: len(columns[0])]:
        text.set_fontweight("bold")


def _columns(lines: Mapping[str, Kind], width: float) -> list[list[str]]:
    """Columns of equal length with a heading, which is empty except over a kind's first: as few rows as fit into the width."""
    groups = {kind: [line for line in lines if lines[line] == kind] for kind in KINDS}
    for rows in range(1, len(lines) + 1):
        columns = []
        for kind, members in groups.items():
            share = math.ceil(len(members) / math.ceil(len(members) / rows)) if members else 1
            for start in range(0, len(members), share):
                entries = members[start : start + share]
                columns.append([KINDS[kind] if start == 0 else "", *entries, *[""] * (rows - len(entries))])
        needed = sum(_PER_COLUMN + _PER_LETTER * max(map(len, column)) for column in columns)
        if needed <= width and rows >= math.ceil(max(map(len, groups.values())) / 2):
            break
    return columns


def _slug(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
