"""CSV, TSV and Parquet, batch by batch. The ending of the name decides; nothing is guessed.

pyarrow reads, polars computes. On damaged files the readers of polars 2.1 may end the process, write numbers from the
file to standard error, or (`collect_batches`) end early as if the file were shorter; pyarrow raises.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import polars as pl

SEPARATORS = {".csv": ",", ".tsv": "\t"}
BATCH = 1_000_000
BLOCK = 2**24


def column_types(path: Path, *, header: bool = True) -> list[tuple[str, str]]:
    """Names of the columns, and what they hold: "numbers" (whole), "strings" or another type's name.

    Text has strings; without a header its columns are called "0", "1", ...

    Raises:
        Exception: whatever the reader says about a damaged file. It may hold content: drop it for private files.
    """
    import pyarrow.parquet  # type: ignore[import-untyped]

    if path.suffix.lower() != ".parquet":
        first, _ = _first_line(path)
        return [(name if header else str(place), "strings") for place, name in enumerate(first)]
    with pyarrow.parquet.ParquetFile(path) as file:
        return [(field.name, _kind(field.type)) for field in file.schema_arrow]


def _kind(dtype: Any) -> str:
    import pyarrow

    value = dtype.value_type if pyarrow.types.is_dictionary(dtype) else dtype
    if pyarrow.types.is_integer(dtype):
        return "numbers"
    texts = (pyarrow.types.is_string, pyarrow.types.is_large_string, pyarrow.types.is_string_view)
    return "strings" if any(is_text(value) for is_text in texts) else str(dtype)


def table_batches(path: Path, columns: Sequence[str], *, header: bool = True) -> Iterator[pl.DataFrame]:
    """The table in pieces of bounded size; an empty text field is null.

    Raises:
        Exception: see `column_types`.
    """
    import polars as pl

    batches = _parquet_batches if path.suffix.lower() == ".parquet" else _text_batches
    for batch in batches(path, list(columns), header):
        # polars takes offsets, UTF-8 and the metadata of fields on trust, so it gets checked arrays under our names.
        batch.validate(full=True)
        yield pl.DataFrame([cast(pl.Series, pl.from_arrow(batch.column(name))).alias(name) for name in columns])


def read_errors() -> tuple[type[BaseException], ...]:
    """What reading a damaged file may raise; a panic of polars is no `Exception`."""
    import polars as pl

    return (Exception, pl.exceptions.PanicException)


def _parquet_batches(path: Path, columns: list[str], header: bool) -> Iterator[Any]:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
        left = file.metadata.num_rows
        if file.metadata.num_row_groups:
            for batch in file.iter_batches(batch_size=BATCH, columns=columns):
                left -= batch.num_rows
                yield batch
        if left:
            raise EOFError("The file holds another number of rows than it says.")


def _text_batches(path: Path, columns: list[str], header: bool) -> Iterator[Any]:
    import pyarrow
    import pyarrow.csv  # type: ignore[import-untyped]

    first, more = _first_line(path)
    if header and not more:
        return
    reader = pyarrow.csv.open_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(
            block_size=BLOCK, column_names=None if header else [str(place) for place in range(len(first))]
        ),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=SEPARATORS[path.suffix.lower()], newlines_in_values=True, ignore_empty_lines=False
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(columns, pyarrow.string()),
            include_columns=columns,
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
    with reader:
        yield from reader


def _first_line(path: Path) -> tuple[list[str], bool]:
    """The fields of the first line, and whether anything follows it."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, delimiter=SEPARATORS[path.suffix.lower()])
        first = next(lines, [])
        return first, next(lines, None) is not None
