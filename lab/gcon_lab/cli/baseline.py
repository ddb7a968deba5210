"""`gcon baseline`: the competitors, each through the same boundary and ledger."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gcon.cli import options
from gcon.cli.loading import load_graph
from gcon.cli.options import TableSource
from gcon.cli.output import Output
from gcon.cli.paying import finish, open_payment
from gcon.edges.graph import PrivateGraph
from gcon.errors import InputError
from gcon.methods.accuracy import check_scored
from gcon.methods.method import Method, PrivateMethod
from gcon.methods.predictions import audience_of, promise_under
from gcon.privacy.randomness import randomness_from
from gcon.privacy.receipt import Receipt
from gcon_lab.methods import METHODS
from gcon_lab.methods.competitor import settings_of, with_budget
from gcon_lab.methods.fitted import FittedMethod, fit


@options.verb
def baseline(
    output: Output,
    name: Annotated[str, typer.Argument(help="A method, or 'list' for all of them with what each promises.")],
    *,
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget, for the methods that spend one.")] = None,
    delta: Annotated[float | None, typer.Option(help="By default min(1e-5, 1/(10 n)) for n nodes.")] = None,
    set_: Annotated[list[str], typer.Option("--set", help="A setting of the method, NAME=VALUE; repeat.")] = [],  # noqa: B006
    where: TableSource,
    seed: Annotated[int | None, typer.Option(help="For experiments only: the release then carries no promise.")] = None,
    config: options.Config = None,
) -> None:
    """Train a competitor and score it on the test nodes, under every access that it has.

    It pays the ledger like any release; a method that is not private makes the ledger's total infinite. Scores with own
    edges are for the operator. Examples:

    gcon baseline list

    gcon baseline gap cora-ml --epsilon 1 --set hops=1
    """
    if name == "list":
        output.result({"methods": [_described(method) for method in METHODS.values()]}, _listed())
        return
    method = _built(name, epsilon=epsilon, delta=delta, given=set_)
    randomness = randomness_from(seed)
    with output.progress.status("read") as status:
        graph = load_graph(where)
        check_scored(graph.nodes.test_mask)
        status.update("train")
        books = open_payment(where, output)  # itself, and not its file: it tells what was charged, however this ends
        fitted = fit(method, graph, ledger=books, randomness=randomness)
        status.update("score")
        scores = _scores(fitted, graph)
        finish(output, books)
    words = [f"micro-F1 {entry['micro_f1']:.4f} ({entry['access']}): {entry['promise']}" for entry in scores]
    told: dict[str, object] = {
        "method": name,
        "about": method.about,
        "keeps_promise": fitted.no_promise is None,
        "scores": scores,
        "receipts": [_paid(receipt) for receipt in fitted.receipts],
    }
    output.result(told, "\n".join([method.about, *map(_paid_in_words, fitted.receipts), *words]))


def _built(name: str, *, epsilon: float | None, delta: float | None, given: list[str]) -> Method:
    """The method with its settings; everything is checked before a file is read."""
    kind = METHODS.get(name)
    if kind is None:
        rule, fix = f"must be one of {', '.join(METHODS)}", "gcon baseline list describes them."
        raise InputError("name", rule=rule, got=repr(name), fix=fix)
    return with_budget(kind, epsilon=epsilon, delta=delta, **dict(_setting(kind, entry) for entry in given))


def _setting(kind: type[Method], entry: str) -> tuple[str, Any]:
    """One NAME=VALUE, read as the kind that the setting has."""
    name, equals, text = entry.partition("=")
    known = settings_of(kind)
    if name not in known:
        rule, fix = f"must name a setting of {kind.name}: {', '.join(known)}", "For example --set seed=1."
        raise InputError("set", rule=rule, got=repr(name), fix=fix)
    if not equals:
        rule, fix = "must be NAME=VALUE", f"For example --set {name}={known[name].default}."
        raise InputError("set", rule=rule, got=repr(entry), fix=fix)
    return name, known[name].read(text)


def _scores(fitted: FittedMethod, graph: PrivateGraph) -> list[dict[str, Any]]:
    accesses = [access for access in fitted.trained.score_functions if access != "public-graph"]
    return [
        {
            "access": access,
            "micro_f1": fitted.score(graph, graph.nodes.test_mask, access=access),
            "publishable": audience_of(access, fitted.no_promise) == "public",
            "promise": promise_under(access, fitted.no_promise),
        }
        for access in accesses
    ]


def _paid(receipt: Receipt) -> dict[str, object]:
    return {
        "mechanism": receipt.mechanism,
        "budget": vars(receipt.budget),
        "keeps_promise": receipt.keeps_promise,
        "randomness": receipt.randomness,
        "total": {**vars(receipt.total), "composition": "basic"},
        "plan": dict(receipt.plan),
    }


def _paid_in_words(receipt: Receipt) -> str:
    spent, total = receipt.budget, receipt.total
    kept = "the promise holds" if receipt.keeps_promise else "there is no promise"
    return (
        f"{receipt.mechanism}: epsilon {spent.epsilon!r}, delta {spent.delta!r}, noise: {receipt.randomness}; {kept}. The "
        f"ledger's total: epsilon {total.epsilon!r}, delta {total.delta!r}."
    )


def _described(kind: type[Method]) -> dict[str, object]:
    return {
        "name": kind.name,
        "about": kind.about,
        "private": kind.private,
        "spends_budget": issubclass(kind, PrivateMethod),
        "settings": {name: setting.default for name, setting in settings_of(kind).items()},
    }


def _listed() -> str:
    width = max(map(len, METHODS))
    return "\n".join(f"{kind.name:{width}s}  {kind.about}" for kind in METHODS.values())
