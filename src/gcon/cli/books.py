"""The ledger of the data that a verb reads: opened, compared with what lies near it, and ready to pay from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from gcon.cli.ledger_place import ledger_beside, state_folder, warn_of_copies
from gcon.cli.output import Output
from gcon.cli.source import GraphSource
from gcon.errors import InputError
from gcon.files.datasets import facts_of
from gcon.privacy.deferred_ledger import DeferredLedger
from gcon.privacy.ledger_file import FileLedger
from gcon.release.recovery import recovery_folder, settle_kept

MOST_FOLDERS, MOST_BYTES = 200, 2**20  # looked at; a release's settings are smaller


def open_payment(
    where: GraphSource, output: Output, *, near: Path | None = None, name: str | None = None
) -> DeferredLedger:
    """The ledger of the data, to pay from: however the verb ends, its output says what was charged.

    Args:
        where: the data.
        output: warns if releases beside the edges, the ledger or `near` know of more spending than the ledger.
        near: a further folder to look for releases in.
        name: what the owner calls the data; a new ledger takes it, an old one must have it already.
    """
    ledger = open_ledger(where, name=name)
    if where.edges is not None:
        usual, places = None, [where.edges.parent, ledger.path.parent]
        with suppress(InputError):  # what these edges were converted with is gone, and another ledger was named
            usual = ledger_beside(where.edges)
        for words in missing_spending(ledger, usual=usual, places=places if near is None else [*places, near]):
            output.warn(f"warning: {words}")
    if recovery_folder(ledger.path).exists() and (settled := settle_kept(ledger)):
        numbers = ", ".join(map(str, settled))
        output.remark(f"Settled in {ledger.path} what an earlier command could not: entries {numbers}.")
    payment = DeferredLedger(ledger)
    output.payments.append(payment)
    return payment


def open_ledger(where: GraphSource, *, name: str | None = None) -> FileLedger:
    """The ledger of the data: the one that was named, or the one beside it. An existing one keeps its own name."""
    if where.source is not None:
        usual_name = facts_of(where.source).name
        target = where.ledger or state_folder() / f"{usual_name}.ledger"
    elif where.edges is not None:
        usual_name, target = where.edges.stem, where.ledger or ledger_beside(where.edges)
    else:
        raise InputError("--edges", rule="is needed for a ledger", got="nothing", fix="Pass the edges file.")
    if where.ledger is None:
        target.parent.mkdir(parents=True, exist_ok=True)
    if where.edges is not None:
        warn_of_copies(where.edges, target)
    books = FileLedger(target, data_set=None if target.exists() else name or usual_name)
    if name not in (None, books.data_set):
        rule = f"must be the name in the ledger {target.name}, {books.data_set!a}, which it got when it was made"
        fix = "Leave it out; gcon report and gcon site take a --name of their own."
        raise InputError("--name", rule=rule, got=f"{name!a}", fix=fix)
    return books


def missing_spending(ledger: FileLedger, *, usual: Path | None, places: Iterable[Path]) -> Iterator[str]:
    """Who near the edges knows of more spending than the ledger does, in words: it may be new, an older one, or not theirs.

    Args:
        ledger: that is paid from.
        usual: where the ledger of these edges lies if none is named; None if that place is gone.
        places: folders in which releases of the same edges may lie.
    """
    path, spent = ledger.path, ledger.total()
    if usual is not None and usual.exists() and usual.resolve() != path:
        yield f"These edges have a ledger, {usual}, and {path} is paid from instead. What was spent there is not counted here."
    if spent.epsilon == 0 and recovery_folder(path).exists():
        yield f"{recovery_folder(path)} holds results that were paid for, but the ledger {path} knows of no spending."
    found: set[Path] = set()
    for place in places:
        with suppress(OSError):
            found.update(islice(place.resolve().glob("*/release.json"), MOST_FOLDERS))
    for release in sorted(found):
        with suppress(OSError, ValueError, RecursionError, TypeError, KeyError):
            with release.open("rb") as file:
                receipt: Any = json.loads(file.read(MOST_BYTES))["receipt"]
            total = float(receipt["total"]["epsilon"])
            if receipt["data_set"] == ledger.data_set and total > spent.epsilon:
                yield (
                    f"The release {release.parent} says that epsilon {total:g} was spent on '{ledger.data_set}' by then, but the "
                    f"ledger {path} knows of {spent.epsilon:g}. If it is about the same edges, restore their ledger: what was "
                    "spent stays spent."
                )
