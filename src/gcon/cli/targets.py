"""Refuse before anything is computed or paid for what could not be written afterwards."""

from __future__ import annotations

import tempfile
from pathlib import Path

from gcon.errors import InputError


def check_new_file(out: Path) -> None:
    """A file or folder that does not exist yet, in a folder that does and takes new files (one is made and removed)."""
    if out.exists():
        raise InputError("out", rule="must not exist yet", got=str(out), fix="Choose another name.")
    if not out.absolute().parent.is_dir():
        raise InputError(
            "out", rule="must lie in an existing folder", got=str(out), fix="Make the parent folder first."
        )
    try:
        tempfile.TemporaryFile(dir=out.absolute().parent, prefix=f".{out.name}.").close()
    except OSError as error:
        raise InputError(
            "out",
            rule="must lie in a folder that can be written to",
            got=f"{out} ({error.strerror})",
            fix="Choose another folder, or change its permissions.",
        ) from None
