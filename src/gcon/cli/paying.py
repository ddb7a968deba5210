"""Paying: the ledger of the data is opened and compared with what lies near it, and told at the end what was handed out.

What was paid for reaches the user, or is kept beside the ledger; only then is the ledger told that it was released.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from gcon.cli.ledger_place import ledger_beside, warn_of_copies
from gcon.cli.options import GraphSource
from gcon.cli.output import Output, refusal
from gcon.errors import GconError, InputError, PaidResultError
from gcon.files.datasets import facts_of
from gcon.methods.model import Model
from gcon.privacy.deferred_ledger import DeferredLedger
from gcon.privacy.ledger_file import FileLedger
from gcon.release.recovery import RECOVERY, keep, settle_kept
from gcon.release.store import save_release
from gcon.writing import uninterrupted

MOST_FOLDERS, MOST_BYTES = 200, 2**20  # looked at; a release's settings are smaller


def open_payment(
    where: GraphSource, output: Output, *, near: Path | None = None, name: str | None = None
) -> DeferredLedger:
    """The ledger of the data, to pay from: the one that was named, or the one beside it.

    However the verb ends, its output says what was charged.

    Args:
        where: the data.
        output: warns if releases beside the edges, the ledger or `near` know of more spending than the ledger.
        near: a further folder to look for releases in.
        name: what the owner calls the data; a new ledger takes it, an old one must have it already.
    """
    base = os.environ.get("XDG_STATE_HOME")
    state = (Path(base) if base else Path.home() / ".local" / "state") / "gcon"  # for what belongs to the operator
    if where.source is not None:
        usual_name = facts_of(where.source).name
        target = where.ledger or state / f"{usual_name}.ledger"
    elif where.edges is not None:
        usual_name, target = where.edges.stem, where.ledger or ledger_beside(where.edges)
    else:
        raise InputError("--edges", rule="is needed for a ledger", got="nothing", fix="Pass the edges file.")
    if where.ledger is None:
        target.parent.mkdir(parents=True, exist_ok=True)
    if where.edges is not None:
        warn_of_copies(where.edges, target, folder=state)
    ledger = FileLedger(target, data_set=None if target.exists() else name or usual_name)  # an old one keeps its name
    if name not in (None, ledger.data_set):
        rule = f"must be the name in the ledger {target.name}, {ledger.data_set!a}, which it got when it was made"
        fix = "Leave it out; gcon report and gcon site take a --name of their own."
        raise InputError("--name", rule=rule, got=f"{name!a}", fix=fix)
    path, missing, found = ledger.path, list[str](), set[Path]()
    kept, before = path.with_name(RECOVERY.format(path.name)), ledger.overview(history=False)
    if where.edges is not None:  # the ledger may be new, an older one, or not theirs
        spent = before.total
        with suppress(InputError):  # what these edges were converted with is gone, and another ledger was named
            usual = ledger_beside(where.edges)
            if usual.exists() and usual.resolve() != path:
                missing.append(
                    f"These edges have a ledger, {usual}, and {path} is paid from instead. What was spent there is not counted "
                    "here."
                )
        if spent.epsilon == 0 and kept.exists():
            missing.append(f"{kept} holds results that were paid for, but the ledger {path} knows of no spending.")
        for place in filter(None, (where.edges.parent, path.parent, near)):
            with suppress(OSError):
                found.update(islice(place.resolve().glob("*/release.json"), MOST_FOLDERS))
        for release in sorted(found):
            with suppress(OSError, ValueError, RecursionError, TypeError, KeyError):
                with release.open("rb") as file:
                    receipt: Any = json.loads(file.read(MOST_BYTES))["receipt"]
                total = float(receipt["total"]["epsilon"])
                if receipt["data_set"] == ledger.data_set and total > spent.epsilon:
                    missing.append(
                        f"The release {release.parent} says that epsilon {total:g} was spent on '{ledger.data_set}' by then, but "
                        f"the ledger {path} knows of {spent.epsilon:g}. If it is about the same edges, restore their ledger: "
                        "what was spent stays spent."
                    )
        for words in missing:
            output.warn(f"warning: {words}")
    settled = settle_kept(ledger) if kept.exists() else []
    if settled:
        numbers = ", ".join(map(str, settled))
        output.remark(f"Settled in {path} what an earlier command could not: entries {numbers}.")
    for entry in before.unsettled:
        if entry.number != before.count - 1 or entry.number in settled:
            continue  # only of the newest: others were told of by the commands before
        cost = entry.request.cost
        output.remark(
            f"Entry {entry.number} of {path} (epsilon {cost.epsilon:g}, delta {cost.delta:g}) is charged and was never settled: "
            f"its command is still at work, or was stopped or killed. It stays spent; gcon ledger recover {path} says whether "
            "its result is kept."
        )
    payment = DeferredLedger(ledger)
    output.payments.append(payment)
    return payment


def finish(
    output: Output,
    books: DeferredLedger,
    result: Mapping[str, object] | None = None,
    *,
    release: tuple[Model, Path] | None = None,
) -> None:
    """Write a release, if there is one, and settle. If the ledger refuses, say what that means, and go on.

    Args:
        output: is told where everything is.
        books: what was paid from.
        result: a few numbers that exist nowhere else: they are kept with the entry.
        release: a model and the folder to write it to. If it cannot be written, it is kept beside the ledger. Everything else
            is safe already.

    Raises:
        PaidResultError: the release is not there, or not surely; the message says where it is instead.
    """
    if release is not None:
        model, out = release
        try:
            save_release(model, out)
        except BaseException as problem:
            with uninterrupted():
                _keep_release(output, books, model, out)
            if isinstance(problem, OSError | GconError):
                reason = refusal(problem) if isinstance(problem, OSError) else str(problem)
                raise PaidResultError(f"out: {out} could not be written: {reason}") from None
            raise
        output.notes.append(f"The model is written: {out}.")
    if result is not None:  # a ratio of nothing to nothing is no reason to lose the rest
        result = {name: "not a number" if value != value else value for name, value in result.items()}
    with uninterrupted():
        refused, path = books.finish(result), books.ledger.path
        if refused is None:
            if result is not None:
                output.notes.append(f"The result is kept with the entry: gcon ledger show {path}.")
            return
        try:
            kept = keep(path, books.charges, out="", result=result)
            later = f"The next command that pays from it settles that, or gcon ledger recover {path}."
            if result is not None:
                output.notes.append(f"The result is kept in {kept}.")
        except (OSError, GconError):
            later = "Nothing is lost by that but the word."
        entries = ", ".join(str(charge.reservation.number) for charge in books.charges)
        output.warn(f"warning: entry {entries} stays reserved, which counts as spent: {refused} {later}")


def _keep_release(output: Output, books: DeferredLedger, model: Model, out: Path) -> None:
    path = books.ledger.path
    if not books.charges:
        return
    try:
        kept = keep(path, books.charges, out=os.path.abspath(out), model=model)
    except (OSError, GconError) as problem:
        reason = refusal(problem) if isinstance(problem, OSError) else str(problem)
        output.notes.append(f"The model could not be kept beside the ledger either, and is lost: {reason}")
        return
    output.notes.append(
        f"The model is whole, and kept in {kept}. To finish: gcon ledger recover {path} --out FOLDER, which pays nothing."
    )
