"""`gcon bench`: how time, memory and cost grow with the graph, beside what a user would pick instead."""

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
    work: Annotated[
        str,
        typer.Option(help="walk: ten propagation steps. training: the default method, features and labels to release."),
    ] = "walk",
    engines: Annotated[str, typer.Option(help="cpu, disk, cluster, gpu, separated by commas.")] = "cpu,disk",
    entries: Annotated[
        str, typer.Option(help="Sizes: both directions of all edges, separated by commas; 40 per node.")
    ] = "1e5,1e6,1e7",
    nodes: Annotated[
        int | None, typer.Option(min=2, help="So many nodes at every size, instead of entries/40.")
    ] = None,
    features: Annotated[int, typer.Option(min=1, help="Of a node, in a training. A walk has 16 columns.")] = 64,
    workers: Annotated[int, typer.Option(min=1, help="Of a cluster: processes on this machine.")] = 2,
    rivals: Annotated[bool, typer.Option(help="Measure torch, scipy and PyG beside ours.")] = True,
    scratch: Annotated[
        Path | None, typer.Option(help="A folder for the graphs: up to 9 bytes per entry, 4 per feature and node.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="The best of so many runs counts.")] = 2,
    prices: Annotated[
        str, typer.Option(help="Dollars per hour of a core, a GiB of memory and a GPU, for the cost of a training.")
    ] = "core=0.04,gib=0.005,gpu=4",
    kept: Annotated[
        Path | None, typer.Option(help="Measure nothing: tables and pictures of a scale.csv that was written before.")
    ] = None,
) -> None:
    """Time, peak memory and cost on made-up graphs of growing size, each measurement in a process of its own.

    Writes tables, their numbers and pictures. Interrupted work resumes. Examples:

    gcon bench --engines cpu,disk --entries 1e5,1e6,1e7,1e8 --out results/scale

    gcon bench --work training --engines cpu,disk --entries 1e5,1e6,1e7 --prices core=0.05,gpu=2.5 --out results/training
    """
    from gcon_lab.bench.page import needs_text, read_results, table_text, write_page
    from gcon_lab.bench.page import prices as read_prices
    from gcon_lab.bench.run import run_tasks, tasks

    at = read_prices(prices)
    sizes = [_size(text) for text in entries.split(",")]
    wanted = tasks(engines.split(","), sizes, nodes=nodes, rivals=rivals, work=work, features=features, workers=workers)
    if kept is None:
        with output.progress.status("bench") as status, tempfile.TemporaryDirectory(dir=scratch) as folder:
            for _ in run_tasks(wanted, out=out, scratch=Path(folder), progress=status.update, repeats=repeats):
                pass
    results = read_results(kept or out)
    files = write_page(results, out, at)
    trained = [each for each in results if each["work"] == "training"]
    fields: dict[str, object] = {
        "results": [{**each, "dollars": at.cost(each)} if each in trained else each for each in results],
        "prices": at._asdict(),
        "files": [str(path) for path in files],
    }
    text = [table_text(results, at), *([needs_text(results, at)] if trained else [])]
    output.result(fields, "\n".join([*text, f"Written: {', '.join(str(path) for path in files)}"]))


def _size(text: str) -> int:
    try:
        return int(float(text))
    except (ValueError, OverflowError):
        raise InputError("entries", rule="must be numbers", got=repr(text[:40]), fix="For example 1e7.") from None
