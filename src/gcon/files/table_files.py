"""CSV, TSV and Parquet, batch by batch. The ending of the name decides; nothing is guessed.

pyarrow reads, polars computes. On damaged files the readers of polars 2.1 may end the process, write numbers from the
file to standard error, or (`collect_batches`) end early as if the file were shorter; pyarrow raises.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, cast

from gcon.files.file_problems import ROOM, TooLargeError, check_room
from gcon.files.readers import pl, pyarrow

SEPARATORS = {".csv": ",", ".tsv": "\t"}
BATCH = 1_000_000
BLOCK = 2**24
MOST_COLUMNS = 100_000
LONGEST_WORD = 2**16  # bytes
FEW = 1024
READ_ERRORS = (Exception, pl.exceptions.PanicException)  # of a damaged file: a panic of polars is no `Exception`
UNFIT = "unfit "  # how a type's name begins if a column is never read: polars or pyarrow may end the process over it


class Table(NamedTuple):
    """A table in a file.

    Attributes:
        types: names of the columns, and what they hold: "numbers" (whole), "strings" or another type's name. Text has strings;
            without a header its columns are called "0", "1", ...
        batches: gives some columns, in pieces of bounded size; an empty text field is null.
    """

    types: list[tuple[str, str]]
    batches: Callable[[Sequence[str]], Iterator[pl.DataFrame]]


def open_table(path: Path, *, header: bool = True) -> Table:
    """The columns of a table, and a way to its rows.

    Raises:
        Exception: whatever the reader says about a damaged file, also in `batches`. It may hold content: drop it for private
            files.
    """
    separator, empty = SEPARATORS.get(path.suffix.lower()), False
    if separator is not None:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file, delimiter=separator)
            first = next(lines, [])
            empty = header and next(lines, None) is None  # nothing follows the header
        count = len(first)
        types = [(name if header else str(place), "strings") for place, name in enumerate(first)]
    else:
        with pyarrow.parquet.ParquetFile(path) as file:
            count = file.metadata.num_columns
            listed = file.schema_arrow if count <= MOST_COLUMNS else ()
            types = [(field.name, _kind(field.type)) for field in listed]
    if count > MOST_COLUMNS:
        raise TooLargeError(f"{count} columns where {MOST_COLUMNS} are read at most; keep features in an .npy")

    def batches(columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        with ExitStack() as until:
            found: Iterable[Any] = ()
            if separator is None:
                found = _parquet_batches(path, list(columns))
            elif not empty:
                read = pyarrow.csv.ReadOptions(
                    block_size=BLOCK, column_names=None if header else [name for name, _ in types]
                )
                parse = pyarrow.csv.ParseOptions(delimiter=separator, newlines_in_values=True, ignore_empty_lines=False)
                convert = pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(columns, pyarrow.string()),
                    include_columns=list(columns),
                    null_values=[""],
                    strings_can_be_null=True,
                )
                found = until.enter_context(pyarrow.csv.open_csv(path, read, parse, convert))
            size = 0
            for batch in found:
                # polars takes offsets, UTF-8 and the metadata of fields on trust, so it gets checked arrays under our names.
                batch.validate(full=True)
                if (
                    separator is None
                ):  # text is not packed: in memory a cell takes five bytes more than in the file, at most
                    for column in batch.columns:
                        size += _bytes_of_words(column) if pyarrow.types.is_dictionary(column.type) else column.nbytes
                    check_room(path, size)
                yield pl.DataFrame([cast(pl.Series, pl.from_arrow(batch.column(name))).alias(name) for name in columns])

    return Table(types, batches)


def _kind(dtype: Any) -> str:
    value = _plain(dtype)
    if pyarrow.types.is_integer(dtype):
        return "numbers"
    if _is_text(value):
        return "strings"
    listing = (
        pyarrow.types.is_list(dtype) or pyarrow.types.is_large_list(dtype) or pyarrow.types.is_fixed_size_list(dtype)
    )
    inner = dtype.value_type if listing else value
    plain = pyarrow.types.is_primitive(inner) and not pyarrow.types.is_duration(inner)
    plain = plain or pyarrow.types.is_decimal128(inner)
    return str(dtype) if plain or _is_text(inner) or pyarrow.types.is_null(inner) else f"{UNFIT}{dtype}"


def _is_text(dtype: Any) -> bool:
    texts = (pyarrow.types.is_string, pyarrow.types.is_large_string, pyarrow.types.is_string_view)
    return any(is_text(dtype) for is_text in texts)


def _bytes_of_words(column: Any) -> int:
    """The size of a column of categories, with words that are stored once counted as often as they occur."""
    if not _is_text(column.type.value_type):
        return int(column.nbytes)
    lengths = pyarrow.compute.binary_length(column.dictionary).cast(pyarrow.int64())
    return int(pyarrow.compute.sum(lengths.take(column.indices)).as_py() or 0)


def _parquet_batches(path: Path, columns: list[str]) -> Iterator[Any]:
    rows = _rows_at_once(path, columns)
    # Not buffered ahead: pyarrow would keep all that it has read until the end, so that the whole file would be in memory.
    with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True, pre_buffer=False) as file:
        left = file.metadata.num_rows
        check_room(path, left * len(columns) * 4)
        if file.metadata.num_row_groups:
            for batch in file.iter_batches(batch_size=rows, columns=columns):
                left -= batch.num_rows
                yield batch
        if left:
            raise EOFError("The file holds another number of rows than it says.")


def _rows_at_once(path: Path, columns: list[str]) -> int:
    """How many rows may be read at once. A word that is stored once and repeated in every row could fill any memory.

    Looks at the first row of each group, which brings the stored words along. Not at the metadata of column chunks: where
    those are damaged, pyarrow 26 ends the process.
    """
    with pyarrow.parquet.ParquetFile(path) as file:
        texts = [field.name for field in file.schema_arrow if field.name in columns and _is_text(_plain(field.type))]
    longest, rows = 1, BATCH
    with pyarrow.parquet.ParquetFile(path, read_dictionary=texts, pre_buffer=False) as file:
        for group in range(file.metadata.num_row_groups if texts else 0):
            try:
                peek = next(file.iter_batches(1, row_groups=[group], columns=texts))
            except Exception:  # damaged, as the reading itself will tell, or words written as differences
                rows = FEW
                continue
            lengths = [pyarrow.compute.max(pyarrow.compute.binary_length(each.dictionary)) for each in peek.columns]
            longest = max(longest, *(each.as_py() or 1 for each in lengths))
    if longest > LONGEST_WORD:
        raise TooLargeError(f"a word of {longest} bytes where {LONGEST_WORD} are read at most")
    return max(FEW, min(rows, ROOM // 8 // longest))


def _plain(dtype: Any) -> Any:
    return dtype.value_type if pyarrow.types.is_dictionary(dtype) else dtype
