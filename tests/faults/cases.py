"""Every verb that writes, the faults that can strike it, and what must hold after each of them."""

from __future__ import annotations

import errno
import json
import re
import shutil
import signal
import sqlite3
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from tests.faults.runs import KINDS, Fault, Run, Runner

from gcon.errors import ReleaseFormatError
from gcon.privacy.budget import NOTHING
from gcon.privacy.ledger import LedgerEntry, Outcome
from gcon.privacy.ledger_file import FileLedger
from gcon.release.read import load_release
from gcon.release.recovery import NOTE, RECOVERY, finish_kept, kept_results

LEDGER, NODES = "edges.csv.ledger", 60
GRAPH = ("--edges", "edges.csv", "--nodes", "nodes.csv")
PAPER = ("--method", "paper", "--hidden", "0")
UNCHANGED = ("edges.csv", "nodes.csv", "release/release.json", "release/model.safetensors")
CODES = {0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 129, 130, 143, -signal.SIGKILL}
SIZES = (0, 200, 1_000, 4_000, 16_000, 64_000, 9_000_000)


@dataclass(frozen=True)
class Verb:
    """A call, what it makes, and where faults strike ("" for the whole folder)."""

    arguments: tuple[str, ...]
    makes: str = ""
    folders: tuple[str, ...] = ("",)


VERBS = {
    "train": Verb(("train", *GRAPH, *PAPER, "--epsilon", "1", "--out", "out/model"), "model", ("", "out", LEDGER)),
    "train moments": Verb(("train", *GRAPH, "--epsilon", "1", "--out", "out/model"), "model", ("out", LEDGER)),
    "tune": Verb(
        ("tune", *GRAPH, "--epsilon", "1", "--pay", "0.1", "--draws", "1", "--out", "out/t.toml"), "number", ("", "out")
    ),
    "advise": Verb(("advise", *GRAPH, "--epsilon", "1", "--look", "0.1"), "number"),
    "evaluate": Verb(("evaluate", "release", *GRAPH, "--access", "own-edges", "--paid", "0.5"), "number"),
    "predict": Verb(("predict", "release", *GRAPH, "--out", "out/p.csv"), "table"),
    "predict parquet": Verb(("predict", "release", *GRAPH, "--out", "out/p.parquet"), "table"),
    "predict own-edges": Verb(
        ("predict", "release", *GRAPH, "--access", "own-edges", "--out", "out/p.csv"), "table", ("", "out")
    ),
    "data make": Verb(("data", "make", "--out", "out", "--nodes", "60", "--classes", "2"), "files"),
    "data convert parquet": Verb(("data", "convert", *GRAPH, "--out", "out", "--format", "parquet"), "files"),
    "data convert csr": Verb(("data", "convert", *GRAPH, "--out", "out", "--format", "csr"), "files"),
    "ledger set-ceiling": Verb(("ledger", "set-ceiling", LEDGER, "--epsilon", "50", "--delta", "1e-3")),
    "tokens issue": Verb(
        ("serve", "tokens", "issue", "t.sqlite", "--nodes", "nodes.csv", "--out", "out/t.csv"), "issue"
    ),
    "tokens revoke": Verb(("serve", "tokens", "revoke", "t.sqlite", "--node", "7"), "revoke"),
    "site": Verb(("site", "release", "--out", "out/pages")),
}


def make_world(run: Runner, folder: Path) -> None:
    """A graph, a release, a ledger with one entry, tokens, and a folder to write to."""
    for call in (
        ("data", "make", "--out", ".", "--nodes", NODES, "--classes", "2"),
        ("train", *GRAPH, *PAPER, "--epsilon", "1", "--out", "release"),
        ("serve", "tokens", "issue", "t.sqlite", "--nodes", "nodes.csv", "--node", "7", "--out", "tokens.csv"),
    ):
        ended = run(folder, *call)
        assert ended.code == 0, ended.err
    (folder / "out").mkdir()


def faults(verb: Verb, calls: dict[str, dict[str, int]]) -> Iterator[Fault]:
    """All faults of a verb; `calls` says for every folder how many calls of a kind there are without one."""
    for folder, counts in calls.items():
        for kind in KINDS:
            for call in range(1, counts[kind] + 1):
                yield Fault(folder, kind, call, errno.EIO)
                if kind in ("write", "create", "mkdir"):
                    yield Fault(folder, kind, call, errno.ENOSPC, lasts=True)
                if folder == verb.folders[0]:
                    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
                        yield Fault(folder, kind, call, signal=number)
        for kind in ("create", "mkdir"):
            yield Fault(folder, kind, 1, errno.EROFS, lasts=True)
        yield from (Fault(folder, room=room) for room in SIZES)
    yield from (Fault(kind=kind, json=json) for kind in ("stdout", "pipe", "stderr") for json in (False, True))


@dataclass
class Seen:
    """What a run left."""

    world: Path
    before: Path
    run: Run
    fault: Fault

    @property
    def said(self) -> str:
        """All that it said; in one line, as terminals may break it."""
        return f"{self.run.err} {self.run.out}"

    @property
    def killed(self) -> bool:
        return self.run.code == -signal.SIGKILL

    def entries(self) -> list[LedgerEntry]:
        """The entries that the run made."""
        old = len(FileLedger(self.before / LEDGER).entries())
        return list(FileLedger(self.world / LEDGER).entries())[old:]


def judge(verb: Verb, seen: Seen) -> list[str]:
    """What does not hold."""
    problems: list[str] = []

    def must(holds: object, words: str) -> None:
        if not holds:
            problems.append(words)

    run, said = seen.run, seen.said
    must(run.code in CODES, f"exit code {run.code} is not documented")
    must("Traceback" not in said, "a traceback")
    must(not run.left, "a process is left")
    must(run.code == 0 or seen.fault.kind != "stderr", "failed because nobody could hear its progress")
    must(seen.killed or run.code == 0 or "error: " in run.err or seen.fault.kind == "pipe", "ended without a word")
    for name in UNCHANGED:
        must((seen.world / name).read_bytes() == (seen.before / name).read_bytes(), f"{name} was changed")
    found = FileLedger(seen.world / LEDGER).verify()
    must(found.ok, f"the ledger: {found.problem}")
    if not found.ok:
        return problems
    if not seen.killed:
        for path in chain(seen.world.rglob(".*"), seen.world.rglob("*.new")):
            problems.append(f"left behind: {path.relative_to(seen.world)}")
    entries = [entry for entry in seen.entries() if entry.outcome is not Outcome.WITHDRAWN]
    charged = [entry for entry in entries if entry.request.cost != NOTHING]
    must(len(entries) <= 1, "more than one entry")
    told = re.search("Charged: epsilon|may stand in it", said)
    if charged and run.code != 0 and not seen.killed:
        must(told, "charged without a word")
        must(run.code in (4, 7, 9, 130, 143), f"charged, and exit code {run.code}")
    if not charged and not seen.killed:
        must("Charged: epsilon" not in said, "says that it charged what it did not")
        must(run.code != 9 or "may stand in it, and is charged" in said, "exit code 9, and nothing is charged")
    if run.code == 0 and entries:
        must(entries[0].outcome is Outcome.RELEASED or "stays reserved" in run.err, "done, not settled, and not said")
    problems += RESULTS[verb.makes](seen, charged)
    problems += _kept(seen)
    return problems


def _model(seen: Seen, charged: list[LedgerEntry]) -> list[str]:
    target = seen.world / "out" / "model"
    there = False
    if target.exists():
        try:
            load_release(target)
            there = True
        except ReleaseFormatError as error:
            return [f"half a model: {error}"]
    kept = any(each.release for each in kept_results(seen.world / LEDGER))
    if there and not charged:
        return ["a model that nobody paid for"]
    if seen.run.code == 0 and not there:
        return ["done, and no model"]
    lost = charged and not there and not kept and not seen.killed
    if lost and not re.search("is lost|stopped by|may stand|computation on private", seen.said):
        return ["a paid model is lost without a word"]
    return []


def _number(seen: Seen, charged: list[LedgerEntry]) -> list[str]:
    if not charged or seen.killed:
        return []
    if charged[0].result is not None or any(each.result for each in kept_results(seen.world / LEDGER)):
        return []
    if seen.run.code == 0 and seen.run.out.strip():
        return []
    if re.search("stopped by|may stand|computation on private|save it by hand", seen.said):
        return []
    return ["a paid number is lost without a word"]


def _table(seen: Seen, charged: list[LedgerEntry]) -> list[str]:
    tables = list((seen.world / "out").iterdir())
    if seen.run.code == 0 and not tables:
        return ["done, and no table"]
    for path in tables:
        if path.suffix == ".csv" and path.read_text().count("\n") != NODES + 1:
            return ["half a table"]
    return []


def _files(seen: Seen, charged: list[LedgerEntry]) -> list[str]:
    names = sorted(path.name for path in (seen.world / "out").iterdir() if not path.name.startswith("."))
    if seen.run.code == 0 and len(names) < 2:
        return ["done, and not all files"]
    if names and len(names) < 2:
        return [] if seen.killed else [f"half of the files: {names}"]
    return []


def _tokens(folder: Path) -> list[tuple[str, object]]:
    with sqlite3.connect(folder / "t.sqlite") as file:
        return file.execute("SELECT node, revoked FROM tokens").fetchall()


def _issue(seen: Seen, charged: list[LedgerEntry]) -> list[str]:
    new, sheet = len(_tokens(seen.world)) - 1, seen.world / "out" / "t.csv"
    if seen.killed:
        return []
    if seen.run.code == 0 or sheet.exists():
        handed_out = sheet.exists() and sheet.read_text().count("\n") == NODES + 1
        return [] if handed_out and new == NODES else ["done, and not all tokens"]
    return [] if new == 0 or "nobody has seen" in seen.said else ["tokens that nobody has seen"]


def _revoke(seen: Seen, charged: list[LedgerEntry]) -> list[str]:
    holds = all(revoked is not None for _, revoked in _tokens(seen.world))
    if seen.killed:
        return []
    if seen.run.code == 0:
        return [] if holds else ["done, and not revoked"]
    if holds:
        return [] if "That holds" in seen.said or "revoke them again" in seen.said else ["revoked without a word"]
    return [] if "NOTHING WAS REVOKED" in seen.said else ["not revoked without a word"]


RESULTS = {
    "": lambda seen, charged: [],
    "model": _model,
    "number": _number,
    "table": _table,
    "files": _files,
    "issue": _issue,
    "revoke": _revoke,
}


def _kept(seen: Seen) -> list[str]:
    """What is kept is for its owner only, whole, and can be finished; that pays nothing."""
    problems, home = [], seen.world / RECOVERY.format(LEDGER)
    if not home.exists():
        return []
    for path in chain([home], home.rglob("*")):
        if stat.S_IMODE(path.stat().st_mode) & 0o077 and not seen.killed:
            problems.append(f"others may read {path.relative_to(seen.world)}")
    ledger = FileLedger(seen.world / LEDGER)
    spent = ledger.total()
    for each in kept_results(ledger.path):
        if each.release is not None:
            target = seen.world / f"finished-{each.entries[0][0]}"
            finish_kept(ledger, each, target)
            load_release(target)
            if ledger.entries()[each.entries[0][0]].outcome is not Outcome.RELEASED:
                problems.append("finished, and not settled")
    if ledger.total() != spent:
        problems.append("finishing changed what is spent")
    for folder in home.glob("entry-*") if home.exists() else ():
        if not (folder / NOTE).exists():
            problems.append(f"half kept: {folder.name}")
    return problems


def strike(run: Runner, template: Path, place: Path, verb: Verb, fault: Fault) -> tuple[Run, list[str]]:
    """One fault in a fresh copy of the world, and what does not hold after it."""
    world = place / "world"
    shutil.rmtree(world, ignore_errors=True)
    shutil.copytree(template, world)
    ended = run(world, *verb.arguments, fault=fault)
    return ended, judge(verb, Seen(world, template, ended, fault))


def calls_of(run: Runner, template: Path, place: Path, verb: Verb) -> dict[str, dict[str, int]]:
    """For every folder of a verb: how many calls of a kind it makes there, if nothing fails."""
    found = {}
    for folder in verb.folders:
        ended, problems = strike(run, template, place, verb, Fault(folder))
        assert not problems, (verb, problems, ended.err)
        assert ended.code == 0, ended.err
        found[folder] = ended.calls
    return found


def as_line(name: str, fault: Fault, ended: Run, problems: list[str]) -> str:
    """A line of the matrix's record."""
    return json.dumps(
        {"verb": name, "fault": vars(fault), "code": ended.code, "problems": problems, "said": ended.err[-1500:]}
    )
