"""What a ledger file, its head and its checkpoint say together. No file is touched here."""

from __future__ import annotations

from dataclasses import dataclass

from gcon.errors import LedgerError
from gcon.privacy.ledger_checkpoint import read_checkpoint
from gcon.privacy.ledger_lines import FIRST_HASH, Chain, read_record, render_head


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The state of a ledger, and what is wrong with it.

    Attributes:
        chain: all good lines.
        good: their bytes.
        unfinished: what follows them: a line that was never acknowledged, because its writer died.
        problem: None, or what was tampered with; `line_number` says where, if it is one line.
        head_is_behind: the last line is not in the head; its writer died in between.
        taken_apart: how many lines were read one by one, and not by a checkpoint.
    """

    chain: Chain
    good: bytes
    unfinished: bytes = b""
    problem: str | None = None
    line_number: int | None = None
    head_is_behind: bool = False
    taken_apart: int = 0


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What `FileLedger.verify` found.

    Attributes:
        ok: every line is as it was written, and none is missing.
        lines: how many good lines there are (before the first bad one, if there is one).
        problem: None, or what is wrong, in words.
        line_number: the line it is about, counted from 1, if it is about one.
        unfinished: a last line that was never acknowledged follows; harmless, the next entry clears it away.
        last_hash: the hash of the last good line; note it elsewhere to notice an older ledger put back.
    """

    ok: bool
    lines: int
    problem: str | None
    line_number: int | None
    unfinished: bool
    last_hash: str


def read_ledger(data: bytes, head: bytes | None, checkpoint: bytes = b"", *, history: bool = False) -> Reading:
    """Check every line, and the lines against the head.

    The head is written after each line, so it is level or, after a crash, one line behind.

    Args:
        data: the ledger.
        head: the head; None if there is no such file.
        checkpoint: stands for the first lines if it fits them byte by byte.
        history: take every line apart nevertheless, keep all entries, and compare the checkpoint.
    """
    chain, size = Chain(history=[] if history else None), 0
    known = read_checkpoint(checkpoint, data) if checkpoint else None
    if known is not None and not history:
        chain, size = known
    differs = history and known is not None  # until the lines have told the same
    first = chain.lines
    *lines, unfinished = data[size:].split(b"\n")
    if not unfinished and lines and read_record(lines[-1]) is None:
        unfinished = lines.pop() + b"\n"
    for line in lines:
        try:
            chain.add(line + b"\n")
        except LedgerError as error:
            place = chain.lines + 1
            return Reading(chain=chain, good=data[:size], problem=f"line {place} {error}.", line_number=place)
        size += len(line) + 1
        if differs and known == (chain, size):
            differs = False
    record = {"lines": 0, "last_hash": FIRST_HASH} if head is None else read_record(head) or {}
    count, known_lines, last_hash = chain.lines, record.get("lines"), record.get("last_hash")
    problem, number = None, None
    if type(known_lines) is not int or known_lines < (head is not None) or not isinstance(last_hash, str):
        problem = "the head file is damaged."
    elif count < known_lines:
        problem, number = f"the file has {count} whole lines, but its head knows {known_lines}.", count + 1
    elif count == 0:
        problem = "the file is empty or gone."
    elif count > known_lines + 1:
        problem = f"the file has {count} lines, but its head knows only {known_lines}: it is missing or old."
    elif last_hash != (chain.last_hash if known_lines == count else chain.hash_before):
        problem, number = f"line {known_lines} is not the one that the head knows.", known_lines
    elif differs:
        problem = "the checkpoint file says other sums than the lines: remove that file."
    return Reading(
        chain=chain,
        good=data[:size],
        unfinished=unfinished,
        problem=problem,
        line_number=number,
        head_is_behind=head != render_head(chain),
        taken_apart=chain.lines - first,
    )
