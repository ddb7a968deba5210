"""How every line looks: the paper's marks, colours that colour-blind readers can tell apart, dashes for the controls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gcon_lab.experiments.reproduce.points import Kind

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
