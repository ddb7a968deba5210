"""Changes that keep the structure of a file: JSON trees, lines and fields of text, bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

Change = Callable[[bytes, Random], bytes]

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 0.5, -0.0, 1e308, 5e-324, float("nan"), float("inf"), 2**31, 2**63, 2**64),
    *(10**30, 10**400, "", "inf", "-inf", "nan", "0", "a", "\x00", "\u202e", "\ud800", "e\u0301", "\u200b", "x" * 300),
    *([], {}, [[]], [0], [1, 2], {"": 0}, {"epsilon": "inf", "delta": 1}),
)
WORDS = (
    *(
        b"",
        b"0",
        b"-1",
        b"007",
        b"1.5",
        b"1e9",
        b"nan",
        b"inf",
        b"p1",
        b"P1",
        b"9223372036854775808",
        b"\xff",
        b"\xed\xa0\x80",
    ),
    *(
        b"\x00",
        b"\xef\xbb\xbf",
        b'"',
        b'""',
        b'"\n"',
        b"\r",
        b"\r\n",
        b"\n\n",
        b",",
        b"\t",
        b";",
        b"\xe2\x80\x8b",
        b"\xe2\x80\xae",
    ),
    *(
        b"e\xcc\x81",
        b"\xc3\xa9",
        b"source",
        b"target",
        b"id",
        b"label",
        b"split",
        b"train",
        b"test",
        b"x" * 200,
        b" p1 ",
        b"'",
    ),
)


def change_bytes(data: bytes, random: Random) -> bytes:
    """A few bytes set, put in, taken out or repeated."""
    found = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        place, kind = random.randrange(len(found) + 1), random.randrange(5)
        if kind == 0 and place < len(found):
            found[place] ^= 1 << random.randrange(8)
        elif kind == 1 and place < len(found):
            found[place] = random.randrange(256)
        elif kind == 2:
            found[place:place] = random.choice(WORDS)
        elif kind == 3:
            del found[place : place + random.choice((1, 2, 8, 64))]
        else:
            found[place:place] = found[place : place + random.choice((1, 4, 16))]
    return bytes(found)


def change_lines(data: bytes, random: Random, *, separators: bytes = b",\t") -> bytes:
    """A field or a line changed, put in, taken out, repeated or moved."""
    lines = data.split(b"\n")
    place, kind = random.randrange(len(lines)), random.randrange(6)
    if kind <= 2:
        mark = bytes([random.choice(separators)])
        fields = lines[place].split(mark)
        spot = random.randrange(len(fields))
        if kind == 0:
            fields[spot] = random.choice(WORDS)
        elif kind == 1:
            fields.insert(spot, random.choice((*WORDS, fields[spot])))
        else:
            del fields[spot]
        lines[place] = mark.join(fields)
    elif kind == 3:
        lines.insert(place, random.choice(lines))
    elif kind == 4:
        del lines[place]
    else:
        other = random.randrange(len(lines))
        lines[place], lines[other] = lines[other], lines[place]
    return b"\n".join(lines)


def change_tree(tree: Any, random: Random, values: Sequence[Any] = VALUES) -> Any:
    """One spot of a JSON tree changed."""
    spots: list[tuple[Any, Any]] = []
    _collect(tree, spots)
    if not spots:
        return random.choice(values)
    home, key = random.choice(spots)
    kind = random.randrange(8)
    if kind <= 2:
        home[key] = random.choice(values)
    elif kind == 3:
        del home[key]
    elif kind == 4 and isinstance(home, dict):
        home[random.choice(("", "x", "hash", "line", key.upper(), random.choice(spots)[1]))] = home[key]
        home.update({str(name): home.pop(name) for name in list(home) if not isinstance(name, str)})
    elif kind == 5:
        other, name = random.choice(spots)
        home[key] = json.loads(json.dumps(other[name])) if name in _keys(other) else None
    elif kind == 6 and isinstance(home[key], int | float):
        home[key] = home[key] * random.choice((-1, 2, 10)) + random.choice((0, 1, -1))
    else:
        for _ in range(random.choice((1, 2, 40))):
            home[key] = [home[key]]
    return tree


def _keys(home: Any) -> Any:
    return home if isinstance(home, dict) else range(len(home))


def _collect(tree: Any, spots: list[tuple[Any, Any]], depth: int = 0) -> None:
    if depth > 60 or not isinstance(tree, dict | list):
        return
    for key in list(_keys(tree)):
        spots.append((tree, key))
        _collect(tree[key], spots, depth + 1)


def change_json(data: bytes, random: Random) -> bytes:
    """JSON changed as a tree; one time in twenty a number in its text grows beyond what Python turns into a number."""
    try:
        tree = json.loads(data)
        for _ in range(random.choice((1, 1, 2, 3))):
            tree = change_tree(tree, random)
        text = json.dumps(tree)
    except (ValueError, RecursionError):
        return change_bytes(data, random)
    if random.randrange(20) == 0:
        text = re.sub(r"(?<=[ \[])\d+(?=[,\]}])", "9" * random.choice((400, 5000)), text, count=1)
    return text.encode()


def mostly(change: Change, *, share: float = 0.8) -> Change:
    """That change, else plain bytes."""
    return lambda data, random: (change if random.random() < share else change_bytes)(data, random)
