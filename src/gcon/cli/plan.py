"""`gcon plan`: the noise of either method from public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, cast

import typer

from gcon.choose.moments_noise import USUAL_VALIDATION, MomentsNoise, moments_noise
from gcon.choose.promise_cost import PromiseCost, promise_cost
from gcon.cli import options
from gcon.cli.options import PaperOptions, paper_option
from gcon.cli.output import Output
from gcon.errors import InputError, check_number
from gcon.methods.moments import Moments
from gcon.privacy.budget import LITTLE, Budget, checked_budget, promises_little


@dataclass(frozen=True, kw_only=True)
class PaperNumbers(PaperOptions):
    """The public numbers that the paper's noise depends on."""

    classes: Annotated[int | None, paper_option("Number of classes; needed.")] = None
    dim: Annotated[
        int | None, paper_option("Width of the aggregates: encoded columns times the number of --steps; needed.")
    ] = None
    labelled: Annotated[
        int | None, paper_option("Rows in the loss: labelled nodes, or all nodes with pseudo-labels; needed.")
    ] = None
    diameter: Annotated[float | None, paper_option("Largest distance between two feature rows; 2.")] = None
    xi: Annotated[float | None, paper_option("Margin over the floor of the ridge; by default the floor.")] = None


@options.verb
def plan(
    output: Output,
    *,
    epsilon: options.Epsilon,
    delta: Annotated[
        float, typer.Option(help="Probability that the promise may fail; training takes 1/(10 n) from 10,000 nodes on.")
    ] = 1e-5,
    protect_edges: options.ProtectEdges = 1,
    validation_nodes: Annotated[
        int | None,
        typer.Option(
            help="How many nodes of the training are marked 'val': the right answers of many are counted, at a price.",
            show_default=str(USUAL_VALIDATION),
        ),
    ] = None,
    many_labels: Annotated[
        bool,
        typer.Option(
            "--many-labels", help="At least two in five nodes have a public label: these may be counted alone."
        ),
    ] = False,
    method: Annotated[
        str, typer.Option(help="moments: the default's releases. paper: objective perturbation (GCON).")
    ] = Moments.name,
    papers: PaperNumbers,
    config: options.Config = None,
) -> None:
    """How much noise a promise costs. Reads no data at all.

    For the default: the standard deviation of everything that it may release, and from which mean degree it counts
    neighbours. With --method paper: Theorem 1 for exactly this epsilon and delta; what a release keeps back for the
    solver's certificate is shown apart. Examples:

    gcon plan --epsilon 1 --protect-edges 5

    gcon plan --epsilon 1 --validation-nodes 2000

    gcon plan --epsilon 1 --method paper --classes 7 --dim 16 --labelled 2995
    """
    budget = checked_budget(epsilon, delta)
    given = papers.given(method, protect_edges=protect_edges)
    little = f"\n{promises_little(epsilon, protect_edges)}" if LITTLE <= epsilon < math.inf else ""
    if method == Moments.name:
        asked = USUAL_VALIDATION if validation_nodes is None else validation_nodes
        _at_least("validation_nodes", asked, 0)
        noise = moments_noise(budget, protect_edges=protect_edges, num_validation=asked, many_labels=many_labels)
        output.result(noise.fields(), _default_words(noise) + little)
    elif validation_nodes is not None:
        rule, fix = "is about the default, which counts their right answers", "Leave it out with --method paper."
        raise InputError("validation_nodes", rule=rule, got=validation_nodes, fix=fix)
    elif many_labels:
        rule, fix = "is about the default, which counts neighbours by their labels", "Leave it out with --method paper."
        raise InputError("many_labels", rule=rule, got=many_labels, fix=fix)
    else:
        fields = _papers_cost(budget, given).fields()
        output.result({"method": method, **fields}, _words(fields) + little)


def _papers_cost(budget: Budget, given: Mapping[str, Any]) -> PromiseCost:
    numbers: dict[str, Any] = {"diameter": 2.0, **given}
    for name, least in (("classes", 2), ("dim", 1), ("labelled", 1)):
        if name not in numbers:
            raise InputError(name, rule="is needed with --method paper", got="nothing", fix="It is a public number.")
        _at_least(name, numbers[name], least)
    check_number(
        "diameter",
        numbers["diameter"],
        allowed=lambda number: 0 <= number <= 2,
        rule="must lie in [0, 2]",
        fix="Rows have length 1.",
    )
    return promise_cost(
        budget,
        schemes=numbers["schemes"],
        num_classes=numbers["classes"],
        num_features=numbers["dim"],
        num_labelled=numbers["labelled"],
        loss=numbers.get("loss", "soft-margin"),
        ridge=numbers.get("ridge", 1.0),
        noise_share=numbers.get("noise_share", 0.9),
        influence=numbers.get("influence", "auto"),  # another name is refused there
        diameter=numbers["diameter"],
        margin=numbers.get("xi"),
        protect_edges=numbers["protect_edges"],
    )


def _at_least(name: str, value: int, least: int) -> None:
    check_number(
        name, value, allowed=lambda number: number >= least, rule=f"must be at least {least}", fix="Count again."
    )


def _default_words(noise: MomentsNoise) -> str:
    fields, others = noise.fields(), [edges for edges in noise.by_edges if edges != noise.protect_edges]
    names = {
        "first_moments": "moments of features, first release",
        "answer_moments": "moments of answers, at most",
        "moments": "moments of features, without counts",
        "counts": "a neighbour count",
        "counts_of_two": "a neighbour count, of two tables",
        "counts_one_way": "a count of labelled neighbours alone",
        "right_answers": "count of right validation answers",
    }
    lines = [
        "Standard deviation of the noise in what the default releases (an edge moves moments of features by at most 2):"
    ]
    for name, words in names.items():
        if fields[name] is None:
            continue
        uncounted = name == "right_answers" and fields[name] == 0 and noise.by_edges
        few = f"none: {noise.validation_nodes} nodes are too few for it"
        lines.append(f"  {words:38s} {few if uncounted else f'{fields[name]:.4g}'}")
    twice = "labelled ones alone if" if noise.loud_degree is None else f"twice from {noise.loud_degree:.1f} on if"
    sure = "that tells more" if noise.loud_degree is None else "answers are unsure"
    lines += [
        f"Neighbours are counted from a mean degree of {noise.heard_degree:.1f} on, and {twice}",
        f"{sure}; on a sparser graph that budget goes to the moments.",
    ]
    if noise.by_edges:
        said = ", ".join(f"{noise.by_edges[edges].epsilon:.4g} for {_edges(edges)}" for edges in others)
        lines.append(
            f"Epsilon is {noise.budget.epsilon:g} for {_edges(noise.protect_edges)}; the same noise promises epsilon {said}."
        )
    return "\n".join([*lines, str(fields["attacker"])])


def _edges(number: int) -> str:
    return "one edge" if number == 1 else f"any {number} together"


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
    for edges, said in cast("dict[str, list[float] | None]", fields["by_edges"]).items():
        promised = "nothing is promised" if said is None else f"{said[0]:g}, {said[1]:g}"
        lines.append(f"{f'epsilon and delta for {_edges(int(edges))}':38s} {promised}")
    return "\n".join([*lines, str(fields["attacker"])])


def _shown(value: object) -> str:
    return "none needed" if value is None else f"{value:.10g}"
