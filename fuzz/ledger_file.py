"""The lines of a ledger: as they are, and once more with their hashes and head made right."""

from __future__ import annotations

import json
import math
from random import Random

from fuzz.contract import check
from fuzz.mutate import change_bytes, change_json
from gcon.errors import LedgerError
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import Kind, Request
from gcon.privacy.ledger_lines import FORMAT, HEAD_OF, VERSION, Chain, read_ledger, write_request

PLAIN_SHARE = 0.5  # of inputs that libFuzzer changes itself, which is fast


def seeds() -> list[bytes]:
    """A ledger with every kind of line, and a head alone."""
    request = Request(
        kind=Kind.RELEASE, cost=Budget(1.0, 1e-5), mechanism="m", purpose="p", plan={"a": [1, math.inf]},
        randomness="operating system", gaussian_distance=0.5,
    )  # fmt: skip
    contents = [
        {"line": "header", "format": FORMAT, "version": VERSION, "data_set": "friends", "created": "now"},
        {"line": "ceiling", "time": "now", "ceiling": {"epsilon": 2.0, "delta": 1e-3}},
        {"line": "reserve", "number": 0, "time": "now", "request": write_request(request)},
        {"line": "settle", "number": 0, "time": "now", "outcome": "released"},
    ]
    chain, lines = Chain(), []
    for content in contents:
        lines.append(chain.render(content))
        chain.add(lines[-1])
    return [b"".join(lines), b"".join(lines[:2]), HEAD_OF.format(chain).encode()]


def one(data: bytes) -> None:
    """Read the lines and what they add up to."""
    for content, head in ((data, data.rpartition(b"\n")[2] or None), chained(data)):
        check(lambda: _read(content, head))  # noqa: B023


def _read(content: bytes, head: bytes | None) -> None:
    reading = read_ledger(content, head)
    first = content.partition(b"\n")
    Chain().add(first[0] + first[1])  # as when a ledger is opened
    if reading.problem is not None:
        raise LedgerError(reading.problem)


def chained(data: bytes) -> tuple[bytes, bytes]:
    """The lines with right hashes as far as they are JSON, and their head."""
    chain, lines = Chain(), []
    for line in data.split(b"\n"):
        try:
            content = json.loads(line)
            content.pop("hash", None)
            rendered = chain.render(content)
        except (ValueError, TypeError, AttributeError, RecursionError):
            lines.append(line + b"\n" if line else b"")
            continue
        lines.append(rendered)
        chain.last_hash = json.loads(rendered)["hash"]
        chain.lines += 1
    return b"".join(lines), HEAD_OF.format(chain).encode()


def change(data: bytes, random: Random) -> bytes:
    """Bytes, a line, or the tree of a line."""
    if random.random() < 0.2:
        return change_bytes(data, random)
    lines = data.split(b"\n")
    place, kind = random.randrange(len(lines)), random.randrange(8)
    if kind == 0:
        lines.insert(place, random.choice(lines))
    elif kind == 1:
        del lines[place]
    elif kind == 2:
        lines[place] += random.choice((b"\r", b" ", b"\x00", b"\n"))
    else:
        lines[place] = change_json(lines[place], random)
    return b"\n".join(lines)
