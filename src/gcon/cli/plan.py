"""`gcon plan`: the noise plan from public numbers alone."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Annotated

import typer

from gcon.cli import options
from gcon.cli.output import Output
from gcon.edges.schemes import Schemes
from gcon.errors import check_number
from gcon.mechanisms.influence import FeatureExtent, edge_influence
from gcon.mechanisms.losses import loss_by_name
from gcon.mechanisms.objective_plan import check_ridge, make_plan
from gcon.mechanisms.theorem import ObjectiveShape, TheoremOne, theorem_one
from gcon.privacy.attacker import best_advantage, best_true_positive_rate, in_words
from gcon.privacy.budget import checked_budget


def plan(
    epsilon: options.Epsilon,
    delta: Annotated[float, typer.Option(help="Probability that the promise may fail; a public constant.")],
    classes: Annotated[int, typer.Option(help="Number of classes.")],
    dim: Annotated[int, typer.Option(help="Width of the aggregates: encoded columns times the number of --steps.")],
    labelled: Annotated[int, typer.Option(help="Rows in the loss: labelled nodes, or all nodes with pseudo-labels.")],
    restart: options.Restart = 0.8,
    steps: options.Steps = ["2"],  # noqa: B006 (typer copies it)
    loss: options.Loss = "soft-margin",
    ridge: options.Ridge = 1.0,
    noise_share: options.NoiseShare = 0.9,
    influence: options.Influence = "auto",
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
    with Output(as_json=json, quiet=quiet).reporting() as output:
        budget = checked_budget(epsilon, delta)
        schemes = Schemes(restart=restart, steps=options.parsed_steps(steps))
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
        check_ridge(ridge=ridge, noise_share=noise_share, margin=xi)
        bound = edge_influence(
            schemes, FeatureExtent(diameter, 1.0), num_nodes=labelled, bound=options.as_bound(influence)
        )
        the_loss = loss_by_name(loss, classes)
        shape = ObjectiveShape(
            epsilon=budget.epsilon,
            delta=budget.delta,
            noise_share=noise_share,
            num_features=dim,
            num_labelled=labelled,
            edge_influence=bound.value,
            loss=the_loss,
        )
        theorem = theorem_one(shape, ridge=ridge, margin=xi)
        release = make_plan(
            budget,
            loss=the_loss,
            num_features=dim,
            num_labelled=labelled,
            edge_influence=bound.value,
            ridge=ridge,
            noise_share=noise_share,
            margin=xi,
        )
        fields = _theorem_fields(theorem) | {
            "influence_bounds": list(bound.bounds),
            "noise_to_signal": _noise_to_signal(theorem, shape),
            "best_advantage": best_advantage(budget),
            "true_positive_rate_at_1_percent": best_true_positive_rate(budget, 0.01),
            "attacker": in_words(budget),
            "certificate_reserve": {
                "epsilon": 2 * release.terms.reserved_epsilon,
                "delta": budget.delta - release.exact.delta,
                "final_noise": release.final_noise,
                "gradient_tolerance": release.tolerance,
            },
        }
        output.result(fields, _words(fields))


def _at_least(name: str, value: int, least: int) -> None:
    check_number(
        name, value, allowed=lambda number: number >= least, rule=f"must be at least {least}", fix="Count again."
    )


def _theorem_fields(theorem: TheoremOne) -> dict[str, object]:
    values: dict[str, object] = asdict(theorem)
    return values | {"noise_rate": theorem.noise_rate if math.isfinite(theorem.noise_rate) else None}


def _noise_to_signal(theorem: TheoremOne, shape: ObjectiveShape) -> float:
    """Expected length of one class's noise over the largest possible class sum, n_1 / c (the loss's 1/c undone)."""
    classes = shape.loss.num_classes
    return classes**2 * shape.num_features / (theorem.noise_rate * shape.num_labelled)


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
