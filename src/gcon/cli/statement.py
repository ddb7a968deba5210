"""`gcon statement`: what a released model promises, and whether its own numbers lead to that promise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gcon.cli import options
from gcon.cli.output import Output
from gcon.release.read import load_release
from gcon.verify.verify import verify_release

NOT_VERIFIED = 6  # as for a folder that was changed


@options.verb
def statement(
    output: Output,
    model: Annotated[Path, typer.Argument(help="A release folder.")],
    verify: Annotated[
        bool, typer.Option("--verify", help="Recompute the promise from the folder; fails with 6.")
    ] = False,
) -> None:
    """Say what a released model promises, and what not. Example: gcon statement model --verify."""
    if not verify:
        made = load_release(model).statement()
        output.result({**made.fields, "sentences": list(made.sentences)}, str(made))
        return
    found = verify_release(model)
    output.result(found.fields() | ({} if found.holds else {"exit_code": NOT_VERIFIED}), str(found))
    if not found.holds:
        raise typer.Exit(NOT_VERIFIED)
