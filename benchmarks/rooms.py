"""The rooms of gcon and of its laboratory: who imports whom, as a picture, and how large each is, as a table.

Draws docs/rooms.svg, prints one line per room and puts these into docs/architecture.md; exits with 1 if rooms import each other
in a circle, or if the product imports the laboratory. `--commit 03b8370` counts the folders of an earlier commit instead, and
writes nothing.

The layers are those of the import rules in pyproject.toml. Arrows that follow from others are left out of the picture; the
table has all.
"""

from __future__ import annotations

import argparse
import io
import math
import subprocess
import sys
import tarfile
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

from gcon_lab.tables import markdown

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
PACKAGES = {"gcon": "src/gcon", "gcon_lab": "lab/gcon_lab"}
Imports = Mapping[str, set[str]]

# Where a room stands from left to right, so that no arrow runs behind another room. Its row is its layer.
COLUMNS = {
    "gcon": {
        "cli": 1.9, "serve": 1.0, "choose": 2.9, "pages": 0.4, "verify": 1.9, "release": 1.9, "methods": 1.4,
        "learn": 0.6, "mechanisms": 2.3, "files": 3.4, "edges": 2.5, "nodes": 0.6, "privacy": 2.3, "machine": 1.5,
        "writing": 3.7, "errors": 1.5, "version": 2.9, "model_selection": 3.8, "estimators": 3.8, "columns": 0.5,
    },
    "gcon_lab": {
        "cli": 5.6, "bench": 5.0, "experiments": 6.3, "attacks": 5.85, "audits": 5.85, "methods": 6.75, "mechanisms": 6.35,
        "tables": 5.0,
    },
}  # fmt: skip
STEP, ROW, BOX_WIDTH, BOX_HEIGHT = 130, 64, 114, 30
LEFT, TOP = 40, 52


def room_of(module: str) -> str:
    """Package and room: `gcon.edges` for `gcon.edges.graph`."""
    return ".".join(module.split(".")[:2])


def imports_of_rooms() -> dict[str, set[str]]:
    """Which rooms each room imports, directly, in both packages."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    rooms = {room_of(module) for module in graph.modules if "." in module} - {"gcon.__main__"}  # that is the door
    found: dict[str, set[str]] = {room: set() for room in rooms}
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            ends = room_of(module), room_of(imported)
            if ends[0] != ends[1] and all(end in found for end in ends):  # the packages' own names are no room
                found[ends[0]].add(ends[1])
    return found


def problems(imports: Imports) -> list[str]:
    """What must not be: a circle, or a product that needs the laboratory."""
    found = [
        f"{room} imports {other}: the product must do without the laboratory."
        for room, others in imports.items()
        for other in others
        if room.startswith("gcon.") and other.startswith("gcon_lab.")
    ]
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        found.append(f"These rooms import each other in a circle: {' <- '.join(error.args[1])}.")
    return found


def without_shortcuts(imports: Imports) -> dict[str, set[str]]:
    """The arrows that no longer way explains."""
    below: dict[str, set[str]] = {}
    for room in TopologicalSorter(imports).static_order():
        below[room] = imports[room].union(*(below[other] for other in imports[room]))
    return {
        room: {other for other in others if not any(other in below[between] for between in others)}
        for room, others in imports.items()
    }


def layers() -> dict[str, list[list[str]]]:
    """The rows of each package, from the import rules."""
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return {
        rule["containers"][0]: [[room.strip() for room in layer.split("|")] for layer in rule["layers"]]
        for rule in rules
        if rule["type"] == "layers"
    }


def places() -> dict[str, tuple[float, float]]:
    """The middle of every room's box."""
    return {
        f"{package}.{room}": (LEFT + STEP * COLUMNS[package][room], TOP + ROW * row)
        for package, rows in layers().items()
        for row, rooms in enumerate(rows)
        for room in rooms
    }


def picture(imports: Imports) -> str:
    """The drawing: colours that can be read on white and on black."""
    at, drawn = places(), without_shortcuts(imports)
    lines = [frame(at, "gcon", "gcon: the product"), frame(at, "gcon_lab", "gcon_lab: the laboratory")]
    for room in sorted(drawn):
        package = room.split(".")[0]
        inside = sorted(other for other in drawn[room] if other.split(".")[0] == package)
        lines += [arrow(at[room], at[other]) for other in inside]
    lines += [box(name.split(".")[1], *at[name]) for name in sorted(at)]
    lines.append(between_the_packages(at))
    width = max(x for x, _ in at.values()) + BOX_WIDTH / 2 + 24
    height = max(y for _, y in at.values()) + BOX_HEIGHT / 2 + 24
    style = (
        "text{font:14px system-ui,sans-serif;fill:#fff;text-anchor:middle}.frame{fill:none;stroke:#8a9a9a;stroke-dasharray:4 4}"
        ".title{fill:#7a8a8a}.box{fill:#00695c}path{fill:none;stroke:#8a9a9a;stroke-width:1.5}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
        'aria-label="Which rooms import which: arrows point from a room to what it imports">\n'
        f"<style>{style}</style>\n"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" style="fill:#8a9a9a;stroke:none"/></marker></defs>\n' + "\n".join(lines) + "\n</svg>\n"
    )


def box(name: str, x: float, y: float) -> str:
    """A room."""
    corner = f'x="{x - BOX_WIDTH / 2:g}" y="{y - BOX_HEIGHT / 2:g}"'
    return (
        f'<rect class="box" {corner} width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="5"/>'
        f'<text x="{x:g}" y="{y + 5:g}">{name}</text>'
    )


def arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    """Straight down from the bottom of a room, and over to the top of one below in the last row."""
    aside = end[0] - start[0]
    lean = 0.0 if abs(aside) < STEP / 4 else math.copysign(0.36 * BOX_WIDTH, aside)
    x1, y1 = start[0] + lean, start[1] + BOX_HEIGHT / 2
    x2, y2 = end[0] - lean, end[1] - BOX_HEIGHT / 2 - 1
    bend = max(y1, y2 - 0.7 * ROW)
    middle = (bend + y2) / 2
    return (
        f'<path d="M{x1:g} {y1:g}V{bend:g}C{x1:g} {middle:g} {x2:g} {middle:g} {x2:g} {y2:g}" marker-end="url(#tip)"/>'
    )


def frame(at: Mapping[str, tuple[float, float]], package: str, title: str) -> str:
    """The dashed line around a package."""
    inside = [place for name, place in at.items() if name.split(".")[0] == package]
    left, right = min(x for x, _ in inside) - BOX_WIDTH / 2 - 14, max(x for x, _ in inside) + BOX_WIDTH / 2 + 14
    bottom = max(y for _, y in inside) + BOX_HEIGHT / 2 + 14
    return (
        f'<rect class="frame" x="{left:g}" y="8" width="{right - left:g}" height="{bottom - 8:g}" rx="8"/>'
        f'<text class="title" x="{left + 14:g}" y="26" style="text-anchor:start">{title}</text>'
    )


def between_the_packages(at: Mapping[str, tuple[float, float]]) -> str:
    """One arrow for all that the laboratory imports from the product."""
    left = max(x for name, (x, _) in at.items() if name.startswith("gcon.")) + BOX_WIDTH / 2 + 14
    right = min(x for name, (x, _) in at.items() if name.startswith("gcon_lab.")) - BOX_WIDTH / 2 - 14
    y = TOP + ROW * 2.5
    return f'<path d="M{right:g} {y:g}L{left + 1:g} {y:g}" style="stroke-width:4" marker-end="url(#tip)"/>'


def sizes_now() -> dict[str, tuple[int, int]]:
    """Files and lines per room."""
    texts = (
        (f"{package}.{path.relative_to(ROOT / place).with_suffix('').parts[0]}", path.read_bytes())
        for package, place in PACKAGES.items()
        for path in (ROOT / place).rglob("*.py")
    )
    return sizes(texts)


def sizes_at(commit: str) -> dict[str, tuple[int, int]]:
    """The same of another commit."""
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        texts = [
            (f"{package}.{Path(member.name).relative_to(place).with_suffix('').parts[0]}", content.read())
            for member in files
            for package, place in PACKAGES.items()
            if member.name.startswith(f"{place}/") and member.name.endswith(".py")
            if (content := files.extractfile(member)) is not None
        ]
    return sizes(texts)


def sizes(texts: Iterable[tuple[str, bytes]]) -> dict[str, tuple[int, int]]:
    """Files and lines per room, from rooms and the text of each of their files."""
    counted: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for room, text in texts:
        files, lines = counted[room]
        counted[room] = files + 1, lines + text.count(b"\n")
    return dict(counted)


def table(counted: Mapping[str, tuple[int, int]], imports: Imports) -> str:
    """One line per room, and the sums."""
    rows = []
    for package in PACKAGES:
        inside = {room: size for room, size in sorted(counted.items()) if room.startswith(f"{package}.")}
        for room, (files, length) in inside.items():
            names = ", ".join(sorted(other.removeprefix("gcon.") for other in imports.get(room, ())))
            rows.append([f"`{room}`", f"{files:,}", f"{length:,}", names])
        if inside:
            sums = [sum(size[place] for size in inside.values()) for place in (0, 1)]
            rows.append([f"**{package}**", *(f"{each:,}" for each in sums), ""])
    return markdown(["room", "files", "lines", "imports"], rows)


def put_into_page(name: str, text: str, page: Path = PAGE) -> None:
    """Replace what stands between `<!-- NAME -->` and `<!-- end of NAME -->`."""
    before, start, rest = page.read_text().partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- end of {name} -->")
    page.write_text(f"{before}{start}\n{text}\n{end}{after}")


def main() -> int:
    """Count, draw, and say whether the house is in order."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commit", help="count the files of this commit, and write nothing")
    options = parser.parse_args()
    if options.commit is not None:
        print(table(sizes_at(options.commit), {}))
        return 0
    imports = imports_of_rooms()
    text = table(sizes_now(), imports)
    print(text)
    found = problems(imports)
    print("\n".join(found) if found else "No circle between rooms, and the product does without the laboratory.")
    if not found:
        (ROOT / "docs" / "rooms.svg").write_text(picture(imports))
        put_into_page("rooms", text)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
