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
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gcon.errors import InputError, LedgerError
from gcon.privacy.budget import Budget, compose
from gcon.privacy.ledger import Kind, LedgerEntry, Outcome, Request

FORMAT, VERSION = "gcon ledger", 1
FIRST_HASH = "0" * 64
MOST_CHARACTERS = 200
_WORDS = ("mechanism", "purpose", "randomness", "composition", "protected_change")
_UNFIT = frozenset({"Cc", "Cs", "Zl", "Zp"})  # control characters, half characters, line and paragraph separators
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
_INFINITE = {"inf": math.inf, "-inf": -math.inf}


@dataclass
class Chain:
    """What the lines so far say. Each line is checked against all lines before it."""

    data_set: str = ""
    ceiling: Budget | None = None
    entries: list[LedgerEntry] = field(default_factory=list)
    reserve_hashes: list[str] = field(default_factory=list)  # of the lines that made the entries
    hashes: list[str] = field(default_factory=[FIRST_HASH].copy)  # of all lines, counted from 1

    def total(self) -> Budget:
        """Everything charged so far, by basic composition; rounds up."""
        return compose(entry.request.cost for entry in self.entries if entry.outcome is not Outcome.WITHDRAWN)

    def render(self, content: Mapping[str, object]) -> bytes:
        """The next line, with its hash and the newline."""
        digest = hashlib.sha256((self.hashes[-1] + _CANONICAL.encode(content)).encode("ascii")).hexdigest()
        return _CANONICAL.encode({**content, "hash": digest}).encode("ascii") + b"\n"

    def add(self, line: bytes) -> None:
        """Take the next line, or raise `LedgerError` with what is wrong with it."""
        content = _record(line)
        if content is None:
            raise LedgerError("is damaged")
        digest = str(content.pop("hash", None))
        try:
            if self.render(content) != line:
                raise LedgerError("was edited, or a line before it was changed, removed, added or moved")
            kind = content["line"]
            if (kind == "header") != (len(self.hashes) == 1):
                raise LedgerError("should not be there: a ledger has one header, as its first line")
            if kind == "header":
                self.data_set = data_set_name(line)
            elif kind == "ceiling":
                most = content["ceiling"]
                self.ceiling = None if most is None else Budget(float(most["epsilon"]), float(most["delta"]))
            elif kind == "reserve":
                number, time, fields = content["number"], str(content["time"]), content["request"]
                if number != len(self.entries):
                    raise LedgerError("has a number out of order")
                request = Request(
                    kind=Kind(fields["kind"]),
                    cost=Budget(float(fields["cost"]["epsilon"]), float(fields["cost"]["delta"])),
                    plan=_read(fields["plan"]),
                    gaussian_distance=fields.get("gaussian"),
                    **{name: str(fields[name]) for name in _WORDS},
                )
                outcome = Outcome.RESERVED
                self.entries.append(
                    LedgerEntry(number=number, time=time, data_set=self.data_set, request=request, outcome=outcome)
                )
                self.reserve_hashes.append(digest)
            elif kind == "settle":
                number, outcome = content["number"], Outcome(content["outcome"])
                if type(number) is not int or number < 0 or outcome is Outcome.RESERVED:
                    raise LedgerError("does not settle anything")
                entry = self.entries[number]
                if entry.outcome is not Outcome.RESERVED or content["time"] != entry.time:
                    raise LedgerError("settles what is settled already")
                if outcome is Outcome.WITHDRAWN and entry.request.kind is not Kind.RELEASE:
                    raise LedgerError("withdraws what is no release")
                result = _read(content["result"]) if "result" in content else None
                if not isinstance(result, dict | None):
                    raise LedgerError("has a result that is none")
                self.entries[number] = replace(entry, outcome=outcome, result=result)
            else:
                raise LedgerError("is of an unknown kind")
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError):
            raise LedgerError("does not have the fields of a ledger line") from None
        self.hashes.append(digest)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a ledger file and its head say together.

    Attributes:
        chain: all good lines.
        size: their length in bytes.
        unfinished: what follows them: a line that was never acknowledged, because its writer died.
        problem: None, or what was tampered with; `line_number` says where, if it is one line.
        head_is_behind: the last line is not in the head; its writer died in between.
    """

    chain: Chain
    size: int
    unfinished: bytes = b""
    problem: str | None = None
    line_number: int | None = None
    head_is_behind: bool = False


def read_ledger(data: bytes, head: bytes | None) -> Reading:
    """Check every line, and the lines against the head (None: there is no head file).

    The head is written after each line, so it is level or, after a crash, one line behind.
    """
    *lines, unfinished = data.split(b"\n")
    if not unfinished and lines and _record(lines[-1]) is None:
        unfinished = lines.pop() + b"\n"
    chain, size = Chain(), 0
    for number, line in enumerate(lines, start=1):
        try:
            chain.add(line + b"\n")
        except LedgerError as error:
            return Reading(chain=chain, size=size, problem=f"line {number} {error}.", line_number=number)
        size += len(line) + 1
    known = 0
    last_hash: object = FIRST_HASH
    if head is not None:
        record = _record(head) or {}
        known, last_hash = record.get("lines", 0), record.get("last_hash")
        if type(known) is not int or known < 1 or not isinstance(last_hash, str):
            return Reading(chain=chain, size=size, unfinished=unfinished, problem="the head file is damaged.")
    count, problem, place = len(lines), None, None
    if count < known:
        problem, place = f"the file has {count} whole lines, but its head knows {known}.", count + 1
    elif count == 0:
        problem = "the file is empty or gone."
    elif count > known + 1:
        problem = f"the file has {count} lines, but its head knows only {known}: it is missing or old."
    elif chain.hashes[known] != last_hash:
        problem, place = f"line {known} is not the one that the head knows.", known
    return Reading(
        chain=chain,
        size=size,
        unfinished=unfinished,
        problem=problem,
        line_number=place,
        head_is_behind=known < count,
    )


def render_head(chain: Chain) -> bytes:
    """The head: how many lines there are, and the hash of the last."""
    head = {"lines": len(chain.hashes) - 1, "last_hash": chain.hashes[-1]}
    return _CANONICAL.encode(head).encode("ascii") + b"\n"


def data_set_name(data: bytes) -> str:
    """The data set's name in the header, or `LedgerError` for what is not a ledger of this version."""
    first, newline, _ = data.partition(b"\n")
    header = (_record(first) if newline else None) or {}
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


def _record(line: bytes) -> dict[str, Any] | None:
    """The line's JSON object, or None for anything else."""
    try:
        record = json.loads(line.decode("ascii"))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
