"""A checkpoint: what the first lines of a long ledger say, so that they need not be taken apart again for every entry.

It holds the SHA-256 of these lines, byte by byte, which is compared whenever it is used: lines that were changed since are
read one by one, and refused. It is written by whoever has just checked them, carries a seal over its own content, and may
be removed: then everything is read again. `gcon ledger verify` and `show` read every line, and compare the checkpoint with them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from gcon.errors import GconError
from gcon.privacy.budget import Budget, ExactTotal
from gcon.privacy.ledger import LedgerEntry, Outcome
from gcon.privacy.ledger_lines import CANONICAL, Chain, read_record, read_request, write_request, write_value

EVERY = 1000  # lines


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The state after some lines.

    Attributes:
        chain: to go on from.
        size: of these lines, in bytes.
        digest: their SHA-256, in hexadecimal.
    """

    chain: Chain
    size: int
    digest: str


def render_checkpoint(chain: Chain, size: int, digest: str) -> bytes:
    """The state of a chain at its end, sealed."""
    spent, most = chain.spent(), chain.ceiling
    fields: dict[str, object] = {
        "lines": chain.lines,
        "last_hash": chain.hashes[-1],
        "size": size,
        "sha256": digest,
        "data_set": chain.data_set,
        "ceiling": None if most is None else [write_value(float(most.epsilon)), float(most.delta)],
        "entries": chain.count,
        "epsilon": str(spent.epsilon),
        "delta": str(spent.delta),
        "infinite": spent.infinite,
        "open": [
            [entry.number, entry.time, mark, write_request(entry.request)]
            for entry, mark in chain.known_entries()
            if entry.outcome is Outcome.RESERVED
        ],
    }
    return CANONICAL.encode({**fields, "seal": _seal(fields)}).encode("ascii") + b"\n"


def read_checkpoint(data: bytes) -> Checkpoint | None:
    """The checkpoint, or None for what is none, or is damaged: then all lines are read."""
    fields: Any = read_record(data)
    try:
        if fields is None or fields.pop("seal") != _seal(fields):
            return None
        most, name = fields["ceiling"], str(fields["data_set"])
        spent = ExactTotal(Fraction(fields["epsilon"]), Fraction(fields["delta"]), int(fields["infinite"]))
        unsettled = {}
        for number, time, mark, request in fields["open"]:
            entry = LedgerEntry(
                number=number, time=time, data_set=name, request=read_request(request), outcome=Outcome.RESERVED
            )
            unsettled[number] = entry, str(mark)
        chain = Chain(
            data_set=name,
            ceiling=None if most is None else Budget(float(most[0]), float(most[1])),
            hashes=[str(fields["last_hash"])],
            lines=int(fields["lines"]),
            count=int(fields["entries"]),
            entries_before=int(fields["entries"]),
            spent_before=spent,
            open_before=unsettled,
        )
        return Checkpoint(chain=chain, size=int(fields["size"]), digest=str(fields["sha256"]))
    except (GconError, ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError):
        return None


def _seal(fields: dict[str, object]) -> str:
    return hashlib.sha256(CANONICAL.encode(fields).encode("ascii")).hexdigest()
