"""Node ids: what the nodes file calls its rows, and the way from an id to its row.

Ids are numbers if every node id is a whole number in plain writing (no leading zero, at most 64 bits), strings
otherwise, whatever the file format. The ids of the edges file are converted to that kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gcon.errors import InputError
from gcon.files.file_problems import FileProblems

if TYPE_CHECKING:
    import polars as pl

PLAIN_NUMBER = r"^(0|-?[1-9][0-9]{0,18})$"


@dataclass(frozen=True, eq=False)
class NodeIds:
    """Public ids in row order: `numbers` or `strings`, the other is None. Made by `as_node_ids`."""

    numbers: NDArray[np.int64] | None = None
    strings: pl.Series | None = None

    def __len__(self) -> int:
        values = self.numbers if self.numbers is not None else self.strings
        return 0 if values is None else len(values)

    def column(self) -> pl.Series:
        """The ids as a column of a table."""
        import polars as pl

        return pl.Series(self.numbers) if self.strings is None else self.strings

    def tolist(self) -> list[object]:
        """The ids as Python's own numbers or strings."""
        return self.column().to_list()

    @property
    def are_row_numbers(self) -> bool:
        """Whether the ids are 0, 1, 2, ... in this order."""
        return self.numbers is not None and bool(np.array_equal(self.numbers, np.arange(len(self))))


class IdLookup:
    """From the ids of an edges file to rows of the nodes file.

    At once for 0..n-1, by a table where whole numbers lie close, else by a join.
    """

    def __init__(self, ids: NodeIds) -> None:
        import polars as pl

        numbers, size = ids.numbers, len(ids)
        self._dtype = np.dtype(np.int32 if size < 2**31 else np.int64)
        self._low, self._high = 0, size - 1
        self._table: NDArray[Any] | None = None
        self._known: pl.DataFrame | None = None
        if numbers is not None and np.array_equal(numbers, np.arange(size)):
            return
        rows = np.arange(size, dtype=self._dtype)
        if numbers is not None and int(numbers.max()) - int(numbers.min()) < max(8 * size, 2**16):
            self._low, self._high = int(numbers.min()), int(numbers.max())
            self._table = np.full(self._high - self._low + 1, -1, dtype=self._dtype)
            self._table[numbers - self._low] = rows
        else:
            self._known = pl.DataFrame({"id": ids.column(), "row": rows})

    def rows(self, column: pl.Series) -> tuple[NDArray[Any], set[str]]:
        """The row of every id, -1 where it is unknown; left out where an id is no number but should be. And such problems."""
        import polars as pl

        kind = pl.Int64() if self._known is None else self._known.schema["id"]
        ids = column.cast(kind, strict=False)
        kinds = {"number"} if ids.null_count() else set[str]()
        ids = ids.drop_nulls()
        if self._known is not None:
            joined = ids.alias("id").to_frame().join(self._known, on="id", how="left", maintain_order="left")["row"]
            found = joined.fill_null(-1).to_numpy()
        else:
            numbers = ids.to_numpy()
            # Compared before subtracting: the difference of two 64-bit numbers may not fit.
            inside = (numbers >= self._low) & (numbers <= self._high)
            places = (numbers if inside.all() else np.where(inside, numbers, self._low)) - self._low
            found = places.astype(self._dtype) if self._table is None else self._table[places]
            found = found if inside.all() else np.where(inside, found, self._dtype.type(-1))
        if (found < 0).any():
            kinds.add("unknown")
        return found, kinds


def read_ids(column: pl.Series, problems: FileProblems) -> NodeIds | None:
    """The ids of a column, if every row has one of its own."""
    import polars as pl

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
            return NodeIds(numbers=narrow.to_numpy().astype(np.int64, copy=False))
        values = values.cast(pl.String)
    if values.dtype == pl.String:
        return NodeIds(strings=values)
    problems.add(f"{name}: ids must be whole numbers or strings", f"type {column.dtype}", "Convert the ids.")
    return None


def as_node_ids(ids: NodeIds | Sequence[object] | NDArray[Any]) -> NodeIds:
    """Ids from a list or array of whole numbers or strings, each once."""
    if isinstance(ids, NodeIds):
        return ids
    values = np.asarray(ids)
    if (values.ndim == 1 and values.dtype.kind in "iuU") or values.shape == (0,):
        import polars as pl

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
