"""Where the ledger of an edges file lies: beside it; and of a converted one, where it was converted from.

What was spent on edges stays spent in every copy of them. A converted copy carries the path of its ledger. A copy that other
programs made is recognised by a fingerprint of its bytes, under a key that only the operator of this machine has, and warned
about: edges are private, so a bare checksum of them, which anybody could compare with a guess, is never written anywhere.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from gcon.edges.store_format import HEADER
from gcon.errors import InputError, PromiseWarning, warn_caller
from gcon.writing import OWNER_ONLY, write_whole

_PATH = "ledger-path"
_KEY_BYTES = 32


class _Seen(msgspec.Struct):
    """Edges that were paid for: the ledger, and under the operator's key the place and time of the file and its bytes."""

    ledger: str
    mark: str
    seen: str = ""


def ledger_beside(edges: Path) -> Path:
    """The default place: beside the file itself, also if a link led there; for a converted one, the place that it carries.

    Raises:
        InputError: it carries a place whose folder is gone.
    """
    place = edges.resolve() if edges.is_symlink() or edges.parent.is_symlink() else edges
    beside = place.with_name(f"{place.name}.ledger")
    carried = place / _PATH if place.is_dir() else place.with_name(f"{place.name}.{_PATH}")
    if beside.exists() or not carried.is_file():
        return beside
    ledger = Path(carried.read_text(encoding="utf-8").strip())
    if not ledger.parent.is_dir():
        raise InputError(
            "--ledger",
            rule=f"must be given where the ledger that {place.name} was converted with is gone",
            got=str(ledger),
            fix="Bring it back, or name the ledger that knows what was spent on these edges.",
        )
    return ledger


def has_ledger(edges: Path) -> bool:
    """Whether edges have been used as private ones, or carry the path of a ledger."""
    beside = [each.with_name(f"{each.name}.{kind}") for each in (edges, edges.resolve()) for kind in ("ledger", _PATH)]
    return any(path.exists() for path in (*beside, edges / _PATH))


def carry_ledger(edges: Path, *, converted: Path) -> None:
    """Let a converted copy carry the path of the ledger of its original, with its permissions; in a store it lies inside."""
    content, carried = converted, converted.with_name(f"{converted.name}.{_PATH}")
    if converted.is_dir():
        content, carried = converted / HEADER, converted / _PATH
    mode = stat.S_IMODE(content.stat().st_mode)
    write_whole(carried, f"{ledger_beside(edges).absolute()}\n", mode=mode)


def warn_of_copies(edges: Path, ledger: Path, *, folder: Path) -> None:
    """Warn where a file with the same bytes has been paid for from another ledger, and remember this one in a folder.

    Privacy:
        Reads the edges. Kept are keyed fingerprints, readable by the operator only; nothing of them is told. Without a
        folder that can be written nothing is remembered.
    """
    content = edges / HEADER if edges.is_dir() else edges
    with suppress(OSError):
        at = content.stat()
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):  # the operator's key is made once
            handle = os.open(folder / "edges.key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
            with os.fdopen(handle, "wb") as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
        key = (folder / "edges.key").read_bytes()
        # Under the key too: the size of a file tells how many edges there are.
        place = os.fsencode(f"{content.absolute()} {at.st_size} {at.st_mtime_ns}")
        mine = str(ledger.absolute()).encode("utf-8", "backslashreplace").decode()  # names may be no text
        seen = hashlib.blake2b(place, key=key).hexdigest()
        known = []
        with suppress(FileNotFoundError):
            for line in (folder / "edges.seen").read_bytes().splitlines():
                with suppress(ValueError):  # cut or foreign: msgspec's own, or bytes that are no text
                    known.append(msgspec.json.decode(line, type=_Seen))
        mark = next((each.mark for each in reversed(known) if (each.ledger, each.seen) == (mine, seen)), None)
        if mark is None:
            with content.open("rb") as file:
                mark = hashlib.file_digest(file, partial(hashlib.blake2b, key=key)).hexdigest()
            handle = os.open(folder / "edges.seen", os.O_WRONLY | os.O_CREAT | os.O_APPEND, OWNER_ONLY)
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(_Seen(ledger=mine, seen=seen, mark=mark)) + b"\n")
        others = {each.ledger for each in known if each.mark == mark} - {mine}
        other = sorted(filter(os.path.exists, others))
        if not other:
            return
        advice = f"Pass --ledger {other[0]}, so that one ledger counts everything."
        if len(other) > 1 or ledger.exists():
            advice = (
                "Ledgers cannot be joined: what was spent is their sum (gcon ledger show tells each). Pay from one of them from "
                "now on, and lower its ceiling by what the others hold (gcon ledger set-ceiling)."
            )
        warn_caller(
            f"The edges in {edges.name} have another ledger, {' and '.join(other)}, and {ledger.name} does not count what was "
            f"spent there. {advice}",
            PromiseWarning,
        )
