"""All results of a folder as tables and pictures: time, memory and cost against size, both scales logarithmic."""

from __future__ import annotations

import csv
import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gcon.errors import InputError
from gcon.writing import write_whole
from gcon_lab.bench.graphs import ENTRIES_A_NODE
from gcon_lab.tables import markdown, sheet, svg_text

_HOUR = 3600
Result = dict[str, Any]
_WHOLE, _REAL = (
    ("nodes", "entries", "columns", "workers", "repeats", "cores", "gpus"),
    ("seconds", "processor_seconds", "load"),
)
_BYTES, _SHARES = ("peak_bytes", "host_bytes", "inputs_bytes"), ("none", "cached", "exact edges")
_FIELDS = ("work", "engine", "contender", *_WHOLE, "machine", *_REAL, *_BYTES, *_SHARES, "failed")
_GIB = 2**30
_BUSY = 1.5  # programs per core that are at work: times say less
LEAST_FIT = 10**7  # entries from which on growth is fitted: below, starting up counts
_NAMES = {"walk": "ten steps", "training": "a whole training"}
_PLACES = {
    "cpu": "all in memory",
    "disk": "features and edges on disk",
    "cluster": "{workers} workers, everything on disk",
    "gpu": "edges on the GPU",
}


class Prices(NamedTuple):
    """Dollars per hour. The defaults are round assumptions, nobody's offer: set your own.

    Attributes:
        core: of one processor core.
        gib: of one GiB of memory.
        gpu: of one GPU, without the machine around it.
    """

    core: float = 0.04
    gib: float = 0.005
    gpu: float = 4.0

    def cost(self, result: Mapping[str, Any]) -> float | None:
        """Dollars for one run of what was measured; None if nothing was, or if nobody knows on what machine."""
        if "seconds" not in result or "cores" not in result:
            return None
        memory = result["host_bytes"] / _GIB
        return float(
            result["seconds"] / _HOUR * (result["cores"] * self.core + memory * self.gib + result["gpus"] * self.gpu)
        )


USUAL = Prices()


def prices(text: str) -> Prices:
    """Read `core=0.04,gib=0.005,gpu=4`; what is left out keeps its default.

    Example:
        >>> prices("gpu=2.5")
        Prices(core=0.04, gib=0.005, gpu=2.5)
    """
    found: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        name, _, number = part.partition("=")
        try:
            found[name.strip()] = float(number)
        except ValueError:
            found[name.strip()] = math.nan
    if not found.keys() <= set(Prices._fields) or not all(0 <= price < math.inf for price in found.values()):
        raise InputError(
            "prices",
            rule="must be dollars per hour, for core, gib and gpu",
            got=repr(text[:80]),
            fix="For example core=0.04,gib=0.005,gpu=4.",
        )
    return Prices(**found)


def read_results(place: Path) -> list[Result]:
    """Everything that was measured into a folder, or the numbers that were written of it (`scale.csv`), smallest first."""
    found = _from_sheet(place) if place.is_file() else [json.loads(path.read_text()) for path in place.glob("*.json")]
    found = [{"work": "walk", **each} for each in found]
    return sorted(found, key=lambda each: [each[name] for name in ("work", "engine", "contender", "entries", "nodes")])


def _from_sheet(path: Path) -> list[Result]:
    found = []
    try:
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                given = {name: text for name, text in row.items() if text}
                result: Result = {
                    name: given[name] for name in ("work", "engine", "contender", "machine", "failed") if name in given
                }
                result |= {name: int(given[name]) for name in (*_WHOLE, *_BYTES) if name in given}
                result |= {name: float(given[name]) for name in _REAL if name in given}
                shares = {name: float(given[name]) for name in _SHARES if name in given}
                if not {"engine", "contender", "nodes", "entries"} <= result.keys():
                    raise ValueError
                found.append(result | ({"right": shares} if shares else {}))
    except (OSError, ValueError, UnicodeError, csv.Error):
        rule = "must be a table that `gcon bench` has written"
        raise InputError("kept", rule=rule, got=str(path), fix="Use scale.csv of a folder of results.") from None
    return found


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """Of the least-squares line through the logarithms; None with fewer than two sizes.

    Example:
        >>> round(slope([(1e7, 2.0), (1e9, 200.0)]), 6)
        1.0
    """
    if len({size for size, _ in points}) < 2:
        return None
    return statistics.linear_regression(
        *([math.log(each) for each in some] for some in zip(*points, strict=True))
    ).slope


def growth(results: Sequence[Result]) -> list[tuple[str, str, float | None, float | None]]:
    """Engine, contender, and how fast time and memory grow: 1 is in proportion to the entries."""
    found = []
    for engine, contender in _lines(results):
        mine = [
            each
            for each in _of(results, engine, contender)
            if each["entries"] >= LEAST_FIT and "seconds" in each and _usual(each)
        ]
        fits = [slope([(each["entries"], each[what]) for each in mine]) for what in ("seconds", "peak_bytes")]
        found.append((engine, contender, fits[0], fits[1]))
    return found


def table_text(results: Sequence[Result], prices: Prices = USUAL) -> str:
    """The tables and the fits as Markdown: one table for every kind of work."""
    text = []
    for work, name in _NAMES.items():
        mine = [each for each in results if each.get("work", "walk") == work]
        if not mine:
            continue
        head = ["where", "whose", "nodes", "entries", name, "peak memory"]
        rows = [_cells(each) for each in mine]
        if work == "training":
            head += ["memory of the machine", "machine", "dollars", "right answers"]
            rows = [cells + _more_cells(each, prices) for cells, each in zip(rows, mine, strict=True)]
        slopes = [
            [engine, contender, f"{time_slope:.2f}", f"{memory_slope:.2f}"]
            for engine, contender, time_slope, memory_slope in growth(mine)
            if time_slope is not None and memory_slope is not None
        ]
        text += [markdown(head, rows), markdown(["where", "whose", "time grows like entries to the", "memory"], slopes)]
    return "\n".join(text)


def needs_text(results: Sequence[Result], prices: Prices) -> str:
    """What size needs what machine, how long, and how much money: of whole trainings, beside the fastest GCN that fitted."""
    rows = []
    trained = [each for each in results if each.get("work") == "training"]
    for each in sorted(trained, key=lambda each: (each["entries"], each["nodes"], each["engine"])):
        if each["contender"] != "gcon" or "seconds" not in each:
            continue
        same = ("engine", "nodes", "entries", "columns", "machine")
        rivals = [
            other["seconds"]
            for other in trained
            if other["contender"] != "gcon"
            and "seconds" in other
            and all(other.get(name) == each.get(name) for name in same)
        ]
        memory = f"{each['host_bytes'] / _GIB:.1f} GiB"
        if each["gpus"]:
            memory += f", {each['peak_bytes'] / _GIB:.1f} GiB on the GPU"
        rows.append(
            [
                f"{each['nodes']:,}",
                f"{each['entries'] // 2:,}",
                str(each["columns"]),
                f"{each['machine']}{_busy(each)}, {_PLACES[each['engine']].format(**each)}",
                _duration(each["seconds"]),
                memory,
                f"{prices.cost(each):.4f}",
                _duration(min(rivals)) if rivals else "",
            ]
        )
    head = ["nodes", "edges", "features", "machine", "time", "memory", "dollars", "PyG's GCN, not private"]
    asked = f"{prices.core:g} per core, {prices.gib:g} per GiB of memory and {prices.gpu:g} per GPU and hour"
    return f"{markdown(head, rows)}\nDollars for one training, at {asked}.\n"


def pictures(results: Sequence[Result], prices: Prices = USUAL) -> dict[str, str]:
    """Time and memory of walks; time, memory and cost of trainings."""
    drawn = {}
    cost = prices.cost
    walks, trainings = ([each for each in results if each.get("work", "walk") == work] for work in _NAMES)
    for name, mine, label, value in (
        ("time", walks, "seconds for ten steps", _number("seconds", 1.0)),
        ("memory", walks, "peak memory in GiB", _number("peak_bytes", 1 / _GIB)),
        ("training-time", trainings, "seconds for a whole training", _number("seconds", 1.0)),
        ("training-memory", trainings, "memory of the machine in GiB", _number("host_bytes", 1 / _GIB)),
        ("training-cost", trainings, "dollars for a whole training", cost),
    ):
        if mine:
            drawn[f"{name}.svg"] = _picture(name, mine, label, value)
    return drawn


def _picture(name: str, results: Sequence[Result], label: str, value: Callable[[Result], float | None]) -> str:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for engine, contender in _lines(results):
        points = [(each["entries"], value(each)) for each in _of(results, engine, contender) if _usual(each)]
        points = [point for point in points if point[1] is not None]
        if points:
            style = "o-" if contender == "gcon" else "x--"
            axes.plot(*zip(*points, strict=True), style, label=f"{contender}, {engine}", linewidth=1, markersize=4)
    axes.set(xscale="log", yscale="log", xlabel="stored entries (both directions of every edge)", ylabel=label)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    return svg_text(figure, name)


def write_page(results: Sequence[Result], out: Path, prices: Prices = USUAL) -> list[Path]:
    """Tables, numbers and pictures into a folder; each file whole or not at all."""
    rows = ({**each, **each.get("right", {})} for each in results)
    numbers = sheet(_FIELDS, ([each.get(field) for field in _FIELDS] for each in rows))
    files = {"scale.md": table_text(results, prices), "scale.csv": numbers, **pictures(results, prices)}
    if any(each.get("work") == "training" for each in results):
        files["needs.md"] = needs_text(results, prices)
    return [write_whole(out / name, text, mode=None) for name, text in files.items()]


def _cells(each: Result) -> list[str]:
    time = each.get("failed") or f"{each['seconds']:.3g} s"
    memory = "" if "failed" in each else f"{each['peak_bytes'] / _GIB:.3g} GiB"
    return [each["engine"], each["contender"], f"{each['nodes']:,}", f"{each['entries']:,}", time, memory]


def _more_cells(each: Result, prices: Prices) -> list[str]:
    if "failed" in each:
        return [""] * 4
    right = ", ".join(f"{name} {share:.3f}" for name, share in each["right"].items())
    return [
        f"{each['host_bytes'] / _GIB:.3g} GiB",
        f"{each['machine']}{_busy(each)}",
        f"{prices.cost(each):.4f}",
        right,
    ]


def _busy(each: Result) -> str:
    return " (busy)" if each.get("load", 0.0) > _BUSY else ""


def _duration(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 100 else f"{seconds / 60:.1f} minutes"


def _lines(results: Sequence[Result]) -> list[tuple[str, str]]:
    """Engine and contender."""
    return sorted({(each["engine"], each["contender"]) for each in results})


def _of(results: Sequence[Result], engine: str, contender: str) -> list[Result]:
    return [each for each in results if (each["engine"], each["contender"]) == (engine, contender)]


def _usual(result: Result) -> bool:
    """Whether it belongs to the line through all sizes: the same number of entries per node."""
    return bool(abs(result["entries"] / result["nodes"] - ENTRIES_A_NODE) < 1)


def _number(name: str, unit: float) -> Callable[[Result], float | None]:
    return lambda result: result[name] * unit if name in result else None
