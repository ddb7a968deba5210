"""Values of options, checked before anything is read, computed or paid for."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from gcon.errors import InputError
from gcon.writing import unwritable

# Of a release folder; `gcon.release.layout` has them too, and takes seconds to import.
RELEASE, NAMES = "release.json", ("model.safetensors", "README.md", "privacy.json", "privacy.md", "release.json")
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


def check_writable(out: Path, parameter: str = "out", *, new: bool = False) -> None:
    """Refuse a target whose folder, or the one that it would be made in, takes no new files (one is made and removed).

    `new`: also one that exists already, or whose folder does not.
    """
    if new and out.exists():
        raise InputError(parameter, rule="must not exist yet", got=str(out), fix="Choose another name.")
    if new and not out.absolute().parent.is_dir():
        rule, fix = "must lie in an existing folder", "Make the parent folder first."
        raise InputError(parameter, rule=rule, got=str(out), fix=fix)
    folder = next(folder for folder in out.absolute().parents if folder.is_dir())
    try:
        tempfile.TemporaryFile(dir=folder, prefix=f".{out.name}.").close()
    except OSError as error:
        raise unwritable(out, error, parameter) from None


def check_replaceable(out: Path, *, overwrite: bool, inputs: Iterable[Path | None] = ()) -> None:
    """Refuse a file that exists, unless it may be replaced; an input, and what belongs to a ledger or a release, never.

    And one in a folder that cannot be written to.
    """
    if os.path.lexists(out):
        reason, kept = None, [each for each in out.absolute().parents if each.suffix == ".recovery"]
        if any(path is not None and path.exists() and out.exists() and path.samefile(out) for path in inputs):
            reason = "is read by this very command"
        elif _is_ledger(out):
            reason = "belongs to a ledger"
        elif any(out.with_name(f"{out.name}.{ending}").exists() for ending in ("ledger", "ledger-path")):
            reason = "has a ledger beside it: these are private edges that were paid for"
        elif out.suffix == ".ledger-path" or any(_is_ledger(each.with_suffix("")) for each in kept):
            reason = "belongs to a ledger"
        elif out.name in NAMES and (out.parent / RELEASE).exists():
            reason = "belongs to a release"
        if reason is not None:
            rule = "may be anything but an input, a ledger or a release, also with --overwrite"
            raise InputError("out", rule=rule, got=f"{out}, which {reason}", fix="Choose another name.")
        if not overwrite:
            fix = "Choose another name, or pass --overwrite to replace it."
            raise InputError("out", rule="must not exist yet", got=str(out), fix=fix)
    check_writable(out)


def _is_ledger(out: Path) -> bool:
    """Whether a file is a ledger, its head, or another of the files beside it."""
    for path in (out, out.with_suffix("")):
        with suppress(OSError):
            if path.is_file():
                with path.open("rb") as file:
                    if b'"format":"gcon ledger"' in file.read(1000):
                        return path == out or out.suffix in (".head", ".lock", ".torn", ".new", ".checkpoint")
    return False


def size_in_bytes(option: str, text: str, *, least: str) -> int:
    """The number of bytes that the value of an option means, a number and a unit; at least one of the unit `least`."""
    match = re.fullmatch(r"\s*([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([A-Za-z]{1,3})\s*", text)
    size = int(float(match[1]) * UNITS.get(match[2].upper(), 0)) if match else 0
    if size < UNITS[least.upper()]:
        rule = f"must be a number with a unit (B, KiB, MiB, GiB, TiB, KB, MB, GB, TB), at least 1{least}"
        raise InputError(option, rule=rule, got=repr(text[:40]), fix="For example 1GiB.")
    return size
