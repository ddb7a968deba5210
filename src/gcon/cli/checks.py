"""Values of options, checked before anything is read, computed or paid for."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from gcon.errors import InputError

UNITS = {
    "B": 1,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}


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


def parsed_steps(steps: list[str]) -> tuple[float, ...]:
    """Steps as typed on the command line."""
    parsed: list[float] = []
    for entry in steps:
        try:
            parsed.append(float(entry))
        except ValueError:
            raise InputError(
                "steps", rule="whole numbers or 'inf'", got=repr(entry), fix="For example --steps 2."
            ) from None
    return tuple(parsed)


def size_in_bytes(option: str, text: str, *, least: str) -> int:
    """The number of bytes that a size means.

    Args:
        option: whose value it is, for the message.
        text: a number and a unit.
        least: one of this unit is the smallest size allowed.

    Raises:
        InputError: it means nothing, or too little.
    """
    match = re.fullmatch(r"\s*([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([A-Za-z]{1,3})\s*", text)
    size = int(float(match[1]) * UNITS.get(match[2].upper(), 0)) if match else 0
    if size < UNITS[least.upper()]:
        rule = f"must be a number with a unit (B, KiB, MiB, GiB, TiB, KB, MB, GB, TB), at least 1{least}"
        raise InputError(option, rule=rule, got=repr(text[:40]), fix="For example 1GiB.")
    return size
