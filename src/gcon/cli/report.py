"""`gcon report`: the page of a run, made again from its record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gcon.cli import options
from gcon.cli.output import reporting
from gcon.errors import InputError
from gcon.pages.report import ReportData, from_json, verdict
from gcon.pages.report_page import page
from gcon.writing import write_whole

RECORD, PAGE = "run.json", "report.html"


def report(
    run_dir: Annotated[Path, typer.Argument(help="A run folder, with run.json in it.")],
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Write report.html from the run.json of a run folder. Reads no graph and costs nothing.

    The page is for the operator: it shows accuracies that were measured with private edges.
    Example: gcon report gcon-demo
    """
    with reporting(as_json=json, quiet=quiet) as output:
        data = read_record(run_dir)
        path = write_page(run_dir, data)
        fields: dict[str, object] = {"report": str(path), "verdict": list(verdict(data))}
        output.result(fields, f"Written: {path}")


def read_record(folder: Path) -> ReportData:
    """The record of a run folder."""
    try:
        text = (folder / RECORD).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            "run_dir",
            rule=f"must be a folder with a readable {RECORD}",
            got=f"{folder} ({type(error).__name__})",
            fix="gcon demo writes one.",
        ) from None
    return from_json(text)


def write_page(folder: Path, data: ReportData) -> Path:
    """Write the page of a record, whole or not at all."""
    text, path = page(data), folder / PAGE
    write_file(path, text)
    return path


def write_file(path: Path, text: str) -> None:
    """`write_whole`, with our own message where the disk refuses."""
    try:
        write_whole(path, text)
    except OSError as error:
        raise InputError(
            "folder", rule="must be writable", got=f"{path.parent} ({type(error).__name__})", fix="Choose another one."
        ) from None
