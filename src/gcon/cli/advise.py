"""`gcon advise`: what a budget could buy, before any is spent."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from gcon.choose.advice import advise as give_advice
from gcon.choose.advice import check_access, check_epsilon, check_guess
from gcon.choose.advice_words import in_words
from gcon.choose.paid_look import check_look, take_look
from gcon.cli import options
from gcon.cli.loading import load_graph, load_nodes
from gcon.cli.options import TableSource
from gcon.cli.output import Output
from gcon.cli.paying import finish, open_payment
from gcon.errors import InputError
from gcon.privacy.budget import checked_budget, protected_change
from gcon.privacy.randomness import randomness_from


@options.verb
def advise(
    output: Output,
    *,
    epsilon: Annotated[float | None, typer.Option(help="The budget that you have in mind, a look included.")] = None,
    access: Annotated[
        str | None, typer.Option(help="none, cached, own-edges or public-graph; by default all are discussed.")
    ] = None,
    look: Annotated[
        float | None, typer.Option(help="Epsilon of a paid look at homophily and mean degree, for instance 0.1.")
    ] = None,
    mean_degree: Annotated[
        float | None, typer.Option(help="Edges per node, guessed from public knowledge; instead of a look.")
    ] = None,
    protect_edges: options.ProtectEdges = 1,
    delta: Annotated[float | None, typer.Option(help="By default min(1e-5, 1/(10 n)) for n nodes.")] = None,
    where: TableSource,
    seed: Annotated[int | None, typer.Option(help="For experiments only: the look then carries no promise.")] = None,
    config: options.Config = None,
) -> None:
    """Say what a budget could buy, and when not to spend one.

    Free: how far features alone go, the noise, accuracy and gain to expect under each access, with intervals, and the time
    that a training takes; the edges file is not read and need not be named. --mean-degree says how dense you guess it is.
    Nodes without any marked 'val' are judged by the labelled nodes, as in training; the answer says what that means.
    Paid, with --look: homophily and mean degree, with error bars, from the ledger.

    Example: gcon advise --nodes nodes.csv --epsilon 1 --mean-degree 20
    """
    _check(epsilon=epsilon, access=access, look=look, delta=delta, seed=seed)
    protected_change(protect_edges)
    check_guess(mean_degree, looks=look is not None)
    with output.progress.status("read") as status:
        if look is None:
            table, seen = load_nodes(where), None
        else:
            graph = load_graph(where)
            table = graph.nodes
            status.update("look")
            books = open_payment(where, output)
            seen = take_look(graph, epsilon=look, delta=delta, ledger=books, randomness=randomness_from(seed))
            finish(output, books, {name: value for name, value in vars(seen).items() if name != "receipt"})
        status.update("train without edges")
        advice = give_advice(
            table,
            epsilon=epsilon,
            delta=delta,
            access=access,
            look=seen,
            mean_degree=mean_degree,
            protect_edges=protect_edges,
        )
    errors = [{"epsilon": cost, "mean_degree_error": error} for cost, error in advice.look_errors]
    output.result(asdict(advice) | {"look_errors": errors}, in_words(advice))


def _check(
    *, epsilon: float | None, access: str | None, look: float | None, delta: float | None, seed: int | None
) -> None:
    """Everything that can be wrong is told before a file is read or a ledger made."""
    check_access(access)
    if epsilon is not None:
        check_epsilon(epsilon)
    if look is not None:
        check_look(look, epsilon)
    elif seed is not None:
        raise InputError("seed", rule="is for the noise of a look", got="no look", fix="Leave it out, or pass --look.")
    if delta is not None:
        checked_budget(1.0, delta)
