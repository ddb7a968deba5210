"""Node ids: what the nodes file calls its rows, and the way from an id to its row.

Ids are numbers if every node id is a whole number in plain writing (no leading zero, at most 64 bits), strings
otherwise, whatever the file format. The ids of the edges file are converted to that kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gcon.errors import InputError

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


class NumberLookup:
    """Rows of whole-number ids: at once for 0..n-1, by a table where the ids lie close, else by search."""

    def __init__(self, numbers: NDArray[np.int64]) -> None:
        self.size = int(numbers.size)
        self.dtype = np.dtype(np.int32 if self.size < 2**31 else np.int64)
        self._table: NDArray[Any] | None = None
        self._sorted: NDArray[np.int64] | None = None
        self._low = int(numbers.min()) if self.size else 0
        span = (int(numbers.max()) - self._low + 1) if self.size else 0
        self._identity = bool(np.array_equal(numbers, np.arange(self.size)))
        if self._identity or not self.size:
            return
        if span <= max(8 * self.size, 2**16):
            self._table = np.full(span, -1, dtype=self.dtype)
            self._table[numbers - self._low] = np.arange(self.size, dtype=self.dtype)
        else:
            self._order = np.argsort(numbers).astype(self.dtype)
            self._sorted = numbers[self._order]

    def rows(self, ids: NDArray[np.int64]) -> NDArray[Any]:
        """The row of every id; -1 where it is unknown."""
        if self._sorted is not None:
            places = np.minimum(np.searchsorted(self._sorted, ids), self.size - 1)
            return np.where(self._sorted[places] == ids, self._order[places], self.dtype.type(-1))
        span = self.size if self._table is None else self._table.size
        # Compared before subtracting: the difference of two 64-bit numbers may not fit.
        inside = (ids >= self._low) & (ids <= self._low + span - 1) if span else np.zeros(ids.size, dtype=bool)
        all_inside = bool(inside.all())
        offsets = ids - self._low if all_inside else np.where(inside, ids, self._low) - self._low
        found = offsets.astype(self.dtype) if self._table is None else self._table[offsets]
        return found if all_inside else np.where(inside, found, self.dtype.type(-1))


def ids_of_series(values: pl.Series) -> NodeIds | None:
    """Ids from a column without missing or repeated values; None if it is neither whole numbers nor strings."""
    import polars as pl

    if values.dtype in (pl.Categorical, pl.Enum):
        values = values.cast(pl.String)
    if values.dtype.is_integer():
        narrow = values.cast(pl.Int64, strict=False)
        values = narrow if narrow.null_count() == values.null_count() else values.cast(pl.String)
    elif values.dtype == pl.String and bool(values.str.contains(PLAIN_NUMBER).all()):
        narrow = values.cast(pl.Int64, strict=False)
        values = narrow if narrow.null_count() == 0 else values
    if values.dtype == pl.Int64:
        return NodeIds(numbers=values.to_numpy().astype(np.int64, copy=False))
    return NodeIds(strings=values) if values.dtype == pl.String else None


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
        found = ids_of_series(series)
        unique = series.n_unique() == values.size
        if found is not None and unique and not (values.dtype.kind == "U" and bool((series == "").any())):
            return found
    raise InputError(
        "ids",
        rule="must be whole numbers or strings, each once and none empty, in the order of the nodes",
        got=f"{values.dtype} of shape {values.shape}, or a repeated id",
        fix="Pass the ids that read_nodes gave.",
    )
