"""The verbs of `gcon`, with one line of help each.

The tables are all that `gcon --help` reads. A verb, and everything that it imports, is loaded when it is called: torch alone
takes seconds. The verb NAME is `gcon.cli.NAME:NAME`, or `gcon.cli.NAME:app` if it is a group of verbs.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from gcon.errors import InputError

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
    "serve": "Answer people about themselves: gcon serve RELEASE.",
}
LABORATORY = {
    "attack": "Guess who is linked with whom from a model, under every access; what counts is the gain over an edge-free model.",
    "audit": "Try to refute the promises: lower bounds on epsilon, measured on made-up graphs.",
    "baseline": "Train a competitor and score it on the test nodes, under every access that it has.",
    "bench": "Time and peak memory of ten propagation steps with 16 columns on made-up graphs, each in a process of its own.",
    "reproduce": "Make the paper's figures again: tables, SVG, PNG, a page, and what its claims are worth.",
}
VERBS = OWN | LABORATORY
ENTRY_POINTS = "gcon.verbs"  # the group by which the laboratory adds its verbs


def command(name: str) -> TyperCommand | TyperGroup:
    """The command of one verb, loaded now.

    Raises:
        InputError: it is a verb of the laboratory, which is not installed.
    """
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
    return loaded  # type: ignore[no-any-return]


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


class LazyVerbs(TyperGroup):
    """The group of all verbs: help shows the tables, and only a call loads its verb."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The verb that was called, loaded."""
        name, known, rest = super().resolve_command(ctx, args)
        return name, known if name is None else command(name), rest
