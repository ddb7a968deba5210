"""The `gcon` command."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from gcon.cli.output import print_json, tell_error
from gcon.cli.verbs import LazyVerbs
from gcon.errors import GconError
from gcon.version import __version__

app = typer.Typer(
    name="gcon",
    cls=LazyVerbs,
    help="Train node classifiers on sensitive graphs, with a proven promise about every single edge.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"gcon {__version__}\n")
        raise typer.Exit


@app.callback()
def gcon(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """What all verbs share."""


def main() -> None:
    """Run the command; a wrong call is bad input too, and with --json it is told as one JSON object."""
    as_json = "--json" in sys.argv
    try:
        code = app(standalone_mode=False)
    except typer.TyperException as error:
        if as_json:
            print_json({"error": "UsageError", "message": error.format_message(), "exit_code": 2})
        else:
            sys.stderr.write(f"error: {error.format_message()} See gcon --help.\n")
        code = 2
    except GconError as error:  # before a verb began: it could not be loaded
        code = tell_error(error, as_json=as_json)
    except typer.Abort:
        code = 130
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
