"""`gcon bench`: how time and memory grow with the graph, beside what a user would pick instead."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from gcon.cli import options
from gcon.cli.output import Output
from gcon.errors import InputError


@options.verb
def bench(
    output: Output,
    *,
    out: Annotated[Path, typer.Option(help="The folder of results. What was measured there is not measured again.")],
    engines: Annotated[str, typer.Option(help="cpu, disk, cluster, gpu, separated by commas.")] = "cpu,disk",
    entries: Annotated[
        str, typer.Option(help="Sizes: both directions of all edges, separated by commas; 40 a node.")
    ] = "1e5,1e6,1e7",
    nodes: Annotated[
        int | None, typer.Option(min=2, help="So many nodes at every size, instead of entries/40.")
    ] = None,
    rivals: Annotated[bool, typer.Option(help="Measure torch, scipy and PyG beside ours.")] = True,
    scratch: Annotated[Path | None, typer.Option(help="A folder for the graphs, up to 9 bytes per entry.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="The best of so many runs counts.")] = 2,
) -> None:
    """Time and peak memory of ten propagation steps with 16 columns on made-up graphs, each in a process of its own.

    Writes a table, its numbers and two pictures. Interrupted work resumes. Example:

    gcon bench --engines cpu,disk --entries 1e5,1e6,1e7,1e8 --out results/scale
    """
    from gcon_lab.bench.page import read_results, table_text, write_page
    from gcon_lab.bench.run import run_tasks, tasks

    wanted = tasks(engines.split(","), [_size(text) for text in entries.split(",")], nodes=nodes, rivals=rivals)
    with output.progress.status("bench") as status, tempfile.TemporaryDirectory(dir=scratch) as folder:
        for _ in run_tasks(wanted, out=out, scratch=Path(folder), progress=status.update, repeats=repeats):
            pass
        results = read_results(out)
        files = write_page(results, out)
    fields: dict[str, object] = {"results": results, "files": [str(path) for path in files]}
    output.result(fields, f"{table_text(results)}\nWritten: {', '.join(str(path) for path in files)}")


def _size(text: str) -> int:
    try:
        return int(float(text))
    except (ValueError, OverflowError):
        raise InputError("entries", rule="must be numbers", got=repr(text[:40]), fix="For example 1e7.") from None
