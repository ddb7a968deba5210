"""How the columns of a public node table become features: numbers, gaps and categories by one rule, the same at every use.

| column                | becomes                                                                                            |
|-----------------------|----------------------------------------------------------------------------------------------------|
| numbers               | one feature; where the training table has gaps, they are filled with its mean and a second feature |
|                       | is 1 where there was a gap, else 0                                                                 |
| categorical           | one feature per category of the training table, 1 in rows of that category, else 0; a gap is a     |
|                       | category of its own if the training table has one; any other category is 0 everywhere              |
| one that was dropped  | nothing: it is not read                                                                            |
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcon.errors import InputError

MOST_SHOWN = 80  # letters of a name or cell in a message
COMMAS = "numbers with a comma, such as "
WITH_A_POINT = (
    "Write numbers with a point (1.5), without marks of thousands; pandas reads others: read_csv(..., decimal=',')."
)
_WORDS_OF_A_SPLIT = ("train", "val", "validation", "test")
_COMMA = re.compile(r"\s*[-+]?[0-9]+([.' ][0-9]{3})*(,[0-9]+)+(\.[0-9]+)?([eE][-+]?[0-9]+)?\s*")
GAP = ""  # the category of a gap: no cell holds it, since an empty cell is one
MOST_ENTRIES, MOST_BYTES = 150_000, 2**23  # what a release has room for


@dataclass(frozen=True, kw_only=True)
class FeatureColumns:
    """What was done with the columns of the training table. Public, like the table.

    Attributes:
        names: the columns that are used, in order.
        categories: of every categorical column, in order; the first is "" where the table has gaps.
        fill: of every column of numbers with gaps, the mean of the others.
        drop: columns that were left out.
        width: how many features they become.
    """

    names: tuple[str, ...]
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fill: Mapping[str, float] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    width: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        width = len(self.names) + len(self.fill) + sum(len(each) - 1 for each in self.categories.values())
        object.__setattr__(self, "width", width)
        known, special = set(self.names), [*self.categories, *self.fill]
        fits = (
            0 < len(known) == len(self.names)
            and known.issuperset(special)
            and len(set(special)) == len(special)
            and known.isdisjoint(self.drop)
            and all(0 < len(set(each)) == len(each) for each in self.categories.values())
            and all(math.isfinite(value) for value in self.fill.values())
        )
        if not fits:
            rule, fix = "must name each column once, with different categories or a finite mean", "Name them again."
            raise InputError("columns", rule=rule, got="others", fix=fix)
        words = [*self.names, *special, *self.drop, *(word for each in self.categories.values() for word in each)]
        entries = len(words) + sum(word.count(mark) for word in words for mark in ",[{")
        size = sum(
            len(json.dumps(word)) for word in words
        )  # not less than in the release, where letters stay as they are
        halves = any(
            "\ud800" <= letter <= "\udfff" for word in words for letter in word
        )  # of letters: no text has them
        if entries > MOST_ENTRIES or size > MOST_BYTES or halves:
            raise InputError(
                "columns",
                rule=f"names and categories must be text of at most {MOST_ENTRIES} words and {MOST_BYTES} bytes",
                got=f"{len(words)} words",
                fix="Drop columns that are ids or free text, or pass the features as a matrix.",
            )

    @property
    def plain(self) -> bool:
        """Whether every column is just a number: then a matrix of them, in this order, is the features."""
        return not self.categories and not self.fill

    @property
    def feature_names(self) -> list[str]:
        """What the features are called, in order."""
        return [
            word
            for name in self.names
            for word in (
                [f"{name}={category or 'missing'}" for category in self.categories[name]]
                if name in self.categories
                else [name, f"{name} is missing"]
                if name in self.fill
                else [name]
            )
        ]

    def described(self, name: str) -> str:
        """What becomes of a column, in words."""
        if name in self.categories:
            words = [category or "missing" for category in self.categories[name]]
            return f"one of {len(words)} categories: {', '.join(words[:10])}{', …' if len(words) > 10 else ''}"
        return f"a number; {self.fill[name]:.6g} where it is missing" if name in self.fill else "a number"


def same_features(first: FeatureColumns | None, second: FeatureColumns | None) -> bool:
    """Whether features that were made by the one may be used with the other; None: they came as a matrix of numbers."""
    if first is None or second is None:
        return all(each is None or each.plain for each in (first, second))
    return replace(first, drop=()) == replace(second, drop=())


class Cells(NamedTuple):
    """A column of a table as it stands.

    Attributes:
        name: of the column.
        numbers: float64, NaN in a gap; None where the column as a whole is of another kind.
        texts: the cells as text, "" in a gap; None where that makes no sense (dates, lists).
        strange: rows whose cell is neither a number nor a gap.
        kind: for messages.
    """

    name: str
    numbers: NDArray[np.float64] | None
    texts: Callable[[], Sequence[str]] | None
    strange: NDArray[np.bool_] | None
    kind: str


Read = Callable[[str], Cells]


class Trouble(NamedTuple):
    """What is wrong with a column: in some rows, or as a whole (None)."""

    rule: str
    got: str
    fix: str
    rows: NDArray[np.bool_] | None = None


def kind_of_text(cell: str) -> str:
    """What a cell that is no number is, for messages."""
    return f"{COMMAS if _COMMA.fullmatch(cell[:MOST_SHOWN]) else 'text such as '}{cell[:MOST_SHOWN]!r}"


def category_of(value: object) -> str:
    """A cell as the name of a category, "" for a gap; whole numbers stored as fractions lose their point."""
    if isinstance(value, str):
        return value
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        return GAP
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def learn_columns(
    names: Sequence[str], read: Read, *, categorical: Sequence[str], drop: Sequence[str], way_out: str
) -> tuple[FeatureColumns | None, list[Trouble]]:
    """What to do with the columns of a training table, or all that is wrong with them.

    Args:
        names: of the columns that are left after dropping.
        read: gives a column; one at a time is held.
        categorical: names of those that hold categories.
        drop: names of those that were dropped.
        way_out: what to do about text, with {name} for the column.
    """
    categories: dict[str, tuple[str, ...]] = {}
    fill: dict[str, float] = {}
    rule, fix = "categorical columns must be features of the table", "Check the name; name several one by one."
    unknown = [name for name in dict.fromkeys(categorical) if name not in set(names)]
    found = [Trouble(rule, f"no such column {name!r}", fix) for name in unknown]
    for cells in map(read, names):
        if cells.name in categorical:
            if cells.texts is None:
                found.append(_no_categories(cells))
            else:
                categories[cells.name] = tuple(sorted(set(cells.texts())))
        elif cells.numbers is None or (cells.strange is not None and cells.strange.any()):
            found.append(_no_numbers(cells, cells.kind, way_out, cells.strange))
        else:
            known = cells.numbers[~np.isnan(cells.numbers)]
            if not known.size and cells.numbers.size:
                rule = f"column {cells.name!r}: must hold a number somewhere"
                found.append(Trouble(rule, "gaps only", way_out.format(name=repr(cells.name)[:MOST_SHOWN])))
            elif known.size < cells.numbers.size:
                fill[cells.name] = float((known / known.size).sum())
    if found:
        return None, found
    return FeatureColumns(names=tuple(names), categories=categories, fill=fill, drop=tuple(dict.fromkeys(drop))), []


def features_of(
    columns: FeatureColumns, read: Read, *, height: int, wide: bool, fix: str
) -> tuple[NDArray[Any], list[Trouble]]:
    """The features of a table, and what is wrong with it.

    Args:
        columns: what to do.
        read: gives a column by its name; one at a time is held.
        height: number of rows.
        wide: 64-bit features instead of 32-bit ones.
        fix: what to do about cells that should be numbers, with {name} for the column.
    """
    matrix = np.zeros((height, columns.width), dtype=np.float64 if wide else np.float32)
    place = 0
    found: list[Trouble] = []
    for cells in map(read, columns.names):
        categories, filled = columns.categories.get(cells.name), cells.name in columns.fill
        if categories is not None:
            if cells.texts is None:
                found.append(_no_categories(cells))
            else:
                numbered = {category: number for number, category in enumerate(categories)}
                numbers = np.fromiter((numbered.get(text, -1) for text in cells.texts()), dtype=np.int64, count=height)
                rows = np.flatnonzero(numbers >= 0)
                matrix[rows, place + numbers[rows]] = 1
            place += len(categories)
            continue
        if cells.numbers is None:
            found.append(_no_numbers(cells, cells.kind, fix, None))
        else:
            strange = np.zeros(height, dtype=bool) if cells.strange is None else cells.strange
            empty = np.isnan(cells.numbers)
            gaps = empty & ~strange
            with np.errstate(over="ignore"):
                matrix[:, place] = np.where(empty, columns.fill.get(cells.name, 0.0), cells.numbers)
            if filled:
                matrix[:, place + 1] = gaps
            wrong = {cells.kind: strange, "infinity, or a number too large": ~np.isfinite(matrix[:, place])}
            if not filled:
                wrong["nothing"] = gaps
            found += [_no_numbers(cells, got, fix, rows) for got, rows in wrong.items() if rows.any()]
        place += 2 if filled else 1
    return matrix, found


def _no_categories(cells: Cells) -> Trouble:
    rule = f"column {cells.name!r}: categories must be words, numbers or truth values"
    return Trouble(rule, cells.kind, "Convert it to one of these.")


def _no_numbers(cells: Cells, got: str, fix: str, rows: NDArray[np.bool_] | None) -> Trouble:
    """In some rows, or as a whole."""
    name = repr(cells.name)[:MOST_SHOWN]
    fix = WITH_A_POINT if got.startswith(COMMAS) else fix.format(name=name)
    if any(got.endswith(repr(word)) for word in _WORDS_OF_A_SPLIT):
        fix = f"If it says who teaches and who is scored, its name must be 'split'. {fix}"
    return Trouble(f"column {name}: features must be finite numbers", got, fix, rows)
