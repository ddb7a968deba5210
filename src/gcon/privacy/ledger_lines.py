"""The lines of a ledger file: one JSON record per line, chained by hashes. No file is touched here.

| line    | fields                                                                                              |
|---------|-----------------------------------------------------------------------------------------------------|
| header  | format, version, data_set, created; the first line, and only there                                   |
| ceiling | time, ceiling (epsilon and delta, or null for no limit)                                              |
| reserve | number, time, request                                                                                |
| settle  | number, time (that of the reservation: the run time may depend on edges), outcome, and where one was |
|         | released that exists nowhere else, the result: a few public numbers                                  |

Every line carries hash_k = sha256(hash_{k-1} + content_k), where the content is the record without its hash, in the
one canonical form: sorted keys, no spaces, ASCII. So an edit, a deletion, an insertion or another order breaks the
chain. What a chain alone cannot show is that whole lines at the end are missing; the head (count of lines, last hash),
kept beside the ledger, shows that. Hashes are no signatures: who may write both files can write another history.

A checkpoint says what the first lines of a long ledger add up to, so that they need not be taken apart again for every entry. It
holds the SHA-256 of these lines, byte by byte, which is compared whenever it is used: lines that were changed since are read one
by one, and refused. It is written by whoever has just checked them, carries a seal over its own content, and may be removed: then
everything is read again. `gcon ledger verify` and `show` read every line, and compare the checkpoint with them.
"""

from __future__ import annotations

import hashlib
import json
import math
import numbers
import sys
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from gcon.errors import GconError, InputError, LedgerError
from gcon.privacy.budget import NOTHING, Budget, ExactTotal
from gcon.privacy.ledger import Kind, LedgerEntry, Outcome, Request

FORMAT, VERSION = "gcon ledger", 1
FIRST_HASH = "0" * 64
MOST_CHARACTERS = 200
_WORDS = ("mechanism", "purpose", "randomness", "composition", "protected_change")
_UNFIT = frozenset({"Cc", "Cs", "Zl", "Zp"})  # control characters, half characters, line and paragraph separators
CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
CHECKPOINT_EVERY = 1000  # lines
HEAD_OF = '{{"last_hash":"{0.last_hash}","lines":{0.lines}}}\n'  # of a chain: how many lines there are, and the hash of the last
_INFINITE = {"inf": math.inf, "-inf": -math.inf}


@dataclass
class Chain:
    """What the lines so far add up to. Each line is checked against all lines before it.

    Attributes:
        data_set: the name in the header.
        ceiling: the last one that was set.
        lines: how many there are.
        last_hash: of the last line.
        hash_before: of the line before that one, which the head may still name.
        entries: how many there are.
        spent: by all entries that were not withdrawn.
        open: the entries that are not settled, by number, with the hashes of their lines.
        history: all entries, if somebody wants them.
    """

    data_set: str = ""
    ceiling: Budget | None = None
    lines: int = 0
    last_hash: str = FIRST_HASH
    hash_before: str = ""
    entries: int = 0
    spent: ExactTotal = field(default_factory=ExactTotal)
    open: dict[int, tuple[LedgerEntry, str]] = field(default_factory=dict)
    history: list[LedgerEntry] | None = field(default=None, compare=False)

    def render(self, content: Mapping[str, object]) -> bytes:
        """The next line, with its hash and the newline."""
        digest = hashlib.sha256((self.last_hash + CANONICAL.encode(content)).encode("ascii")).hexdigest()
        return CANONICAL.encode({**content, "hash": digest}).encode("ascii") + b"\n"

    def add(self, line: bytes) -> None:
        """Take the next line, or raise `LedgerError` with what is wrong with it.

        A first line that is the header of a ledger gives the name of the data set even if something else is wrong with it.
        """
        content = read_record(line)
        if self.lines == 0:  # first of all: another file, or a later version, is nothing damaged
            header = content if content is not None and line.endswith(b"\n") else {}
            version, name = header.get("version"), header.get("data_set")
            if header.get("format") != FORMAT or type(version) is not int or version < 1 or not isinstance(name, str):
                raise LedgerError("is not the header of a gcon ledger: check the path")
            if version > VERSION:
                raise LedgerError(f"is of version {version}; this gcon reads up to {VERSION}: update gcon")
            self.data_set = name
        if content is None:
            raise LedgerError("is damaged")
        digest = str(content.pop("hash", None))
        try:
            if self.render(content) != line:
                raise LedgerError("was edited, or a line before it was changed, removed, added or moved")
            kind = content["line"]
            if (kind == "header") != (self.lines == 0):
                raise LedgerError("should not be there: a ledger has one header, as its first line")
            if kind == "ceiling":
                most = content["ceiling"]
                self.ceiling = None if most is None else Budget(float(most["epsilon"]), float(most["delta"]))
            elif kind == "reserve":
                if content["number"] != self.entries:
                    raise LedgerError("has a number out of order")
                request, time, number = read_request(content["request"]), str(content["time"]), self.entries
                entry = LedgerEntry(
                    number=number, time=time, data_set=self.data_set, request=request, outcome=Outcome.RESERVED
                )
                self.open[number] = entry, digest
                self.spent.add(request.cost)
                self.entries += 1
                if self.history is not None:
                    self.history.append(entry)
            elif kind == "settle":
                number, outcome, result = content["number"], Outcome(content["outcome"]), content.get("result")
                if type(number) is not int or number not in self.open or outcome is Outcome.RESERVED:
                    raise LedgerError("settles nothing that is reserved")
                entry, _ = self.open[number]
                if content["time"] != entry.time:
                    raise LedgerError("settles an entry of another time")
                if outcome is Outcome.WITHDRAWN and entry.request.kind is not Kind.RELEASE:
                    raise LedgerError("withdraws what is no release")
                if not isinstance(result, dict | None):
                    raise LedgerError("has a result that is none")
                if self.history is not None:
                    self.history[number] = replace(entry, outcome=outcome, result=read_value(result))
                del self.open[number]
                if outcome is Outcome.WITHDRAWN:
                    self.spent.add(entry.request.cost, -1)
            elif kind != "header":
                raise LedgerError("is of an unknown kind")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
            raise LedgerError("does not have the fields of a ledger line") from None
        self.hash_before, self.last_hash = self.last_hash, digest
        self.lines += 1


def check_words(parameter: str, words: object) -> None:
    """Raise `InputError` unless these are words: 1 to 200 characters, not only spaces, no control characters."""
    if not isinstance(words, str):
        got = f"a {type(words).__name__}"
    elif not words.strip():
        got = "nothing"
    elif len(words) > MOST_CHARACTERS:
        got = f"{len(words)} characters"
    elif any(unicodedata.category(character) in _UNFIT for character in words):
        got = f"{words!a}"
    else:
        return
    rule = f"must be 1 to {MOST_CHARACTERS} characters without control characters"
    raise InputError(parameter, rule=rule, got=got, fix="Choose a few public words on one line.")


def write_request(request: Request) -> dict[str, object]:
    """A request as JSON values, checked so that what is written can be read back."""
    words = {name: getattr(request, name) for name in _WORDS}
    for name, value in words.items():
        check_words(name, value)
    if request.kind not in list(Kind):
        raise _unfit("kind", request.kind)
    if not isinstance(request.plan, Mapping):
        raise _unfit("plan", request.plan)
    cost = {"epsilon": write_value(float(request.cost.epsilon)), "delta": float(request.cost.delta)}
    fields = {**words, "kind": str(request.kind), "cost": cost, "plan": write_value(request.plan)}
    if request.gaussian_distance is not None:
        fields["gaussian"] = write_value(request.gaussian_distance)
    return fields


def read_request(fields: Mapping[str, Any]) -> Request:
    """A request from what `write_request` made of it."""
    return Request(
        kind=Kind(fields["kind"]),
        cost=Budget(float(fields["cost"]["epsilon"]), float(fields["cost"]["delta"])),
        plan=read_value(fields["plan"]),
        gaussian_distance=fields.get("gaussian"),
        **{name: sys.intern(str(fields[name])) for name in _WORDS},
    )


def write_value(value: object) -> object:
    """The value in JSON's types, infinity as "inf". What would not come back the same is refused, without showing it."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and value not in _INFINITE:
        return str(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real) and not math.isnan(value):
        number = float(value)
        return repr(number) if math.isinf(number) else number
    if isinstance(value, list | tuple):
        return [write_value(item) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {str(key): write_value(item) for key, item in value.items()}
    raise _unfit("plan", value)


def read_value(value: Any) -> Any:
    """A value from what `write_value` made of it."""
    if isinstance(value, str):
        return _INFINITE.get(value, value)
    if isinstance(value, list):
        return [read_value(item) for item in value]
    return {key: read_value(item) for key, item in value.items()} if isinstance(value, dict) else value


def _unfit(parameter: str, value: object) -> InputError:
    rule = "must be made of public numbers, words, lists and mappings that a file can hold"
    return InputError(parameter, rule=rule, got=f"a {type(value).__name__}", fix="Leave it out, or write it in words.")


def read_record(line: bytes) -> dict[str, Any] | None:
    """The line's JSON object, or None for anything else."""
    try:
        record = json.loads(line.decode("ascii"))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


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
        head_is_behind=head != HEAD_OF.format(chain).encode(),
        taken_apart=chain.lines - first,
    )


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
        chain.spent.add(NOTHING)  # rounds
        for number, time, mark, fields_of_one in fields["open"]:
            request = read_request(fields_of_one)
            entry = LedgerEntry(number=number, time=time, data_set=name, request=request, outcome=Outcome.RESERVED)
            chain.open[number] = entry, str(mark)
        return chain, size
    except (GconError, ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError):
        return None


def _seal(fields: dict[str, object]) -> str:
    return hashlib.sha256(CANONICAL.encode(fields).encode("ascii")).hexdigest()
