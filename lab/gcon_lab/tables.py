"""What the laboratory writes: tables as Markdown for pages and as CSV for programs, and drawings as SVG."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.figure import Figure


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""One line per row, each with its end.

    Example:
        >>> print(markdown(["graph", "|E|"], [["cora-ml", "16,316"]]), end="")
        | graph | \|E\| |
        |---|---|
        | cora-ml | 16,316 |
    """
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in (head, *rows)]
    return "".join([lines[0], "|" + "---|" * len(head) + "\n", *lines[1:]])


def grid(names: Sequence[str], columns: Mapping[str, str], cells: Mapping[Any, str]) -> str:
    """A Markdown table of cells, each by its names and then its column; a heading for every column, missing cells are empty.

    Example:
        >>> print(grid(["graph"], {"1": "epsilon 1", "4": "epsilon 4"}, {("actor", "4"): "0.3"}), end="")
        | graph | epsilon 1 | epsilon 4 |
        |---|---|---|
        | actor |  | 0.3 |
    """
    rows = dict.fromkeys(key[:-1] for key in cells)
    filled = ([*row, *(cells.get((*row, column), "") for column in columns)] for row in rows)
    return markdown([*names, *columns.values()], filled)


def mean_and_error(values: Sequence[float] | NDArray[np.float64], *, sign: str = "") -> str:
    """A cell: the mean, and its standard error (0 for one value).

    Example:
        >>> mean_and_error([0.5, 0.7])
        '0.600 ± 0.100'
    """
    error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{np.mean(values):{sign}.3f} ± {error:.3f}"


def sheet(head: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """CSV, with None as an empty cell."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *rows])
    return text.getvalue()


def records(rows: Sequence[Mapping[str, object]]) -> str:
    """CSV of records that all have the same fields."""
    return sheet(list(rows[0]), (row.values() for row in rows))


def svg_text(figure: Figure, name: str) -> str:
    """The figure as an `svg` element that can be a file of its own: the same bytes from the same drawing, text that stays text.

    No prolog, date, or maker; ids fixed by the name.
    """
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
    drawn = buffer.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    return re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL).strip()


def inline_svg(drawn: str, name: str, title: str) -> Markup:
    """An `svg` element of `svg_text` for the inside of a page: no addresses, ids of its own, as wide as the page allows.

    The only text that templates do not escape: matplotlib escaped the words in it.
    """
    from markupsafe import Markup, escape

    box = re.findall(r"[\d.]+", drawn[drawn.index('viewBox="') : drawn.index(">")])[:4]
    # The same scale for all, so that their text has one size; a narrow screen scrolls before the text gets too small.
    width = float(box[2])
    style = f"max-width: {1.7 * width:.0f}px; min-width: {width:.0f}px"
    head = f'<svg viewBox="{" ".join(box)}" style="{style}" role="img" aria-label="{escape(title)}">'
    drawn = head + drawn[drawn.index(">") + 1 :]
    drawn = drawn.replace("xlink:href", "href")
    return Markup(re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", drawn).strip())
