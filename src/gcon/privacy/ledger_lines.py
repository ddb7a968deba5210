"""The lines of a ledger file: one JSON record per line, chained by hashes. No file is touched here.

| line    | fields                                                                                              |
|---------|-----------------------------------------------------------------------------------------------------|
| header  | format, version, data_set, created; the first line, and only there                                   |
| ceiling | time, ceiling (epsilon and delta, or null for no limit)                                              |
| reserve | number, time, request                                                                                |
| settle  | number, time (that of the reservation: the run time may depend on edges), outcome                    |

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
from dataclasses import dataclass, replace
from typing import Any

from gcon.errors import InputError, LedgerError
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import Kind, LedgerEntry, Outcome, Request

FORMAT, VERSION = "gcon ledger", 1
FIRST_HASH = "0" * 64
MOST_CHARACTERS = 200
_WORDS = ("mechanism", "purpose", "randomness", "composition", "protected_change")
_UNFIT = frozenset({"Cc", "Cs", "Zl", "Zp"})  # control characters, half characters, line and paragraph separators
_INFINITE = {"inf": math.inf, "-inf": -math.inf}


class Chain:
    """What the lines so far say. Each line is checked against all lines before it."""

    def __init__(self) -> None:
        self.data_set = ""
        self.ceiling: Budget | None = None
        self.entries: list[LedgerEntry] = []
        self.reserve_hashes: list[str] = []
        self.hashes = [FIRST_HASH]

    @property
    def count(self) -> int:
        """The number of lines."""
        return len(self.hashes) - 1

    def render(self, content: Mapping[str, object]) -> bytes:
        """The next line, with its hash and the newline."""
        digest = hashlib.sha256(self.hashes[-1].encode() + _canonical(content)).hexdigest()
        return _canonical({**content, "hash": digest}) + b"\n"

    def add(self, line: bytes) -> None:
        """Take the next line, or raise `LedgerError` with what is wrong with it."""
        content = _record(line)
        if content is None:
            raise LedgerError("is damaged")
        digest = str(content.pop("hash", None))
        try:
            if self.render(content) != line:
                raise LedgerError("was edited, or a line before it was changed, removed, added or moved")
            self._take(content, digest)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError):
            raise LedgerError("does not have the fields of a ledger line") from None
        self.hashes.append(digest)

    def made(self, number: int, line_hash: object) -> bool:
        """Whether the reservation of this number was made by the line of this hash."""
        return 0 <= number < len(self.reserve_hashes) and self.reserve_hashes[number] == line_hash

    def _take(self, content: dict[str, Any], digest: str) -> None:
        kind = content["line"]
        if (kind == "header") != (self.count == 0):
            raise LedgerError("should not be there: a ledger has one header, as its first line")
        if kind == "header":
            self.data_set = _header_name(content)
        elif kind == "ceiling":
            self.ceiling = None if content["ceiling"] is None else _read_budget(content["ceiling"])
        elif kind == "reserve":
            number, time = content["number"], str(content["time"])
            if number != len(self.entries):
                raise LedgerError("has a number out of order")
            request = _read_request(content["request"])
            entry = LedgerEntry(
                number=number, time=time, data_set=self.data_set, request=request, outcome=Outcome.RESERVED
            )
            self.entries.append(entry)
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
            self.entries[number] = replace(entry, outcome=outcome)
        else:
            raise LedgerError("is of an unknown kind")


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
    """Check every line, and the lines against the head (None: there is no head file)."""
    *lines, unfinished = data.split(b"\n")
    if not unfinished and lines and _record(lines[-1]) is None:
        unfinished = lines.pop() + b"\n"
    chain, size = Chain(), 0
    for line in lines:
        try:
            chain.add(line + b"\n")
        except LedgerError as error:
            number = chain.count + 1
            return Reading(chain=chain, size=size, problem=f"line {number} {error}.", line_number=number)
        size += len(line) + 1
    known = _read_head(head)
    problem, number_or_none = _compare(chain, known)
    return Reading(
        chain=chain,
        size=size,
        unfinished=unfinished,
        problem=problem,
        line_number=number_or_none,
        head_is_behind=known is not None and known[0] < chain.count,
    )


def _compare(chain: Chain, known: tuple[int, str] | None) -> tuple[str | None, int | None]:
    """Lines against head. The head is written after each line, so it is level or, after a crash, one line behind."""
    if known is None:
        return "the head file is damaged.", None
    count, last_hash = known
    if chain.count < count:
        return f"the file has {chain.count} whole lines, but its head knows {count}.", chain.count + 1
    if chain.count == 0:
        return "the file is empty or gone.", None
    if chain.count > count + 1:
        return f"the file has {chain.count} lines, but its head knows only {count}: it is missing or old.", None
    if chain.hashes[count] != last_hash:
        return f"line {count} is not the one that the head knows.", count
    return None, None


def render_head(chain: Chain) -> bytes:
    """The head: how many lines there are, and the hash of the last."""
    return _canonical({"lines": chain.count, "last_hash": chain.hashes[-1]}) + b"\n"


def _read_head(head: bytes | None) -> tuple[int, str] | None:
    if head is None:
        return 0, FIRST_HASH
    record = _record(head) or {}
    count, last_hash = record.get("lines"), record.get("last_hash")
    return (count, last_hash) if type(count) is int and count > 0 and isinstance(last_hash, str) else None


def data_set_name(data: bytes) -> str:
    """The data set's name in the header, or `LedgerError` for what is not a ledger of this version."""
    first, newline, _ = data.partition(b"\n")
    return _header_name((_record(first) if newline else None) or {})


def _header_name(header: Mapping[str, Any]) -> str:
    version, name = header.get("version"), header.get("data_set")
    if header.get("format") != FORMAT or type(version) is not int or version < 1 or not isinstance(name, str):
        raise LedgerError("is not the header of a gcon ledger: check the path")
    if version > VERSION:
        raise LedgerError(f"is of version {version}; this gcon reads up to {VERSION}: update gcon")
    return name


def header(data_set: str, created: str) -> dict[str, object]:
    """The content of the first line."""
    return {"line": "header", "format": FORMAT, "version": VERSION, "data_set": data_set, "created": created}


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
    plan = _write(request.plan)
    if not isinstance(plan, dict):
        raise _unfit("plan", request.plan)
    fields = {**words, "kind": str(request.kind), "cost": write_budget(request.cost), "plan": plan}
    return fields if request.gaussian_distance is None else {**fields, "gaussian": _write(request.gaussian_distance)}


def write_budget(budget: Budget) -> dict[str, object]:
    """A budget as JSON values; infinite epsilon is the string "inf"."""
    return {"epsilon": _write(float(budget.epsilon)), "delta": float(budget.delta)}


def _read_request(fields: Mapping[str, Any]) -> Request:
    words = {name: str(fields[name]) for name in _WORDS}
    distance = fields.get("gaussian")
    return Request(
        kind=Kind(fields["kind"]),
        cost=_read_budget(fields["cost"]),
        plan=_read(fields["plan"]),
        gaussian_distance=distance,
        **words,
    )


def _read_budget(fields: Mapping[str, Any]) -> Budget:
    return Budget(float(fields["epsilon"]), float(fields["delta"]))


def _write(value: object) -> object:
    """The value in JSON's types. What would not come back the same is refused, without showing it."""
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
        return [_write(item) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {str(key): _write(item) for key, item in value.items()}
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


def _canonical(record: Mapping[str, object]) -> bytes:
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.encode("ascii")


def _record(line: bytes) -> dict[str, Any] | None:
    """The line's JSON object, or None for anything else."""
    try:
        record = json.loads(line.decode("ascii"))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
