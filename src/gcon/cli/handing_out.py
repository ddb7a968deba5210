"""What was paid for reaches the user, or is kept beside the ledger; only then is the ledger told that it was released."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from gcon.cli.output import Output, refusal
from gcon.errors import GconError, PaidResultError
from gcon.methods.model import Model
from gcon.privacy.deferred_ledger import DeferredLedger
from gcon.release.recovery import keep
from gcon.release.store import save_release
from gcon.writing import uninterrupted


def hand_out_release(output: Output, books: DeferredLedger, model: Model, out: Path) -> None:
    """Write a release folder and settle; if it cannot be written, keep the model beside the ledger.

    Raises:
        PaidResultError: it is not there, or not surely; the message says where it is instead.
    """
    try:
        save_release(model, out)
    except BaseException as problem:
        with uninterrupted():
            _keep_release(output, books, model, out)
        if isinstance(problem, OSError):
            raise PaidResultError(f"out: {out} could not be written: {refusal(problem)}") from None
        if isinstance(problem, GconError):
            raise PaidResultError(f"out: {out} could not be written: {problem}") from None
        raise
    output.notes.append(f"The model is written: {out}.")
    finish(output, books)


def finish(output: Output, books: DeferredLedger, result: Mapping[str, object] | None = None) -> None:
    """The result is safe, or is the few numbers given, which exist nowhere else and are kept with the entry: settle.

    If the ledger refuses, say what that means, and go on.
    """
    if result is not None:  # a ratio of nothing to nothing is no reason to lose the rest
        result = {name: "not a number" if value != value else value for name, value in result.items()}
    with uninterrupted():
        problem, path = books.finish(result), books.ledger.path
        if problem is None:
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
        entries = ", ".join(str(charge.entry.number) for charge in books.charges)
        output.warn(f"warning: entry {entries} stays reserved, which counts as spent: {problem} {later}")


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
