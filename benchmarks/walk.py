"""The walk of three programs: which functions and files of our own package they call.

    .venv/bin/python benchmarks/walk.py [--list] [--json FILE] [--page docs/walk.md]

Graphs of 300 nodes, epsilon 2: there neighbour counts are released whatever the noise says. A function counts if it was called,
on any thread; what is written inside another function counts as that one; what runs because a module is imported does not count.
Every program runs in a process of its own, and once before it is watched, so that kernels are compiled already. Exits with 1 if
a walk has grown beyond its limit: a reader should not have to open more to follow one training. `--page` writes the table and the
lists for the docs.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import gcon
from gcon.cli import app

SOURCE = Path(gcon.__file__).resolve().parents[1]
OURS = {"src/gcon": SOURCE / "gcon", "lab/gcon_lab": SOURCE.parent / "lab" / "gcon_lab"}
OURS_START = tuple(f"{folder}/" for folder in OURS.values())
NODES = 300
MOST = {"gcon train": 232, "gcon predict --access own-edges": 140, "NodeClassifier.fit": 142}  # functions
Walk = list[tuple[str, str]]  # file, function


def train(folder: Path) -> Callable[[], Any]:
    """`gcon train` on CSV files."""
    files = ("--nodes", folder / "nodes.csv", "--edges", folder / "edges.csv")
    return _command("train", *files, "--epsilon", 2, "--out", folder / "release")


def predict(folder: Path) -> Callable[[], Any]:
    """`gcon predict` for the owners of all nodes."""
    files = ("--nodes", folder / "nodes.csv", "--edges", folder / "edges.csv")
    return _command("predict", folder / "release", *files, "--access", "own-edges", "--out", folder / "labels.csv")


def fit(folder: Path) -> Callable[[], Any]:
    """`NodeClassifier.fit` on arrays in memory."""
    nodes, edge_index = gcon.datasets.social_circles_parts(NODES)
    masks = {name: getattr(nodes, name).numpy() for name in ("train_mask", "validation_mask", "test_mask")}
    features, labels = nodes.features.numpy(), nodes.labels.numpy()
    return lambda: gcon.NodeClassifier(epsilon=2.0).fit(features, labels, edges=edge_index.numpy(), **masks)


PROGRAMS = {
    "gcon train": train,
    "gcon predict --access own-edges": predict,
    "NodeClassifier.fit": fit,
}


def _command(*words: object) -> Callable[[], Any]:
    def run() -> None:
        sys.argv = ["gcon", *map(str, words)]
        try:
            app.main()
        except SystemExit as end:
            if end.code:
                raise

    return run


def watched(run: Callable[[], Any]) -> Walk:
    """What it calls."""
    seen: set[CodeType] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code not in seen and code.co_filename.startswith(OURS_START) and not _importing(frame):
            seen.add(code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return sorted({place for place in map(_place, tuple(seen)) if place is not None})


def _importing(frame: FrameType) -> bool:
    """Whether a module is being imported: what it calls then belongs to no program."""
    above: FrameType | None = frame
    while above is not None:
        if above.f_code.co_name == "<module>" and above.f_code.co_filename != __file__:
            return True
        above = above.f_back
    return False


def _place(code: CodeType) -> tuple[str, str] | None:
    """File and outermost function; None for the code of modules and classes."""
    if not code.co_flags & inspect.CO_NEWLOCALS:
        return None
    path = Path(code.co_filename)
    name, folder = next((name, folder) for name, folder in OURS.items() if path.is_relative_to(folder))
    return f"{name}/{path.relative_to(folder)}", code.co_qualname.partition(".<locals>")[0]


def all_walks(*, unwatched: bool = False) -> dict[str, Walk]:
    """The walks of all programs, one after the other in a new folder; empty ones if nobody is to watch."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _command("data", "make", "--nodes", NODES, "--out", folder, "--quiet")()
        return {name: _alone(name, folder, unwatched=unwatched) for name in PROGRAMS}


def _alone(name: str, folder: Path, *, unwatched: bool) -> Walk:
    """The walk of one program, in a process of its own."""
    command = [sys.executable, __file__, "--one", name, "--folder", str(folder), *["--unwatched"] * unwatched]
    # Watching is slow enough: a second thread for tiny matrices only waits for the first.
    # The operator's own folder too: an earlier walk's ledger, remembered there, would be warned about.
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "XDG_STATE_HOME": str(folder / "state")}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=alone)
    places = [] if unwatched else json.loads((folder / "walk.json").read_text())
    return [(file, function) for file, function in places]


def page(walks: dict[str, Walk]) -> str:
    """What the docs show: the table, then every program's files and functions."""
    lines = [
        "# The walk of three programs",
        "",
        "Which functions you meet if you follow one training from its first line to its last, and in which files. Written by",
        "`.venv/bin/python benchmarks/walk.py --page docs/walk.md`, which fails when a walk is longer than its limit.",
        "[The house](architecture.md) says what the rooms are for.",
        "",
        "| program | functions | at most | files |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| `{program}` | {len(places)} | {MOST[program]} | {len(_by_file(places))} |"
        for program, places in walks.items()
    ]
    for program, places in walks.items():
        lines += ["", f"## {program}", "", "| file | functions |", "|---|---|"]
        lines += [
            f"| `{file}` | {', '.join(f'`{each}`' for each in found)} |" for file, found in _by_file(places).items()
        ]
    return "\n".join([*lines, ""])


def _by_file(places: Walk) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for file, function in places:
        found.setdefault(file, []).append(function)
    return found


def main() -> int:
    """Print the table, write the lists; 1 if a walk is too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print files and functions too")
    parser.add_argument("--json", type=Path, help="write files and functions into this file")
    parser.add_argument("--page", type=Path, help="write the page of the docs")
    parser.add_argument("--one", choices=list(PROGRAMS), help=argparse.SUPPRESS)
    parser.add_argument("--unwatched", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        run = PROGRAMS[given.one](given.folder)
        if given.unwatched:
            run()
        else:
            (given.folder / "walk.json").write_text(json.dumps(watched(run)))
        return 0
    all_walks(unwatched=True)
    walks = all_walks()
    print(f"{'program':<34}{'functions':>10}{'at most':>9}{'files':>7}")
    for program, places in walks.items():
        print(f"{program:<34}{len(places):>10}{MOST[program]:>9}{len(_by_file(places)):>7}")
    for program, places in walks.items() if given.list else ():
        print(f"\n{program}")
        for file, functions in _by_file(places).items():
            print(f"  {file} ({len(functions)})", *(f"    {function}" for function in functions), sep="\n")
    if given.json is not None:
        given.json.write_text(json.dumps(walks, indent=1) + "\n")
    if given.page is not None:
        given.page.write_text(page(walks))
    return int(any(len(places) > MOST[program] for program, places in walks.items()))


if __name__ == "__main__":
    sys.exit(main())
