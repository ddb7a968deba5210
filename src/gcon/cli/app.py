"""The `gcon` command."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Annotated

import typer

from gcon.cli.output import print_json, print_text, tell_error, tell_refusal
from gcon.cli.verbs import LazyVerbs
from gcon.errors import GconError, wants_memory
from gcon.version import __version__

app = typer.Typer(
    name="gcon",
    cls=LazyVerbs,
    help="Train node classifiers on sensitive graphs, with a proven promise about every single edge.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def gcon(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """What all verbs share."""
    if version:
        print_text(f"gcon {__version__}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        context.fail("Missing command.")


def _message(error: typer.TyperException) -> str:
    """What is wrong; with what was given, where the message of the library leaves it out (it has no full stop)."""
    message = error.format_message()
    names = getattr(getattr(error, "param", None), "opts", ())
    values = [after for word, after in pairwise(sys.argv) if word in names]
    return f"{message}; got {values[-1]!r}" if values and not message.endswith(".") else message


def main() -> None:
    """Run the command; what help, a version or a wrong call cannot be written to is told as of all verbs."""
    try:
        code = _run(as_json="--json" in sys.argv)
        sys.stdout.flush()  # help
    except (OSError, MemoryError, ImportError) as error:
        if not isinstance(error, OSError) and not wants_memory(error):
            raise
        code = tell_refusal(error)
    sys.exit(code if isinstance(code, int) else 0)


def _run(*, as_json: bool) -> object:
    """The exit code of the command; a wrong call is bad input too, and with --json it is told as one JSON object."""
    try:
        return app(standalone_mode=False, prog_name="gcon")
    except typer.TyperException as error:
        message = _message(error)
        if as_json:
            print_json({"error": "UsageError", "message": message, "exit_code": 2})
        elif message:  # there is none where a verb was left out, and help was printed instead
            where = getattr(getattr(error, "ctx", None), "command_path", "gcon")
            sys.stderr.write(f"error: {message.rstrip('.')}. See {where} --help.\n")
        return 2
    except GconError as error:  # before a verb began: it could not be loaded
        return tell_error(error, as_json=as_json)
    except typer.Abort:
        return 130


if __name__ == "__main__":
    main()
