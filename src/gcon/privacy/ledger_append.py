"""How a line gets into a ledger file, so that a crash at any moment leaves a ledger that says what was opened.

| the writer dies                  | what is found                                             | the next writer               |
|----------------------------------|-----------------------------------------------------------|-------------------------------|
| while it writes the line         | an unfinished line: not acknowledged, nothing was opened  | moves it to `<path>.torn`     |
| before it has written the head   | a head one line behind: the entry is there, and charged   | brings the head level         |
| before it has written more       | no new checkpoint                                         | writes one                    |

Whoever calls holds the lock, and has just read the files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path

from gcon.privacy.ledger_checkpoint import EVERY, render_checkpoint
from gcon.privacy.ledger_lines import render_head
from gcon.privacy.ledger_reading import Reading
from gcon.writing import sync_folder

HEAD, TORN, CHECKPOINT = ".head", ".torn", ".checkpoint"  # endings of the files beside the ledger


class LineStaysError(OSError):
    """The system refused after a line was written, which the next reader may find."""


def append_line(path: Path, reading: Reading, content: Mapping[str, object]) -> None:
    """Add a line to what was read, and then write the head; `LineStaysError` if only the head could not be written."""
    chain, head = reading.chain, path.with_name(path.name + HEAD)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND), "wb", 0) as file:
        if reading.unfinished:
            beside = os.open(path.with_name(path.name + TORN), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(beside, "wb", 0) as torn:
                _write(torn, reading.unfinished.removesuffix(b"\n") + b"\n")
            os.ftruncate(file.fileno(), len(reading.good))
        if reading.head_is_behind:
            replace_file(head, render_head(chain))
        line = chain.render(content)
        chain.add(line)  # what is written can be read back
        try:
            _write(file, line)
        except OSError as error:
            try:
                os.ftruncate(file.fileno(), len(reading.good))
            except OSError:
                raise LineStaysError(error.errno, error.strerror) from error
            raise
    try:
        replace_file(head, render_head(chain))
    except OSError as error:
        raise LineStaysError(error.errno, error.strerror) from error
    if reading.taken_apart >= EVERY:
        with suppress(OSError):  # nothing is lost but time
            replace_file(path.with_name(path.name + CHECKPOINT), render_checkpoint(chain, reading.good + line))


def replace_file(path: Path, data: bytes) -> None:
    """Write a whole file or nothing, and see it to the disk."""
    new = path.with_name(path.name + ".new")
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb", 0) as file:
            _write(file, data)
        os.replace(new, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(new)
        raise
    sync_folder(path.parent)


def _write(file: FileIO, data: bytes) -> None:
    while data:
        data = data[os.write(file.fileno(), data) :]
    os.fsync(file.fileno())
