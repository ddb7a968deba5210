"""The `gcon` command."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Annotated

import typer
from rich.console import Console

from gcon.cli import handlers
from gcon.cli.output import EXIT_CODES, NO_MEMORY, REFUSED, Output, refusal
from gcon.cli.verbs import LABORATORY, VERBS, LazyVerbs
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
for _name, _words in VERBS.items():  # for help alone: a call loads the verb itself
    _panel = "Commands of the laboratory (pip install gcon-lab)" if _name in LABORATORY else None
    app.command(_name, help=_words, rich_help_panel=_panel)(lambda: None)


@app.callback(invoke_without_command=True)
def gcon(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """What all verbs share."""
    if version:
        sys.stdout.write(f"gcon {__version__}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        context.fail("Missing command.")


program = typer.main.get_group(app)
for _parameter in program.get_params(typer.Context(program)):
    if getattr(_parameter, "is_flag", False):
        _parameter.metavar = ""  # help would show `<bool>`, as in `verbs.command`


def _message(error: typer.TyperException) -> str:
    """What is wrong; with what was given, where the message of the library leaves it out (it has no full stop)."""
    message = error.format_message()
    names = getattr(getattr(error, "param", None), "opts", ())
    values = [after for word, after in pairwise(sys.argv) if word in names]
    return f"{message}; got {values[-1]!r}" if values and not message.endswith(".") else message


def main() -> None:
    """Run the command; what help, a version or a wrong call cannot be written to is told as of all verbs."""
    output = Output(as_json="--json" in sys.argv, quiet=False, progress=Console(stderr=True))
    try:
        code = _run(output)
        sys.stdout.flush()  # help
    except (OSError, MemoryError, ImportError) as error:
        code = REFUSED
        if isinstance(error, OSError):
            output.refused(error)
            if not isinstance(error, BrokenPipeError):
                output.error(type(error).__name__, refusal(error), code)
        elif wants_memory(error):
            nothing = "Nothing was read or charged." if handlers else ""  # a verb that begins takes them over
            output.error(type(error).__name__, f"{NO_MEMORY} {nothing}".rstrip(), code)
        else:
            raise
    sys.exit(code if isinstance(code, int) else 0)


def _run(output: Output) -> object:
    """The exit code of the command; a wrong call is bad input too, and with --json it is told as one JSON object."""
    try:
        return program(standalone_mode=False, prog_name="gcon")
    except typer.TyperException as error:
        message = _message(error)
        if not output.as_json and message:  # there is none where a verb was left out, and help was printed instead
            where = getattr(getattr(error, "ctx", None), "command_path", "gcon")
            message = f"{message.rstrip('.')}. See {where} --help."
        if message or output.as_json:
            output.error("UsageError", message, 2)
        return 2
    except GconError as error:  # before a verb began: it could not be loaded
        code = next(code for kind, code in EXIT_CODES if isinstance(error, kind))
        output.error(type(error).__name__, str(error), code)
        return code
    except typer.Abort:
        return 130


if __name__ == "__main__":
    main()
