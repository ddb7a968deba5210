"""One legend for all panels, below them: every kind of line has a heading and columns of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gcon_lab.experiments.reproduce.arrangement import KINDS
from gcon_lab.experiments.reproduce.line_styles import LineStyle
from gcon_lab.experiments.reproduce.points import Kind

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PER_LETTER, _PER_COLUMN = 0.075, 0.75  # inches at the legend's size of text, a little generous


def draw_legend(figure: Figure, lines: Mapping[str, Kind], styles: Mapping[str, LineStyle]) -> None:
    """Add the legend; without lines there is none."""
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
