"""What is wrong with a file, in words: with rows and values for public files, without any for the edges file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from gcon.errors import InputError
from gcon.files.readers import pl

SHOWN = 5
MOST_TOLD = 20
TABLES = (".csv", ".tsv", ".parquet")
ROOM, RATIO = 2 * 2**30, 100
TOO_LARGE = f"may unpack to {ROOM // 2**30} GiB or {RATIO} times the size of the file, whichever is more"
SPREADSHEETS = (".xlsx", ".xls", ".ods")
_FIRST_BYTES = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # of spreadsheets, new and old
_SAVE_AS_CSV = "Save it as CSV (UTF-8) in the program that made it."


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with one file.

    Attributes:
        file: which file: "nodes", "features" or "edges".
        name: the file's name, without its folder.
        rule: what is asked for.
        got: what was found. For the edges file: the kind of problem only.
        fix: the way out.
        rows: the first rows concerned, counted from 1 below the header; always empty for the edges file.
        num_rows: how many rows are concerned; always 0 for the edges file.

    Privacy:
        A problem of the edges file holds no id, row or count from it.
    """

    file: str
    name: str
    rule: str
    got: str
    fix: str
    rows: tuple[int, ...] = ()
    num_rows: int = 0

    @property
    def where(self) -> str:
        """The rows in words, or nothing."""
        if not self.rows:
            return ""
        listed = ", ".join(str(row) for row in self.rows)
        more = self.num_rows - len(self.rows)
        return f" in row{'s' if self.num_rows > 1 else ''} {listed}{f' and {more} more' if more else ''}"

    def __str__(self) -> str:
        return f"{self.file} file {self.name!r}: {self.rule}; got {self.got}{self.where}. {self.fix}"


def shortened(text: str, most: int = 500) -> str:
    """The text, cut where it is longer than a message may be."""
    return text if len(text) <= most else f"{text[:most]}…"


def listed(names: Sequence[object], most: int = 8) -> str:
    """The first names, each in quotes and cut, and how many more there are."""
    more = len(names) - most
    return ", ".join(shortened(repr(name), 80) for name in names[:most]) + (f" and {more} more" if more > 0 else "")


@dataclass
class FileProblems:
    """All that is found wrong with a public file, in the order of finding.

    Args:
        file: which file: "nodes" or "features".
        path: where it is.
    """

    file: str
    path: Path
    found: list[Problem] = field(default_factory=list)

    def add(self, rule: str, got: str, fix: str) -> None:
        """Note a problem of the whole file."""
        self.found.append(Problem(self.file, self.path.name, shortened(rule), shortened(got), fix))

    def add_rows(self, wrong: NDArray[np.bool_], rule: str, got: str | pl.Series, fix: str) -> None:
        """Note a problem of some rows, if any is wrong; of a column, the first different values in these rows are told."""
        if wrong.any():
            rows = np.flatnonzero(wrong)
            self.add(rule, got if isinstance(got, str) else listed(sorted(set(got.gather(rows).to_list()))[:3]), fix)
            shown = tuple((rows[:SHOWN] + 1).tolist())
            self.found[-1] = replace(self.found[-1], rows=shown, num_rows=int(rows.size))


def raise_problems(problems: Sequence[Problem]) -> NoReturn:
    """Raise one `InputError` for all problems, which has them too."""
    first = problems[0]
    if len(problems) == 1:
        error = InputError(
            f"{first.file} file {first.name!r}", rule=first.rule, got=f"{first.got}{first.where}", fix=first.fix
        )
    else:
        told = "".join(f"\n  - {problem}" for problem in problems[:MOST_TOLD])
        told += f"\n  - and {len(problems) - MOST_TOLD} more" if len(problems) > MOST_TOLD else ""
        fix = f"Correct them all:{told}"
        error = InputError("files", rule="must follow the format", got="several problems", fix=fix)
    error.problems = tuple(problems)
    raise error


def check_file(path: Path, file: str, *, suffixes: Sequence[str]) -> None:
    """Raise the first reason why a file cannot even be opened: another ending, not there, zero bytes."""
    ending, found = path.suffix.lower(), None
    if ending not in suffixes:
        rule = f"the name must end in {', '.join(suffixes)} (the ending alone decides the format)"
        fix = _SAVE_AS_CSV if ending in SPREADSHEETS else "Rename or convert the file."
        found = rule, f"the ending {path.suffix!r}", fix
    elif not path.is_file():
        found = "must be a file that exists", "no such file", "Check the path."
    elif path.stat().st_size == 0:
        fix = "A table without rows still needs its header." if ending in TABLES else "Write it again."
        found = "must not be empty", "zero bytes", fix
    elif ending in (".csv", ".tsv"):
        with path.open("rb") as opened:
            if opened.read(4) in _FIRST_BYTES:
                found = "must be a table of text", "a spreadsheet or an archive", _SAVE_AS_CSV
    if found is not None:
        raise_problems([Problem(file, path.name, *found)])


class TooLargeError(ValueError):
    """A small file announces far more than it can be trusted with."""


def check_room(path: Path, needed: int) -> None:
    """Raise `TooLargeError` if a file needs more memory than its size lets one expect."""
    if needed > max(ROOM, RATIO * path.stat().st_size):
        raise TooLargeError("far more when it is unpacked")
