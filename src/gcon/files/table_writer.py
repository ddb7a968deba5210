"""A table written a batch of rows at a time, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from gcon.files.file_problems import require_readers
from gcon.files.table_files import SEPARATORS
from gcon.writing import OWNER_ONLY, whole_file

if TYPE_CHECKING:
    import polars as pl

Write = Callable[["pl.DataFrame"], None]


@contextmanager
def table_writer(target: Path, *, owner_only: bool = False) -> Iterator[Write]:
    """Gives a function that appends a batch of rows; the file is in its place when the block ends well, else nothing is.

    Args:
        target: a path that `checked_target` approved; its ending decides the format. An existing file is replaced.
        owner_only: nobody but the file's owner may read it (mode 0600); otherwise the system's usual permissions.
    """
    require_readers()
    with whole_file(target, mode=OWNER_ONLY if owner_only else None) as file:
        if target.suffix.lower() == ".parquet":
            with _parquet(file) as write:
                yield write
        else:
            yield _text(file, SEPARATORS[target.suffix.lower()])


def _text(file: BinaryIO, separator: str) -> Write:
    def write(frame: pl.DataFrame) -> None:
        frame.write_csv(file, separator=separator, include_header=not file.tell())

    return write


@contextmanager
def _parquet(file: BinaryIO) -> Iterator[Write]:
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    writers: list[pq.ParquetWriter] = []

    def write(frame: pl.DataFrame) -> None:
        table = frame.to_arrow()
        if not writers:
            writers.append(pq.ParquetWriter(file, table.schema, compression="zstd"))
        writers[0].write_table(table)

    try:
        yield write
    finally:
        for writer in writers:
            writer.close()
