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
"""

from __future__ import annotations

import hashlib
import json
import math
import numbers
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gcon.errors import InputError, LedgerError
from gcon.privacy.budget import Budget, ExactTotal
from gcon.privacy.ledger import Kind, LedgerEntry, Outcome, Request

FORMAT, VERSION = "gcon ledger", 1
FIRST_HASH = "0" * 64
MOST_CHARACTERS = 200
_WORDS = ("mechanism", "purpose", "randomness", "composition", "protected_change")
_UNFIT = frozenset({"Cc", "Cs", "Zl", "Zp"})  # control characters, half characters, line and paragraph separators
CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
_INFINITE = {"inf": math.inf, "-inf": -math.inf}


@dataclass
class Chain:
    """What the lines so far say. Each line is checked against all lines before it.

    It begins with the first line, or after those of a checkpoint: of these it knows the sums, and the entries that were not
    settled.
    """

    data_set: str = ""
    ceiling: Budget | None = None
    entries: list[LedgerEntry] = field(default_factory=list)
    reserve_hashes: list[str] = field(default_factory=list)  # of the lines that made the entries
    hashes: list[str] = field(
        default_factory=[FIRST_HASH].copy
    )  # of all lines, counted from 1; before it, the last one's
    lines: int = 0
    count: int = 0  # of entries
    entries_before: int = 0
    spent_before: ExactTotal = field(default_factory=ExactTotal)
    open_before: dict[int, tuple[LedgerEntry, str]] = field(default_factory=dict)  # by number, with their hashes
    keep_plans: bool = True  # most of what an entry holds

    def known_entries(self) -> Iterator[tuple[LedgerEntry, str]]:
        """The entries that may still be settled, and all since the checkpoint, with the hashes of their lines."""
        yield from self.open_before.values()
        yield from zip(self.entries, self.reserve_hashes, strict=True)

    def entry(self, number: int) -> tuple[LedgerEntry, str] | None:
        """One of them; None for an entry that was settled before the checkpoint."""
        if number < self.entries_before:
            return self.open_before.get(number)
        return self.entries[number - self.entries_before], self.reserve_hashes[number - self.entries_before]

    def spent(self) -> ExactTotal:
        """Everything charged so far, exactly."""
        total = replace(self.spent_before)
        for entry, _ in self.open_before.values():
            if entry.outcome is Outcome.WITHDRAWN:
                total.add(entry.request.cost, -1)
        for entry in self.entries:
            if entry.outcome is not Outcome.WITHDRAWN:
                total.add(entry.request.cost)
        return total

    def render(self, content: Mapping[str, object]) -> bytes:
        """The next line, with its hash and the newline."""
        digest = hashlib.sha256((self.hashes[-1] + CANONICAL.encode(content)).encode("ascii")).hexdigest()
        return CANONICAL.encode({**content, "hash": digest}).encode("ascii") + b"\n"

    def add(self, line: bytes) -> None:
        """Take the next line, or raise `LedgerError` with what is wrong with it."""
        content = read_record(line)
        if content is None:
            raise LedgerError("is damaged")
        digest = str(content.pop("hash", None))
        try:
            if self.render(content) != line:
                raise LedgerError("was edited, or a line before it was changed, removed, added or moved")
            kind = content["line"]
            if (kind == "header") != (self.lines == 0):
                raise LedgerError("should not be there: a ledger has one header, as its first line")
            if kind == "header":
                self.data_set = data_set_name(line)
            elif kind == "ceiling":
                most = content["ceiling"]
                self.ceiling = None if most is None else Budget(float(most["epsilon"]), float(most["delta"]))
            elif kind == "reserve":
                number, time, fields = content["number"], str(content["time"]), content["request"]
                if number != self.count:
                    raise LedgerError("has a number out of order")
                request = read_request(fields if self.keep_plans else {**fields, "plan": {}})
                outcome = Outcome.RESERVED
                self.entries.append(
                    LedgerEntry(number=number, time=time, data_set=self.data_set, request=request, outcome=outcome)
                )
                self.reserve_hashes.append(digest)
                self.count += 1
            elif kind == "settle":
                number, outcome = content["number"], Outcome(content["outcome"])
                if type(number) is not int or number < 0 or outcome is Outcome.RESERVED:
                    raise LedgerError("does not settle anything")
                found = self.entry(number)
                if found is None:
                    raise LedgerError("settles what is settled already")
                entry, mark = found
                if entry.outcome is not Outcome.RESERVED or content["time"] != entry.time:
                    raise LedgerError("settles what is settled already")
                if outcome is Outcome.WITHDRAWN and entry.request.kind is not Kind.RELEASE:
                    raise LedgerError("withdraws what is no release")
                result = _read(content["result"]) if "result" in content else None
                if not isinstance(result, dict | None):
                    raise LedgerError("has a result that is none")
                entry = replace(entry, outcome=outcome, result=result)
                if number < self.entries_before:
                    self.open_before[number] = entry, mark
                else:
                    self.entries[number - self.entries_before] = entry
            else:
                raise LedgerError("is of an unknown kind")
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError):
            raise LedgerError("does not have the fields of a ledger line") from None
        self.hashes.append(digest)
        self.lines += 1


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a ledger file and its head say together.

    Attributes:
        chain: all good lines.
        size: their length in bytes.
        unfinished: what follows them: a line that was never acknowledged, because its writer died.
        problem: None, or what was tampered with; `line_number` says where, if it is one line.
        head_is_behind: the last line is not in the head; its writer died in between.
        snapshot: what was asked for after some line.
    """

    chain: Chain
    size: int
    unfinished: bytes = b""
    problem: str | None = None
    line_number: int | None = None
    head_is_behind: bool = False
    snapshot: bytes | None = None


def head_lines(head: bytes | None) -> int:
    """How many lines a head knows; 0 if there is none, or it is damaged."""
    known = (read_record(head) or {}).get("lines") if head is not None else None
    return known if type(known) is int else 0


def read_ledger(
    data: bytes,
    head: bytes | None,
    chain: Chain | None = None,
    *,
    snapshot_at: int = 0,
    snapshot: Callable[[Chain], bytes] | None = None,
) -> Reading:
    """Check every line, and the lines against the head (None: there is no head file).

    The head is written after each line, so it is level or, after a crash, one line behind.

    Args:
        data: the lines, or those that follow a checkpoint.
        head: the head, which knows all the lines of the checkpoint.
        chain: of the checkpoint.
        snapshot_at: after this many lines,
        snapshot: is asked about the chain.
    """
    *lines, unfinished = data.split(b"\n")
    if not unfinished and lines and read_record(lines[-1]) is None:
        unfinished = lines.pop() + b"\n"
    chain, size, shot = Chain() if chain is None else chain, 0, None
    for number, line in enumerate(lines, start=chain.lines + 1):
        try:
            chain.add(line + b"\n")
        except LedgerError as error:
            return Reading(chain=chain, size=size, problem=f"line {number} {error}.", line_number=number)
        size += len(line) + 1
        if number == snapshot_at and snapshot is not None:
            shot = snapshot(chain)
    known = 0
    last_hash: object = FIRST_HASH
    if head is not None:
        record = read_record(head) or {}
        known, last_hash = record.get("lines", 0), record.get("last_hash")
        if type(known) is not int or known < 1 or not isinstance(last_hash, str):
            return Reading(chain=chain, size=size, unfinished=unfinished, problem="the head file is damaged.")
    count, problem, place = chain.lines, None, None
    if count < known:
        problem, place = f"the file has {count} whole lines, but its head knows {known}.", count + 1
    elif count == 0:
        problem = "the file is empty or gone."
    elif count > known + 1:
        problem = f"the file has {count} lines, but its head knows only {known}: it is missing or old."
    elif chain.hashes[known - count - 1] != last_hash:
        problem, place = f"line {known} is not the one that the head knows.", known
    return Reading(
        chain=chain,
        size=size,
        unfinished=unfinished,
        problem=problem,
        line_number=place,
        head_is_behind=known < count,
        snapshot=shot,
    )


def render_head(chain: Chain) -> bytes:
    """The head: how many lines there are, and the hash of the last."""
    head = {"lines": chain.lines, "last_hash": chain.hashes[-1]}
    return CANONICAL.encode(head).encode("ascii") + b"\n"


def data_set_name(data: bytes) -> str:
    """The data set's name in the header, or `LedgerError` for what is not a ledger of this version."""
    first, newline, _ = data.partition(b"\n")
    header = (read_record(first) if newline else None) or {}
    version, name = header.get("version"), header.get("data_set")
    if header.get("format") != FORMAT or type(version) is not int or version < 1 or not isinstance(name, str):
        raise LedgerError("is not the header of a gcon ledger: check the path")
    if version > VERSION:
        raise LedgerError(f"is of version {version}; this gcon reads up to {VERSION}: update gcon")
    return name


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
    plan = write_mapping("plan", request.plan)
    cost = {"epsilon": write_value(float(request.cost.epsilon)), "delta": float(request.cost.delta)}
    fields = {**words, "kind": str(request.kind), "cost": cost, "plan": plan}
    if request.gaussian_distance is not None:
        fields["gaussian"] = write_value(request.gaussian_distance)
    return fields


def read_request(fields: Mapping[str, Any]) -> Request:
    """A request from what `write_request` made of it."""
    return Request(
        kind=Kind(fields["kind"]),
        cost=Budget(float(fields["cost"]["epsilon"]), float(fields["cost"]["delta"])),
        plan=_read(fields["plan"]),
        gaussian_distance=fields.get("gaussian"),
        **{name: sys.intern(str(fields[name])) for name in _WORDS},
    )


def write_mapping(parameter: str, mapping: Mapping[str, object]) -> dict[str, object]:
    """A mapping of names to public values, as JSON values."""
    written = write_value(mapping)
    if not isinstance(written, dict):
        raise _unfit(parameter, mapping)
    return written


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


def _read(value: Any) -> Any:
    if isinstance(value, str):
        return _INFINITE.get(value, value)
    if isinstance(value, list):
        return [_read(item) for item in value]
    return {key: _read(item) for key, item in value.items()} if isinstance(value, dict) else value


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
