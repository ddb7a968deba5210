"""What was paid for and could not be put in its place, kept beside the ledger until somebody finishes it.

| `LEDGER.recovery/entry-N/` | holds                                                                       |
|----------------------------|-----------------------------------------------------------------------------|
| `kept.json`                | which entries paid for it (number and hash), and where it was to be written |
| `release/`                 | the release folder, whole; not there if only the ledger could not be told   |

Like private edges it is readable by its owner only: what nobody published yet is for the owner to publish.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcon.errors import InputError, LedgerError, LedgerRefusedError, ReleaseFormatError
from gcon.methods.model import Model
from gcon.privacy.deferred_ledger import Charge
from gcon.privacy.ledger import Outcome, Reservation
from gcon.privacy.ledger_file import FileLedger
from gcon.release.layout import NAMES
from gcon.release.read import load_release
from gcon.release.store import save_release
from gcon.writing import OWNER_ONLY, whole_folder

RECOVERY, NOTE, RELEASE_FOLDER, OWNER_FOLDER = "{}.recovery", "kept.json", "release", 0o700


@dataclass(frozen=True, kw_only=True)
class Kept:
    """One result in a recovery folder.

    Attributes:
        folder: where it is.
        entries: the ledger's entries that paid for it: number and hash.
        out: where it was to be written.
        release: the release folder; None if the result was handed out, and only the ledger does not know.
        result: released numbers to keep with the entries.
    """

    folder: Path
    entries: tuple[tuple[int, str], ...]
    out: str
    release: Path | None
    result: Mapping[str, object] | None


def keep(
    ledger: Path,
    charges: Sequence[Charge],
    *,
    out: str,
    model: Model | None = None,
    result: Mapping[str, object] | None = None,
) -> Path:
    """Keep what was paid for; returns the folder, `LEDGER.recovery/entry-N`.

    Args:
        ledger: the ledger's file.
        charges: what paid; at least one.
        out: where it was to be written.
        model: None if the result was handed out, and only the ledger could not be told.
        result: released numbers to keep with the entries.

    Raises:
        OSError: it cannot be kept either.
    """
    home = ledger.with_name(RECOVERY.format(ledger.name))
    home.mkdir(mode=OWNER_FOLDER, exist_ok=True)
    first = charges[0].reservation
    target = home / f"entry-{first.number}"
    if os.path.lexists(target):  # of another ledger that was in this place before
        target = home / f"entry-{first.number}-{str(first.ledger)[:16]}"
    note = {
        "entries": [[charge.reservation.number, str(charge.reservation.ledger)] for charge in charges],
        "out": out,
        "result": result,
    }
    with whole_folder(target, mode=OWNER_FOLDER) as new:
        if model is not None:
            save_release(model, new / RELEASE_FOLDER)
            (new / RELEASE_FOLDER).chmod(OWNER_FOLDER)
            for name in NAMES:
                (new / RELEASE_FOLDER / name).chmod(OWNER_ONLY)
        (new / NOTE).touch(OWNER_ONLY, exist_ok=False)
        (new / NOTE).write_text(json.dumps(note))
    return target


def kept_results(ledger: Path) -> list[Kept]:
    """Everything that is kept, by entry; what cannot be read is left alone."""
    found = []
    with suppress(FileNotFoundError):
        for folder in ledger.with_name(RECOVERY.format(ledger.name)).glob("entry-*"):
            with suppress(OSError, ValueError, TypeError, KeyError):
                note: Any = json.loads((folder / NOTE).read_bytes())
                release = folder / RELEASE_FOLDER
                found.append(
                    Kept(
                        folder=folder,
                        entries=tuple((int(number), str(mark)) for number, mark in note["entries"]),
                        out=str(note["out"]),
                        release=release if release.is_dir() else None,
                        result=note["result"],
                    )
                )
    return sorted(found, key=lambda each: each.entries)


def settle_kept(ledger: FileLedger) -> list[int]:
    """Tell the ledger what was handed out when it could not be told; returns the entries.

    Does nothing if it still refuses, or is damaged: the numbers that are kept exist nowhere else.
    """
    settled: list[int] = []
    for each in kept_results(ledger.path):
        if each.release is None:
            with suppress(LedgerError, OSError):
                ledger.total()  # raises if it is damaged
                settled += _settle(ledger, each)
                _remove(each)
    return settled


def finish_kept(ledger: FileLedger, each: Kept, out: Path) -> None:
    """Write a kept release to its place, settle the entries that paid for it, and remove what was kept.

    A complete copy of it that is there already will do.

    Raises:
        OSError: it cannot be written there; it stays kept.
        InputError: something else is there.
        LedgerError: it is written, but the ledger cannot be told; it stays kept.
    """
    assert each.release is not None
    if not _same(each.release, out):
        if os.path.lexists(out):
            rule = "must not exist yet, or be a copy of what is kept"
            raise InputError("out", rule=rule, got=str(out), fix="Choose another name.")
        save_release(load_release(each.release), out)
    _settle(ledger, each)
    _remove(each)


def _same(kept: Path, out: Path) -> bool:
    """Whether a release folder is a copy of another, whole."""
    with suppress(OSError, ReleaseFormatError, InputError):
        load_release(out)
        return all((kept / name).read_bytes() == (out / name).read_bytes() for name in NAMES)
    return False


def _settle(ledger: FileLedger, each: Kept) -> list[int]:
    settled = []
    for number, mark in each.entries:
        try:
            ledger.settle(Reservation(number, mark), Outcome.RELEASED, result=each.result)
        except LedgerRefusedError:
            raise
        except LedgerError:
            continue  # settled by somebody else, or of another ledger
        settled.append(number)
    return settled


def _remove(each: Kept) -> None:
    shutil.rmtree(each.folder)
    with suppress(OSError):  # others are in it
        os.rmdir(each.folder.parent)
