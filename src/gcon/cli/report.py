"""`gcon report`: a page to show, about a released model or about a demo."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from gcon.cli import options
from gcon.cli.checks import RELEASE, check_writable
from gcon.cli.ledger_place import ledger_beside
from gcon.cli.loading import load_nodes
from gcon.cli.options import GraphSource
from gcon.cli.output import Output
from gcon.errors import InputError
from gcon.methods.model import Model
from gcon.pages.model_report import model_report
from gcon.pages.report import ReportData, from_json, verdict
from gcon.pages.report_page import page
from gcon.pages.write import is_page
from gcon.privacy.ledger import LedgerEntry
from gcon.privacy.ledger_file import FileLedger
from gcon.release.read import load_release
from gcon.writing import unwritable, write_whole

RECORD, PAGE = "run.json", "report.html"


@options.verb
def report(
    output: Output,
    model: Annotated[Path, typer.Argument(help="A release folder; or the folder of a demo, with run.json in it.")],
    *,
    out: Annotated[
        Path | None, typer.Option(help="The page to write; an older report is replaced.", show_default=PAGE)
    ] = None,
    name: Annotated[str | None, typer.Option(help="What to call the data set; by default as it was trained.")] = None,
    control: Annotated[
        bool, typer.Option("--control/--no-control", help="Train the zero-budget control beside the model.")
    ] = True,
    where: GraphSource,
    config: options.Config = None,
) -> None:
    """Write one page about a model: its accuracy beside a control that spends nothing, its promise, noise and ledger.

    It reads no edge and costs nothing, and may be published. --edges or --ledger names the ledger to show, which holds what
    gcon evaluate --paid has bought. Example: gcon report model --nodes nodes.csv --out report.html
    """
    if (model / RECORD).exists() and not (model / RELEASE).exists():
        _report_of_a_demo(output, model, out)
        return
    if not (model / RELEASE).exists():
        rule = f"must be a release folder, with {RELEASE} in it, or the folder of a demo, with {RECORD}"
        fix = "gcon train writes the one, gcon demo the other."
        raise InputError("MODEL", rule=rule, got=str(model), fix=fix)
    path = Path(PAGE) if out is None else out
    _check_target(path)
    released = load_release(model)
    entries = _entries(where, released)
    known = released.feature_columns
    nodes = load_nodes(where, known=known) if where.source is not None or where.nodes is not None else None
    with output.progress.status("read") as status:
        made = model_report(
            released, nodes, name=name, control_seed=0 if control else None, entries=entries, step=status.update
        )
    with _told_if_refused(path):
        made.save(path)
    audience = "it may be published" if made.publishable else "for the operator alone: the model keeps no promise"
    fields: dict[str, object] = {"report": str(path), "headline": list(made.headline), "publishable": made.publishable}
    output.result(fields, "\n".join([*made.headline, f"Written: {path} ({audience})"]))


def _report_of_a_demo(output: Output, folder: Path, out: Path | None) -> None:
    data = read_record(folder)
    path = folder / PAGE if out is None else out
    write_file(path, page(data))
    output.result({"report": str(path), "verdict": list(verdict(data))}, f"Written: {path}")


def _entries(where: GraphSource, model: Model) -> tuple[LedgerEntry, ...]:
    """The entries of the ledger that was named, or lies beside the edges; it must be of this model's data set."""
    path = where.ledger or (None if where.edges is None else ledger_beside(where.edges))
    if path is None:
        return ()
    if not path.is_file():
        raise InputError("--ledger", rule="must be an existing ledger file", got=str(path), fix="Leave it out.")
    books = FileLedger(path)
    if books.data_set != model.receipt.data_set:
        rule = f"must be the ledger of the model's data set, {model.receipt.data_set!a}"
        raise InputError("--ledger", rule=rule, got=f"that of {books.data_set!a}", fix="Name the right one.")
    return tuple(books.entries())


def _check_target(path: Path) -> None:
    """A report replaces a report and nothing else."""
    if path.is_dir() or (path.exists() and not is_page(path)):
        rule = "must be a new file, or an older page of gcon's"
        raise InputError("out", rule=rule, got=str(path), fix="Choose another name, such as report.html.")
    check_writable(path)


def read_record(folder: Path) -> ReportData:
    """The record of a run folder."""
    try:
        text = (folder / RECORD).read_bytes()
    except OSError as error:
        raise InputError(
            "run_dir",
            rule=f"must be a folder with a readable {RECORD}",
            got=f"{folder} ({type(error).__name__})",
            fix="gcon demo writes one.",
        ) from None
    return from_json(text)


def write_file(path: Path, content: bytes | str) -> Path:
    """`write_whole`, with our own message where the disk refuses."""
    with _told_if_refused(path):
        return write_whole(path, content)


@contextmanager
def _told_if_refused(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unwritable(path, error) from None
