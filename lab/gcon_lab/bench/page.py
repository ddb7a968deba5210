"""All results of a folder as a table, a page and two pictures: time and memory against size, both scales logarithmic."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gcon.writing import write_whole
from gcon_lab.bench.graphs import ENTRIES_A_NODE
from gcon_lab.tables import markdown, sheet, svg_text

Result = dict[str, Any]
_FIELDS = ("engine", "contender", "nodes", "entries", "columns", "seconds", "peak_bytes", "failed", "machine")
_GIB = 2**30
LEAST_FIT = 10**7  # entries from which on growth is fitted: below, starting up counts


def read_results(folder: Path) -> list[Result]:
    """Everything that was measured into a folder, smallest first."""
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    return sorted(found, key=lambda each: (each["engine"], each["contender"], each["entries"], each["nodes"]))


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """Of the least-squares line through the logarithms; None with fewer than two sizes.

    Example:
        >>> round(slope([(1e7, 2.0), (1e9, 200.0)]), 6)
        1.0
    """
    if len({size for size, _ in points}) < 2:
        return None
    logs = [(math.log(size), math.log(value)) for size, value in points]
    middle = [sum(each) / len(logs) for each in zip(*logs, strict=True)]
    across = sum((x - middle[0]) * (y - middle[1]) for x, y in logs)
    return float(across / sum((x - middle[0]) ** 2 for x, _ in logs))


def growth(results: Sequence[Result]) -> list[tuple[str, str, float | None, float | None]]:
    """Engine, contender, and how fast time and memory grow: 1 is in proportion to the entries."""
    found = []
    for engine, contender in sorted({(each["engine"], each["contender"]) for each in results}):
        mine = [
            each
            for each in results
            if (each["engine"], each["contender"]) == (engine, contender)
            and each["entries"] >= LEAST_FIT
            and "seconds" in each
            and _usual(each)
        ]
        fits = [slope([(each["entries"], each[what]) for each in mine]) for what in ("seconds", "peak_bytes")]
        found.append((engine, contender, fits[0], fits[1]))
    return found


def _usual(result: Result) -> bool:
    """Whether it belongs to the line through all sizes: the same number of entries per node."""
    return bool(abs(result["entries"] / result["nodes"] - ENTRIES_A_NODE) < 1)


def table_text(results: Sequence[Result]) -> str:
    """The table and the fits as Markdown."""
    rows = []
    for each in results:
        time = each.get("failed") or f"{each['seconds']:.3g} s"
        memory = "" if "failed" in each else f"{each['peak_bytes'] / _GIB:.3g} GiB"
        rows.append([each["engine"], each["contender"], f"{each['nodes']:,}", f"{each['entries']:,}", time, memory])
    slopes = [
        [engine, contender, f"{time_slope:.2f}", f"{memory_slope:.2f}"]
        for engine, contender, time_slope, memory_slope in growth(results)
        if time_slope is not None and memory_slope is not None
    ]
    measured = markdown(["where", "whose", "nodes", "entries", "ten steps", "peak memory"], rows)
    return measured + "\n" + markdown(["where", "whose", "time grows like entries to the", "memory"], slopes)


def pictures(results: Sequence[Result]) -> dict[str, str]:
    """`time.svg` and `memory.svg`."""
    from matplotlib.figure import Figure

    drawn = {}
    for name, what, label, unit in (
        ("time", "seconds", "seconds for ten steps", 1.0),
        ("memory", "peak_bytes", "peak memory in GiB", 1 / _GIB),
    ):
        figure = Figure(figsize=(7, 4.5), layout="constrained")
        axes = figure.subplots()
        for engine, contender in sorted({(each["engine"], each["contender"]) for each in results}):
            points = [
                (each["entries"], each[what] * unit)
                for each in results
                if (each["engine"], each["contender"]) == (engine, contender) and what in each and _usual(each)
            ]
            if points:
                style = "o-" if contender == "gcon" else "x--"
                axes.plot(*zip(*points, strict=True), style, label=f"{contender}, {engine}", linewidth=1, markersize=4)
        axes.set(xscale="log", yscale="log", xlabel="stored entries (both directions of every edge)", ylabel=label)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
        drawn[f"{name}.svg"] = svg_text(figure, name)
    return drawn


def write_page(results: Sequence[Result], out: Path) -> list[Path]:
    """Table, numbers and pictures into a folder; each file whole or not at all."""
    numbers = sheet(_FIELDS, ([each.get(field) for field in _FIELDS] for each in results))
    files = {"scale.md": table_text(results), "scale.csv": numbers, **pictures(results)}
    return [write_whole(out / name, text, mode=None) for name, text in files.items()]
