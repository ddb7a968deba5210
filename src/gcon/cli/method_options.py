"""`--method`, and the options of the paper's method that training and planning share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from gcon.edges.schemes import Schemes
from gcon.errors import InputError
from gcon.methods.moments import Moments
from gcon.methods.objective import Objective
from gcon.privacy.budget import check_edges


def paper_option(words: str) -> Any:
    """An option of the paper's method; None, the default, leaves it to the library."""
    return typer.Option(help=words, rich_help_panel="With --method paper", show_default=False)


@dataclass(frozen=True, kw_only=True)
class PaperOptions:
    """Options of the paper's method; verbs add their own."""

    restart: Annotated[float | None, paper_option("Weight of a node's own features in every step, in [0, 1]; 0.8.")] = (
        None
    )
    steps: Annotated[
        list[str], paper_option("How far features travel; repeat for several, 'inf' for the limit; 2.")
    ] = field(default_factory=list)
    loss: Annotated[str | None, paper_option("soft-margin, or pseudo-huber:WEIGHT.")] = None
    ridge: Annotated[float | None, paper_option("Regularisation; the proof may raise it; 1.")] = None
    noise_share: Annotated[
        float | None, paper_option("Least share of epsilon that goes to the noise, in (0, 1); 0.9.")
    ] = None
    influence: Annotated[str | None, paper_option("Bound on an edge's influence: auto, paper, simple or sharp.")] = None

    def given(self, method: str, *, protect_edges: int) -> dict[str, Any]:
        """The options that were given, with restart and steps together as `schemes`.

        Raises:
            InputError: there is no such method, or an option is not its own.
        """
        given = {name: value for name, value in vars(self).items() if value not in (None, [])}
        check_edges(protect_edges)
        if method == Moments.name:
            for name in given:
                raise InputError(
                    name.replace("_", "-"),
                    rule="is an option of the paper's method",
                    got="--method moments",
                    fix="Add --method paper, or leave it out.",
                )
        elif method != Objective.name:
            rule = f"must be '{Moments.name}' or '{Objective.name}'"
            raise InputError("method", rule=rule, got=repr(method), fix="Leave it out for the default.")
        else:
            steps = tuple(_number_of_steps(entry) for entry in given.pop("steps", ["2"]))
            given["protect_edges"] = protect_edges
            given["schemes"] = Schemes(restart=given.pop("restart", 0.8), steps=steps)
        return given


def _number_of_steps(entry: str) -> float:
    try:
        return float(entry)
    except ValueError:
        raise InputError(
            "steps", rule="whole numbers or 'inf'", got=repr(entry), fix="For example --steps 2."
        ) from None
