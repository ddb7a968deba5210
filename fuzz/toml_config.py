"""A TOML file with defaults for a verb, as far as the call of the verb itself."""

from __future__ import annotations

from random import Random

from fuzz.contract import check, written
from fuzz.mutate import change_bytes
from gcon.cli.app import command

VERBS = ("plan", "train", "predict", "demo")
COMMANDS = {name: command(name) for name in VERBS}
KEYS = (
    *(
        "epsilon",
        "delta",
        "classes",
        "dim",
        "labelled",
        "steps",
        "restart",
        "loss",
        "json",
        "quiet",
        "config",
        "edges",
        "nodes",
    ),
    *(
        "out",
        "noise-share",
        "noise_share",
        "mechanism",
        "method",
        "access",
        "a.b",
        '""',
        '"\\u0000"',
        "help",
        "xi",
        "seed",
        "ledger",
    ),
)
VALUES = (
    *(
        "1",
        "1.0",
        "-1",
        "inf",
        "nan",
        "true",
        '"inf"',
        '""',
        "'x'",
        '"\\ud800"',
        "[1, 2]",
        '["2", "inf"]',
        "[]",
        "{}",
        "{a = 1}",
    ),
    *(
        "2020-01-01",
        "12:00:00",
        "2020-01-01T00:00:00Z",
        "9" * 400,
        "9" * 5000,
        "0x" + "f" * 500,
        "1e999",
        "[[1], [2]]",
        "{a.b = 1}",
    ),
    *(
        "[" * 30 + "]" * 30,
        '"""\n"""',
        "2020-99-99",
        "1__0",
        "[1, [2, [3]]]",
        "[true, 1.5, 'a']",
        "1979-05-27 00:32:00.999999-07:00",
    ),
)

PLAIN_SHARE = 0.5  # of inputs that libFuzzer changes itself, which is fast


def seeds() -> list[bytes]:
    """Valid files; the first byte chooses the verb."""
    plan = b"epsilon = 1.0\ndelta = 1e-5\nclasses = 7\ndim = 16\nlabelled = 2995\n"
    return [
        b"\x00" + plan,
        b'\x01epsilon = 1\nsteps = ["2", "inf"]\n',
        b"\x02nodes = 'a'\n",
        b"\x03quiet = true\n",
        b"\x00[a]\nb = 1\n",
    ]


def one(data: bytes) -> None:
    """Read one file for one verb."""
    name = VERBS[(data[0] if data else 0) % len(VERBS)]
    with written("defaults.toml", data[1:]) as path:
        check(lambda: COMMANDS[name].make_context(name, ["--config", str(path)]))


def change(data: bytes, random: Random) -> bytes:
    """Bytes, or a line with a key and a value."""
    if random.random() < 0.3:
        return change_bytes(data, random)
    lines = data[1:].split(b"\n")
    line = f"{random.choice(KEYS)} = {random.choice(VALUES)}".encode()
    place = random.randrange(len(lines))
    if random.random() < 0.5:
        lines[place] = line
    else:
        lines.insert(place, random.choice((line, b"[a]", b"[[a]]", b"[a.b]", b"# c", b"\x00")))
    if len(lines) > 12:
        del lines[random.randrange(len(lines))]
    return (bytes([random.randrange(4)]) if random.random() < 0.3 else data[:1]) + b"\n".join(lines)
