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

    def tolist(self) -> list[object]:
        """The ids as Python's own numbers or strings."""
        values = self.numbers if self.numbers is not None else self.strings
        return [] if values is None else list(values.tolist() if isinstance(values, np.ndarray) else values.to_list())

    @property
    def are_row_numbers(self) -> bool:
        """Whether the ids are 0, 1, 2, ... in this order."""
        return self.numbers is not None and bool(np.array_equal(self.numbers, np.arange(len(self))))


class IdLookup:
    """From the ids of an edges file to rows of the nodes file.

    Whole numbers: at once for 0..n-1, by a table where the ids lie close, else by search. Strings: by a join.
    """

    def __init__(self, ids: NodeIds) -> None:
        import polars as pl

        self._size, self._strings, self._low = len(ids), None, 0
        self._table: NDArray[Any] | None = None
        self._sorted: NDArray[np.int64] | None = None
        self._dtype = np.dtype(np.int32 if self._size < 2**31 else np.int64)
        numbers = ids.numbers
        if numbers is None:
            self._strings = pl.DataFrame({"id": ids.strings, "row": np.arange(self._size, dtype=self._dtype)})
        elif not np.array_equal(numbers, np.arange(self._size)):
            self._low = int(numbers.min())
            span = int(numbers.max()) - self._low + 1
            if span <= max(8 * self._size, 2**16):
                self._table = np.full(span, -1, dtype=self._dtype)
                self._table[numbers - self._low] = np.arange(self._size, dtype=self._dtype)
            else:
                self._order = np.argsort(numbers).astype(self._dtype)
                self._sorted = numbers[self._order]

    def rows(self, column: pl.Series) -> tuple[NDArray[Any], set[str]]:
        """The row of every id, -1 where it is unknown; left out where an id is no number but should be. And such problems."""
        import polars as pl

        if self._strings is not None:
            text = column.cast(pl.String).alias("id").to_frame()
            rows = text.join(self._strings, on="id", how="left", maintain_order="left")["row"]
            return rows.fill_null(-1).to_numpy(), {"unknown"} if rows.null_count() else set()
        numbers = column.cast(pl.Int64, strict=False)
        ids, unknown = numbers.drop_nulls().to_numpy(), self._dtype.type(-1)
        if self._sorted is not None:
            places = np.minimum(np.searchsorted(self._sorted, ids), self._size - 1)
            found = np.where(self._sorted[places] == ids, self._order[places], unknown)
        else:
            span = self._size if self._table is None else self._table.size
            # Compared before subtracting: the difference of two 64-bit numbers may not fit.
            inside = (ids >= self._low) & (ids <= self._low + span - 1) if span else np.zeros(ids.size, dtype=bool)
            all_inside = bool(inside.all())
            offsets = ids - self._low if all_inside else np.where(inside, ids, self._low) - self._low
            found = offsets.astype(self._dtype) if self._table is None else self._table[offsets]
            found = found if all_inside else np.where(inside, found, unknown)
        kinds = {"number": numbers.null_count() > 0, "unknown": bool((found < 0).any())}
        return found, {kind for kind, occurs in kinds.items() if occurs}


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
