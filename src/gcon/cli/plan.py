"""`gcon plan`: the noise plan from public numbers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from gcon.choose.promise_cost import promise_cost
from gcon.cli import options
from gcon.cli.checks import parsed_steps
from gcon.cli.output import reporting
from gcon.edges.schemes import Schemes
from gcon.errors import check_number
from gcon.privacy.budget import checked_budget

if TYPE_CHECKING:
    from gcon.mechanisms.influence import InfluenceBound


def plan(
    epsilon: options.Epsilon,
    delta: Annotated[float, typer.Option(help="Probability that the promise may fail; a public constant.")],
    classes: Annotated[int, typer.Option(help="Number of classes.")],
    dim: Annotated[int, typer.Option(help="Width of the aggregates: encoded columns times the number of --steps.")],
    labelled: Annotated[int, typer.Option(help="Rows in the loss: labelled nodes, or all nodes with pseudo-labels.")],
    restart: Annotated[float, typer.Option(help="Weight of a node's own features in every step, in [0, 1].")] = 0.8,
    steps: Annotated[
        list[str], typer.Option(help="How far features travel; repeat for several, 'inf' for the limit.")
    ] = ["2"],  # noqa: B006 (typer copies it)
    loss: Annotated[str, typer.Option(help="soft-margin, or pseudo-huber:WEIGHT.")] = "soft-margin",
    ridge: Annotated[float, typer.Option(help="Regularisation; the proof may raise it.")] = 1.0,
    noise_share: Annotated[float, typer.Option(help="Least share of epsilon that goes to the noise, in (0, 1).")] = 0.9,
    influence: Annotated[
        str, typer.Option(help="Bound on an edge's influence: auto, paper, simple or sharp.")
    ] = "auto",
    diameter: Annotated[float, typer.Option(help="Largest distance between two feature rows.")] = 2.0,
    xi: Annotated[float | None, typer.Option(help="Margin over the floor of the ridge; by default the floor.")] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    config: options.Config = None,
) -> None:
    """How much noise a promise costs. Reads no data at all.

    Prints Theorem 1 for exactly this epsilon and delta. What a release keeps back for the solver's certificate is shown
    apart. Example:

    gcon plan --epsilon 1 --delta 1e-5 --classes 7 --dim 16 --labelled 2995
    """
    with reporting(as_json=json, quiet=quiet) as output:
        budget = checked_budget(epsilon, delta)
        schemes = Schemes(restart=restart, steps=parsed_steps(steps))
        _at_least("classes", classes, 2)
        _at_least("dim", dim, 1)
        _at_least("labelled", labelled, 1)
        check_number(
            "diameter",
            diameter,
            allowed=lambda number: 0 <= number <= 2,
            rule="must lie in [0, 2]",
            fix="Rows have length 1.",
        )
        cost = promise_cost(
            budget,
            schemes=schemes,
            num_classes=classes,
            num_features=dim,
            num_labelled=labelled,
            loss=loss,
            ridge=ridge,
            noise_share=noise_share,
            influence=cast("InfluenceBound", influence),  # another name is refused there
            diameter=diameter,
            margin=xi,
        )
        fields = cost.fields()
        output.result(fields, _words(fields))


def _at_least(name: str, value: int, least: int) -> None:
    check_number(
        name, value, allowed=lambda number: number >= least, rule=f"must be at least {least}", fix="Count again."
    )


def _words(fields: dict[str, object]) -> str:
    names = {
        "edge_influence": "edge influence (Psi)",
        "noise_radius_quantile": "noise radius quantile (c_sf)",
        "ridge": "ridge after the floor (Lambda)",
        "weight_norm_bound": "weight norm bound (c_theta)",
        "jacobian_epsilon": "epsilon of the Jacobian (eps_Lambda)",
        "extra_ridge": "extra ridge (Lambda')",
        "noise_rate": "noise rate (beta)",
        "noise_to_signal": "expected noise to signal",
    }
    lines = [f"{words:38s} {_shown(fields[name])}" for name, words in names.items()]
    reserve = fields["certificate_reserve"]
    kept = reserve["epsilon"] if isinstance(reserve, dict) else 0.0
    lines.append(f"{'kept back for the certificate':38s} {kept:g} of epsilon")
    return "\n".join([*lines, str(fields["attacker"])])


def _shown(value: object) -> str:
    return "none needed" if value is None else f"{value:.10g}"
