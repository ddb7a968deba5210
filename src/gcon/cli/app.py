"""The `gcon` command: its verbs with one line of help each, and how it ends where no verb has begun.

The tables are all that `gcon --help` reads. A verb, and everything that it imports, is loaded when it is called: torch alone
takes seconds. The verb NAME is `gcon.cli.NAME:NAME`, or `gcon.cli.NAME:app` if it is a group of verbs.
"""

from __future__ import annotations

import sys
from importlib import import_module
from itertools import pairwise
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from gcon.cli import handlers
from gcon.cli.output import EXIT_CODES, NO_MEMORY, REFUSED, Output, refusal
from gcon.errors import GconError, InputError, wants_memory
from gcon.version import __version__

OWN = {
    "plan": "How much noise a promise costs. Reads no data at all.",
    "advise": "Say what a budget could buy, and when not to spend one.",
    "tune": "Choose settings of the paper's method for a budget.",
    "train": "Train privately and write the model with its promise.",
    "predict": "Predict labels. With own-edges every row is for its owner only, says so, and the delivery is recorded.",
    "evaluate": "Scores on the test nodes: micro-F1, and more by class and for the probabilities.",
    "statement": "Say what a released model promises, and what not. Example: gcon statement model --verify.",
    "export": "Write a released model for other programs: ONNX, or a folder for a model hub.",
    "site": "Write three pages for the people in the graph: the promise, a form to ask the model, and what the model is.",
    "demo": "See it work, in about a minute: private models, the controls they must beat, and a report.",
    "report": "Write one page about a model: its accuracy beside a control that spends nothing, its promise, noise and ledger.",
    "version": "Versions of gcon, torch and Python.",
    "completion": "Print a script by which a shell completes verbs and options.",
    "ledger": "The ledger of a data set.",
    "data": "Data sets and files.",
    "serve": "Answer people about themselves: gcon serve RELEASE. Needs gcon with its extra 'serve'.",
}
LABORATORY = {
    "attack": "Guess who is linked with whom from a model, under every access; what counts is the gain over an edge-free model.",
    "audit": "Try to refute the promises: lower bounds on epsilon, measured on made-up graphs.",
    "baseline": "Train a competitor and score it on the test nodes, under every access that it has.",
    "bench": "Time, peak memory and cost on made-up graphs of growing size, each measurement in a process of its own.",
    "reproduce": "Make the paper's figures again: tables, SVG, PNG, a page, and what its claims are worth.",
}
VERBS = OWN | LABORATORY
ENTRY_POINTS = "gcon.verbs"  # the group by which the laboratory adds its verbs


class LazyVerbs(TyperGroup):
    """The group of all verbs: help shows the tables, and only a call loads its verb."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The verb that was called, loaded now.

        Raises:
            InputError: it is a verb of the laboratory, which is not installed.
        """
        name, known, rest = super().resolve_command(ctx, args)
        if name is None:
            return name, known, rest
        if name in LABORATORY:
            found = _of_the_laboratory(name)
        else:
            module = import_module(f"gcon.cli.{name}")
            found = getattr(module, "app", None) or getattr(module, name)
        if isinstance(found, typer.Typer):
            loaded: Any = typer.main.get_group(found)
        else:
            alone = typer.Typer(add_completion=False)
            alone.command(name)(found)
            loaded = typer.main.get_command(alone)
        loaded.name = name
        left = [loaded]
        while left:  # help would show `<bool>` beside an option that takes no value
            shown = left.pop()
            left += getattr(shown, "commands", {}).values()
            for parameter in shown.get_params(typer.Context(shown)):
                if getattr(parameter, "is_flag", False):
                    parameter.metavar = ""
        return name, loaded, rest


def _of_the_laboratory(name: str) -> Any:
    from importlib.metadata import entry_points  # slow for what `gcon --help` needs

    for entry in entry_points(group=ENTRY_POINTS, name=name):
        return entry.load()
    raise InputError(
        f"gcon {name}",
        rule="is a verb of the laboratory, the package gcon-lab",
        got="an environment without it",
        fix="Install it with: pip install gcon-lab (from a checkout: pip install -e lab).",
    )


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
        _parameter.metavar = ""  # help would show `<bool>`, as in a verb


def command(name: str) -> Any:
    """The command of one verb, loaded now."""
    return program.resolve_command(typer.Context(program), [name])[1]


def main() -> None:
    """Run the command and end with its exit code.

    A wrong call is bad input too, and with --json it is told as one JSON object; what help, a version or a wrong call cannot be
    written to is told as of all verbs.
    """
    output = Output(as_json="--json" in sys.argv, quiet=False, progress=Console(stderr=True))
    try:
        try:
            code = program(standalone_mode=False, prog_name="gcon")
        except typer.TyperException as error:
            code, message = 2, _message(error)
            if not output.as_json and message:  # there is none where a verb was left out, and help was printed instead
                where = getattr(getattr(error, "ctx", None), "command_path", "gcon")
                message = f"{message if message.endswith('?') else message.rstrip('.') + '.'} See {where} --help."
            if message or output.as_json:
                output.error("UsageError", message, code)
        except GconError as error:  # before a verb began: it could not be loaded
            code = next(code for kind, code in EXIT_CODES if isinstance(error, kind))
            output.error(type(error).__name__, str(error), code)
        except typer.Abort:
            code = 130
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


def _message(error: typer.TyperException) -> str:
    """What is wrong; with what was given, where the message of the library leaves it out (it has no full stop)."""
    message = error.format_message()
    names = getattr(getattr(error, "param", None), "opts", ())
    values = [after for word, after in pairwise(sys.argv) if word in names]
    return f"{message}; got {values[-1]!r}" if values and not message.endswith(".") else message


if __name__ == "__main__":
    main()
