"""The verbs of `gcon`: their names, where each lives and one line of help.

The table is all that `gcon --help` reads. A verb, and everything that it imports, is loaded when it is called: torch alone
takes seconds.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from gcon.errors import InputError

LABORATORY = "gcon.verbs"  # the group of entry points by which the laboratory adds its verbs


class Verb(NamedTuple):
    """One line of the table."""

    name: str
    help: str
    home: str | None  # module:function, or module:app for a group of verbs; None: the laboratory's


VERBS = {
    verb.name: verb
    for verb in (
        Verb("plan", "How much noise a promise costs. Reads no data at all.", "gcon.cli.plan:plan"),
        Verb("advise", "Say what a budget could buy, and when not to spend one.", "gcon.cli.advise:advise"),
        Verb("tune", "Choose settings of the paper's method for a budget.", "gcon.cli.tune:tune"),
        Verb("train", "Train privately and write the model with its promise.", "gcon.cli.train:train"),
        Verb(
            "predict",
            "Predict labels. With own-edges every row is for its owner only, says so, and the delivery is recorded.",
            "gcon.cli.predict:predict",
        ),
        Verb(
            "evaluate",
            "Scores on the test nodes: micro-F1, and more by class and for the probabilities.",
            "gcon.cli.evaluate:evaluate",
        ),
        Verb(
            "statement",
            "Say what a released model promises, and what not. Example: gcon statement model --verify.",
            "gcon.cli.statement:statement",
        ),
        Verb(
            "export",
            "Write a released model for other programs: ONNX, or a folder for a model hub.",
            "gcon.cli.export:export",
        ),
        Verb(
            "site",
            "Write three pages for the people in the graph: the promise, a form to ask the model, and what the model is.",
            "gcon.cli.site:site",
        ),
        Verb(
            "demo",
            "See it work, in about a minute: private models, the controls they must beat, and a report.",
            "gcon.cli.demo:demo",
        ),
        Verb(
            "report",
            "Write one page about a model: its accuracy beside a control that spends nothing, its promise, noise and ledger.",
            "gcon.cli.report:report",
        ),
        Verb("version", "Versions of gcon, torch and Python.", "gcon.cli.version:version"),
        Verb(
            "completion",
            "Print a script by which a shell completes verbs and options.",
            "gcon.cli.completion:completion",
        ),
        Verb("ledger", "The ledger of a data set.", "gcon.cli.ledger:app"),
        Verb("data", "Data sets and files.", "gcon.cli.data:app"),
        Verb("serve", "Answer people about themselves: gcon serve RELEASE.", "gcon.cli.serve:app"),
        Verb(
            "attack",
            "Guess who is linked with whom from a model, under every access; what counts is the gain over an edge-free "
            "model.",
            None,
        ),
        Verb("audit", "Try to refute the promises: lower bounds on epsilon, measured on made-up graphs.", None),
        Verb("baseline", "Train a competitor and score it on the test nodes, under every access that it has.", None),
        Verb(
            "bench",
            "Time and peak memory of ten propagation steps with 16 columns on made-up graphs, each in a process of its own.",
            None,
        ),
        Verb(
            "reproduce",
            "Make the paper's figures again: tables, SVG, PNG, a page, and what its claims are worth.",
            None,
        ),
    )
}


def command(name: str) -> TyperCommand | TyperGroup:
    """The command of one verb, loaded now.

    Raises:
        InputError: it is a verb of the laboratory, which is not installed.
    """
    home = VERBS[name].home
    found = _of_the_laboratory(name) if home is None else resolve_name(home)
    if isinstance(found, typer.Typer):
        loaded: Any = typer.main.get_group(found)
    else:
        alone = typer.Typer(add_completion=False)
        alone.command(name)(found)
        loaded = typer.main.get_command(alone)
    loaded.name = name
    return loaded  # type: ignore[no-any-return]


def _of_the_laboratory(name: str) -> Any:
    from importlib.metadata import entry_points  # slow for what `gcon --help` needs

    for entry in entry_points(group=LABORATORY, name=name):
        return entry.load()
    raise InputError(
        f"gcon {name}",
        rule="is a verb of the laboratory, the package gcon-lab",
        got="an environment without it",
        fix="Install it with: pip install gcon-lab (from a checkout: pip install -e lab).",
    )


class LazyVerbs(TyperGroup):
    """The group of all verbs: help shows the table, and only a call loads its verb."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for verb in VERBS.values():
            panel = "Commands of the laboratory (pip install gcon-lab)" if verb.home is None else None
            self.add_command(TyperCommand(verb.name, help=verb.help, rich_help_panel=panel))

    def get_params(self, ctx: Any) -> list[Any]:
        """The options before a verb."""
        return _without_types_of_flags(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The verb that was called, loaded."""
        name, known, rest = super().resolve_command(ctx, args)
        if name is not None:
            known = command(name)
            for each in (known, *getattr(known, "commands", {}).values()):
                for below in (each, *getattr(each, "commands", {}).values()):
                    _without_types_of_flags(below.get_params(ctx))
        return name, known, rest


def _without_types_of_flags(parameters: list[Any]) -> list[Any]:
    """The same: help would show `<bool>` beside an option that takes no value."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters
