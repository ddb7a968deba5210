"""Node ids: what the nodes file calls its rows, and the way from an id to its row.

Ids are numbers if every node id is a whole number in plain writing (no leading zero, at most 64 bits), strings
otherwise, whatever the file format. The ids of the edges file are converted to that kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcon.errors import InputError
from gcon.files.file_problems import FileProblems
from gcon.files.readers import pl

PLAIN_NUMBER = r"^(0|-?[1-9][0-9]{0,18})$"


@dataclass(frozen=True, eq=False)
class NodeIds:
    """Public ids in row order, each once: a column of 64-bit whole numbers or of strings. Made by `as_node_ids`."""

    column: pl.Series

    def __len__(self) -> int:
        return len(self.column)

    def tolist(self) -> list[object]:
        """The ids as Python's own numbers or strings."""
        return self.column.to_list()


def row_finder(ids: NodeIds) -> Callable[[pl.Series], tuple[NDArray[Any], set[str]]]:
    """The way from ids of an edges file to rows of the nodes file.

    At once for 0..n-1, by a table where whole numbers lie close, else by a join.

    Returns:
        A function of a column of ids: the row of each, -1 where it is unknown; left out where an id is no number but should be.
        And which of these problems there are.
    """
    size = len(ids.column)
    dtype = np.dtype(np.int32 if size < 2**31 else np.int64)
    rows = np.arange(size, dtype=dtype)
    low, high, kind = 0, size - 1, ids.column.dtype
    table: NDArray[Any] | None = None
    known: pl.DataFrame | None = None
    numbers = ids.column.to_numpy() if kind.is_integer() else None
    if numbers is None or not np.array_equal(numbers, rows):
        if numbers is not None and int(numbers.max()) - int(numbers.min()) < max(8 * size, 2**16):
            low, high = int(numbers.min()), int(numbers.max())
            table = np.full(high - low + 1, -1, dtype=dtype)
            table[numbers - low] = rows
        else:
            known = pl.DataFrame({"id": ids.column, "row": rows})

    def find(column: pl.Series) -> tuple[NDArray[Any], set[str]]:
        asked = column.cast(kind, strict=False)
        kinds = {"number"} if asked.null_count() else set[str]()
        asked = asked.drop_nulls()
        if known is not None:
            joined = asked.alias("id").to_frame().join(known, on="id", how="left", maintain_order="left")["row"]
            found = joined.fill_null(-1).to_numpy()
        else:
            values = asked.to_numpy()
            # Compared before subtracting: the difference of two 64-bit numbers may not fit.
            inside = (values >= low) & (values <= high)
            places = (values if inside.all() else np.where(inside, values, low)) - low
            found = places.astype(dtype) if table is None else table[places]
            found = found if inside.all() else np.where(inside, found, dtype.type(-1))
        if (found < 0).any():
            kinds.add("unknown")
        return found, kinds

    return find


def read_ids(column: pl.Series, problems: FileProblems) -> NodeIds | None:
    """The ids of a column, if every row has one of its own."""
    values = column.cast(pl.String) if column.dtype in (pl.Categorical, pl.Enum) else column
    lost = values.is_null()
    if values.dtype == pl.String:
        lost = lost | (values.fill_null("") == "")
    repeated = values.is_duplicated() & ~lost
    name = f"column {column.name!r}"
    problems.add_rows(lost.to_numpy(), f"{name}: every row needs an id", "none", "Add it, or drop the row.")
    problems.add_rows(repeated.to_numpy(), f"{name}: every id may occur once", "repeated ids", "Keep one row per node.")
    if lost.any() or repeated.any():
        return None
    if values.dtype.is_integer() or (values.dtype == pl.String and bool(values.str.contains(PLAIN_NUMBER).all())):
        narrow = values.cast(pl.Int64, strict=False)
        if not narrow.null_count():
            return NodeIds(narrow)
        values = values.cast(pl.String)
    if values.dtype == pl.String:
        return NodeIds(values)
    problems.add(f"{name}: ids must be whole numbers or strings", f"type {column.dtype}", "Convert the ids.")
    return None


def as_node_ids(ids: Sequence[object] | NDArray[Any]) -> NodeIds:
    """Ids from a list or array of whole numbers or strings, each once."""
    values = np.asarray(ids)
    if (values.ndim == 1 and values.dtype.kind in "iuU") or values.shape == (0,):
        # Not through numpy where words are given otherwise: it drops NULs at their end, and two ids could become one.
        words = values.dtype.kind == "U" and not isinstance(ids, np.ndarray)
        series = (
            pl.Series([str(each) for each in ids])
            if words
            else pl.Series(values, dtype=pl.Int64 if not values.size else None)
        )
        found = read_ids(series, FileProblems("nodes", Path()))
        if found is not None:
            return found
    raise InputError(
        "ids",
        rule="must be whole numbers or strings, each once and none empty, in the order of the nodes",
        got=f"{values.dtype} of shape {values.shape}, or a repeated id",
        fix="Pass the ids that read_nodes gave.",
    )
