"""`gcon data`: named data sets, checks and conversion of files, and made-up graphs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

from gcon.cli import options
from gcon.cli.checks import check_replaceable, size_in_bytes
from gcon.cli.ledger_place import carry_ledger, ledger_beside
from gcon.cli.options import EdgeFormat, Features, NodeFormat
from gcon.cli.output import Output
from gcon.errors import InputError
from gcon.files.datasets import FACTS
from gcon.files.datasets.facts import facts_of
from gcon.files.datasets.synthetic import FRIENDS, FRIENDS_ALIKE, FRIENDS_SIGNAL, circle_names, social_circles_parts
from gcon.files.tables import check_files, convert_files, write_edges, write_nodes
from gcon.files.write_files import checked_target
from gcon.writing import move_together, work_folder

app = typer.Typer(help="Data sets and files.", no_args_is_help=True)


@app.command("list")
@options.verb
def list_(output: Output) -> None:
    """The data sets that gcon knows by name."""
    fields: dict[str, object] = {"data_sets": [asdict(facts) for facts in FACTS.values()]}
    lines = [f"{name:10s} {facts.num_nodes:7,d} nodes  {facts.num_classes} classes" for name, facts in FACTS.items()]
    output.result(fields, "\n".join(lines))


@app.command()
@options.verb
def show(output: Output, name: Annotated[str, typer.Argument(help="A data set.")]) -> None:
    """Published facts about one data set; no file is read."""
    fields: dict[str, object] = asdict(facts_of(name))
    output.result(fields, "\n".join(f"{key:20s} {value}" for key, value in fields.items()))


@app.command()
@options.verb
def check(
    output: Output,
    *,
    nodes: Annotated[Path, typer.Option(help="The nodes file.")],
    edges: Annotated[Path | None, typer.Option(help="The edges file, or an edge store (.csr).")] = None,
    features: Features = None,
    node_format: NodeFormat,
    edge_format: EdgeFormat,
) -> None:
    """Everything that is wrong with a pair of files, in one pass. Exit code 2 if something is.

    Problems of the nodes come with their row numbers; those of the edges without any content. An edge store is compared
    with its checksums, and every edge must stand in the rows of both ends.
    """
    with output.progress.status("check"):
        problems = check_files(nodes, edges, features_path=features, **vars(node_format), **edge_format.columns())
    fields: dict[str, object] = {"ok": not problems, "problems": [str(problem) for problem in problems]}
    output.result(fields, "\n".join(str(problem) for problem in problems) or "nothing is wrong")
    if problems:
        raise typer.Exit(2)


@app.command()
@options.verb
def convert(
    output: Output,
    *,
    nodes: Annotated[Path, typer.Option(help="The nodes file.")],
    out: Annotated[Path, typer.Option(help="An existing folder; no file in it is ever replaced.")],
    file_format: Annotated[str, typer.Option("--format", help="csv, tsv, parquet, npz or csr.")],
    edges: Annotated[Path | None, typer.Option(help="The edges file.")] = None,
    features: Features = None,
    drop: Annotated[
        list[str], typer.Option(help="A column of the nodes file to leave out; the others must be numbers.")
    ] = [],  # noqa: B006
    edge_format: EdgeFormat,
    memory: Annotated[str, typer.Option(help="For csr: how much memory to sort in, for example 4GiB.")] = "1GiB",
) -> None:
    """Write the same graph in another format: nodes.FORMAT and edges.FORMAT.

    Converts files (a data set by name is none); npz gives nodes.csv, features.npz and edges.npz; csr gives
    nodes.parquet, features.npy and edges.csr, a folder that training reads block by block, however large it is. If that
    is killed, the same command removes what is left of it and starts again. Nothing is released, so nothing is charged;
    what was spent on the old edges file stays spent, and its ledger goes with the new one.
    Example: gcon data convert --nodes nodes.csv --edges edges.csv --out folder --format parquet
    """
    memory_bytes = size_in_bytes("--memory", memory, least="MiB")
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=output.progress, transient=True) as bar:
        task = bar.add_task("convert", total=None)

        def step(stage: str, share: float) -> None:
            bar.update(task, description=stage, completed=share, total=1.0 if share else None)

        done = convert_files(
            nodes,
            edges,
            out=out,
            file_format=file_format,
            features=features,
            drop=drop,
            **edge_format.columns(),
            memory_bytes=memory_bytes,
            step=step,
        )
    fields: dict[str, object] = {kind: str(path) for kind, path in done.files.items()}
    fields["features_narrowed"] = done.features_narrowed
    lines = [f"Written: {', '.join(str(path) for path in done.files.values())}"]
    if done.features_narrowed:
        lines.append("Text is read as 32-bit numbers: the features lose digits. Parquet and npz keep them.")
    if edges is not None:
        books = ledger_beside(edges)
        carry_ledger(edges, converted=done.files["edges"])
        fields |= {"ledger": str(books), "ledger_exists": books.exists()}
        lines.append(_same_edges(books))
    output.result(fields, "\n".join(lines))


def _same_edges(books: Path) -> str:
    """Where to pay from now on: the new file carries the path."""
    if books.exists():
        return f"These are the same private edges: keep paying from --ledger {books}, whose path they carry."
    return (
        f"These are the same private edges, and there is no ledger {books}. If they were paid for from another one, keep "
        f"paying from that. If nothing was released from them yet, both files pay from --ledger {books}: they carry its path."
    )


@app.command()
@options.verb
def make(
    output: Output,
    out: Annotated[Path, typer.Option(help="The folder for nodes and edges; made if it is not there.")],
    nodes: Annotated[int, typer.Option(help="How many nodes.")] = 2000,
    classes: Annotated[int, typer.Option(help="How many classes.")] = 4,
    mean_degree: Annotated[
        float | None, typer.Option(help="Neighbours of a node, on average; by default 40, or a twentieth of all nodes.")
    ] = None,
    homophily: Annotated[float, typer.Option(help="Share of edges inside a class.")] = FRIENDS_ALIKE,
    seed: Annotated[int, typer.Option(help="The same seed makes the same graph.")] = 0,
    file_format: Annotated[str, typer.Option("--format", help="csv, tsv or parquet.")] = "csv",
    overwrite: options.Overwrite = False,
) -> None:
    """Write a made-up social graph: nodes.FORMAT and edges.FORMAT."""
    if file_format not in ("csv", "tsv", "parquet"):
        raise InputError("format", rule="must be csv, tsv or parquet", got=file_format, fix="Use csv.")
    paths = out / f"nodes.{file_format}", out / f"edges.{file_format}"
    for path in paths:
        check_replaceable(path, overwrite=overwrite)
    table, edge_index = social_circles_parts(
        nodes,
        num_classes=classes,
        mean_degree=min(FRIENDS, nodes / 20) if mean_degree is None else mean_degree,
        homophily=homophily,
        feature_signal=FRIENDS_SIGNAL,
        seed=seed,
    )
    table = replace(table, class_names=circle_names(classes))
    with suppress(OSError):  # checked in the next line
        out.mkdir(parents=True, exist_ok=True)
    for path in paths:
        checked_target(path, "out")
    with work_folder(paths[1]) as folder:  # both or none
        write_nodes(folder / paths[0].name, table)
        write_edges(folder / paths[1].name, edge_index, num_nodes=nodes)
        old = [(path, folder / f"old-{path.name}") for path in paths if path.exists()]
        move_together([*old, *((folder / path.name, path) for path in paths)])
    fields: dict[str, object] = {"nodes": str(paths[0]), "edges": str(paths[1])}
    output.result(fields, f"Written: {paths[0]}, {paths[1]}")
