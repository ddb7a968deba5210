"""Tables as the laboratory writes them: Markdown for pages, CSV for programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


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


def sheet(head: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """CSV, with None as an empty cell."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *rows])
    return text.getvalue()


def records(rows: Sequence[Mapping[str, object]]) -> str:
    """CSV of records that all have the same fields."""
    return sheet(list(rows[0]), (row.values() for row in rows))
