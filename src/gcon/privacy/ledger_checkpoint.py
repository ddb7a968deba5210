"""A checkpoint: what the first lines of a long ledger add up to, so that they need not be taken apart again for every entry.

It holds the SHA-256 of these lines, byte by byte, which is compared whenever it is used: lines that were changed since are
read one by one, and refused. It is written by whoever has just checked them, carries a seal over its own content, and may
be removed: then everything is read again. `gcon ledger verify` and `show` read every line, and compare the checkpoint with them.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import Any

from gcon.errors import GconError
from gcon.privacy.budget import Budget, ExactTotal
from gcon.privacy.ledger import LedgerEntry, Outcome
from gcon.privacy.ledger_lines import CANONICAL, Chain, read_record, read_request, write_request, write_value

EVERY = 1000  # lines


def render_checkpoint(chain: Chain, lines: bytes) -> bytes:
    """The state of a chain after these lines, sealed."""
    spent, most = chain.spent, chain.ceiling
    fields: dict[str, object] = {
        "lines": chain.lines,
        "last_hash": chain.last_hash,
        "hash_before": chain.hash_before,
        "size": len(lines),
        "sha256": hashlib.sha256(lines).hexdigest(),
        "data_set": chain.data_set,
        "ceiling": None if most is None else [write_value(float(most.epsilon)), float(most.delta)],
        "entries": chain.entries,
        "epsilon": str(spent.epsilon),
        "delta": str(spent.delta),
        "infinite": spent.infinite,
        "open": [[entry.number, entry.time, mark, write_request(entry.request)] for entry, mark in chain.open.values()],
    }
    return CANONICAL.encode({**fields, "seal": _seal(fields)}).encode("ascii") + b"\n"


def read_checkpoint(checkpoint: bytes, data: bytes) -> tuple[Chain, int] | None:
    """The chain to go on from, and the size of its lines in bytes; None if it is damaged, or these are not the first lines."""
    fields: Any = read_record(checkpoint)
    try:
        if fields is None or fields.pop("seal") != _seal(fields):
            return None
        size, most, name = int(fields["size"]), fields["ceiling"], str(fields["data_set"])
        if not 0 <= size <= len(data) or hashlib.sha256(memoryview(data)[:size]).hexdigest() != fields["sha256"]:
            return None
        chain = Chain(
            data_set=name,
            ceiling=None if most is None else Budget(float(most[0]), float(most[1])),
            lines=int(fields["lines"]),
            last_hash=str(fields["last_hash"]),
            hash_before=str(fields["hash_before"]),
            entries=int(fields["entries"]),
            spent=ExactTotal(Fraction(fields["epsilon"]), Fraction(fields["delta"]), int(fields["infinite"])),
        )
        for number, time, mark, fields_of_one in fields["open"]:
            request = read_request(fields_of_one)
            entry = LedgerEntry(number=number, time=time, data_set=name, request=request, outcome=Outcome.RESERVED)
            chain.open[number] = entry, str(mark)
        return chain, size
    except (GconError, ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError):
        return None


def _seal(fields: dict[str, object]) -> str:
    return hashlib.sha256(CANONICAL.encode(fields).encode("ascii")).hexdigest()
