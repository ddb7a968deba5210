"""Who was answered from private edges, and when: one line per answer, written before the edges are read.

A line is in the system's hands before its answer is computed, so a worker that is killed loses none. `flush` brings lines to the
disk; the service does so every second. What was answered is not written: it depends on edges.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from gcon.errors import InputError, LedgerError
from gcon.serve.logs import timestamp


class AccessLog:
    """A file of JSON lines that is only ever appended to, by any number of processes; readable by its owner only.

    Args:
        path: the file; a new one is made in a folder that exists.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, _opened(path)
        self._behind = self._torn = False

    def reopen(self) -> None:
        """Go on in the file that has this name now. Raises if there can be none; then it goes on in the old one."""
        new = _opened(self._path)
        try:
            os.fsync(self._file)
            os.dup2(new, self._file, inheritable=False)  # at once: a line is in one of them
        finally:
            os.close(new)

    def record(self, owner: str) -> None:
        """One line. Raises where it cannot be written whole: then nothing is answered."""
        line = f'{{"time": "{timestamp()}", "node": {json.dumps(owner)}}}\n'.encode()
        if self._torn:  # end the line that was cut off
            line = b"\n" + line
        try:
            written = os.write(self._file, line)
        except OSError:
            written = 0
        self._torn = (self._torn and written == 0) or 0 < written < len(line)
        if written != len(line):
            raise LedgerError("The access log cannot be written, so nothing is answered. Is the disk full?")
        self._behind = True

    def flush(self) -> None:
        """Bring all lines to the disk."""
        if self._behind:
            self._behind = False
            os.fsync(self._file)


def _opened(path: Path) -> int:
    try:
        file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except OSError as error:
        got = f"{path} ({type(error).__name__})"
        raise InputError("access_log", rule="must be writable", got=got, fix="Choose another one.") from None
    try:
        check_for_owner_only("access_log", path)
    except InputError:
        os.close(file)
        raise
    return file


def check_for_owner_only(name: str, path: Path) -> None:
    """Refuse a file that others may read or write."""
    if path.stat().st_mode & 0o077:
        rule, fix = "must be readable by its owner only", f"chmod 600 {path.name}"
        raise InputError(name, rule=rule, got=f"{path.name}, open to others", fix=fix)
