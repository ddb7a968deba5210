"""`gcon statement`: the promise of a release, in words and as data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gcon.cli import options
from gcon.cli.output import Output
from gcon.release.read import load_release


def statement(
    model: Annotated[Path, typer.Argument(help="A release folder.")],
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Say what a released model promises, and what not. Example: gcon statement model."""
    with Output(as_json=json, quiet=quiet).reporting() as output:
        made = load_release(model).statement()
        output.result({**made.fields, "sentences": list(made.sentences)}, str(made))
