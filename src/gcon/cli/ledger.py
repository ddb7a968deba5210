"""`gcon ledger`: what was spent on a data set, whether the books are whole, and how much may ever be spent."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from gcon.cli import options
from gcon.cli.checks import check_writable
from gcon.cli.ledger_place import ledger_beside
from gcon.cli.output import Output
from gcon.errors import InputError, LedgerError, check_number
from gcon.mechanisms.composition import CONDITION, NAME, gaussian_total
from gcon.privacy.budget import Budget, round_up_digits
from gcon.privacy.ledger import LedgerEntry, Outcome
from gcon.privacy.ledger_file import FileLedger

app = typer.Typer(help="The ledger of a data set.", no_args_is_help=True)
Path_ = Annotated[Path, typer.Argument(help="The ledger file.")]


def _open(path: Path) -> FileLedger:
    beside = ledger_beside(path)
    if beside.is_file():  # the edges were named
        rule = "must be the ledger, not the edges that it is about"
        raise InputError("ledger", rule=rule, got=str(path), fix=f"Pass {beside}")
    if not path.is_file():
        raise InputError("ledger", rule="must be an existing ledger file", got=str(path), fix="gcon train makes one.")
    return FileLedger(path)


@app.command()
@options.verb
def show(
    output: Output,
    path: Path_,
    extra_delta: Annotated[float, typer.Option(help="What the tighter rule may add to delta, in (0, 1).")] = 1e-6,
) -> None:
    """All entries, the totals and the ceiling.

    The total is the sum (basic composition), and the ceiling counts that. Many small releases without a delta of their
    own cost less by Gaussian composition; where that is less, it is shown too.
    """
    books = _open(path)
    check_number(
        "extra-delta", extra_delta, allowed=lambda x: 0 < x < 1, rule="must lie in (0, 1)", fix="1e-6 is usual."
    )
    found = books.overview()
    entries, total, ceiling = found.entries, found.total, found.ceiling
    tighter = gaussian_total(entries, extra_delta=extra_delta)
    fields: dict[str, object] = {
        "data_set": books.data_set,
        "total": asdict(total) | {"composition": "basic"},
        "tighter_total": (
            asdict(tighter) | {"composition": NAME, "condition": CONDITION} if tighter.epsilon < total.epsilon else None
        ),
        "ceiling": None if ceiling is None else asdict(ceiling),
        "entries": [
            {
                "number": entry.number,
                "time": entry.time,
                "kind": entry.request.kind.value,
                "mechanism": entry.request.mechanism,
                "purpose": entry.request.purpose,
                "cost": asdict(entry.request.cost),
                "gaussian_distance": entry.request.gaussian_distance,
                "randomness": entry.request.randomness,
                "outcome": entry.outcome.value,
                "result": entry.result,
            }
            for entry in entries
        ],
    }
    lines = [
        f"{entry.number:4d}  {entry.time}  {entry.request.kind.value:16s} epsilon {entry.request.cost.epsilon:g}  "
        f"delta {entry.request.cost.delta:g}  {_outcome_in_words(entry):9s} {entry.request.purpose}{_result(entry)}"
        for entry in entries
    ]
    limit = "none" if ceiling is None else f"epsilon {ceiling.epsilon:g}, delta {ceiling.delta:g}"
    lines.append(f"spent on '{books.data_set}': {_in_words(total, 6)}; ceiling: {limit}")
    if fields["tighter_total"]:
        lines.append(f"by {NAME} composition, for {CONDITION}: {_in_words(tighter, 4)}")
    output.result(fields, "\n".join(lines))


def _in_words(total: Budget, digits: int) -> str:
    """A total, rounded up to so many digits."""
    epsilon, delta = (round_up_digits(number, digits) for number in (total.epsilon, total.delta))
    return f"epsilon {epsilon:.{digits}g}, delta {delta:.{digits}g}"


@app.command()
@options.verb
def verify(output: Output, path: Path_) -> None:
    """Check the chain of hashes. Exit code 6 if the file was changed or cut."""
    found = _open(path).verify()
    if not found.ok:
        raise LedgerError(
            f"ledger {path}: {found.problem} Restore it and its head together from a backup: what was spent stays spent."
        )
    output.result(asdict(found), f"whole: {found.lines} lines; last hash {found.last_hash}")


@app.command("set-ceiling")
@options.verb
def set_ceiling(
    output: Output,
    path: Path_,
    epsilon: Annotated[float | None, typer.Option(help="The most epsilon that may ever be spent.")] = None,
    delta: Annotated[float | None, typer.Option(help="The most delta that may ever be spent.")] = None,
    none: Annotated[bool, typer.Option("--none", help="Remove the ceiling.")] = False,
) -> None:
    """Set or remove the ceiling. What is spent already counts."""
    if none == (epsilon is not None or delta is not None) or (epsilon is None) != (delta is None):
        raise InputError(
            "--epsilon, --delta, --none",
            rule="must be the first two, or the last",
            got=f"epsilon {epsilon}, delta {delta}, none {none}",
            fix="For example --epsilon 2 --delta 1e-4",
        )
    ceiling = None if epsilon is None or delta is None else Budget(epsilon, delta)
    _open(path).set_ceiling(ceiling)
    fields: dict[str, object] = {"ceiling": None if ceiling is None else asdict(ceiling)}
    output.result(fields, "no ceiling" if ceiling is None else f"ceiling: epsilon {epsilon:g}, delta {delta:g}")


@app.command()
@options.verb
def recover(
    output: Output,
    path: Path_,
    out: Annotated[Path | None, typer.Option(help="Write the kept release to this new folder.")] = None,
    entry: Annotated[
        int | None, typer.Option(help="Which one, by the number of its entry, if several are kept.")
    ] = None,
) -> None:
    """List what was paid for and could not be put in its place, and finish it. Pays nothing.

    Without --out: lists what is kept, and settles entries whose result was handed out. With --out: writes the kept release there.
    Example: gcon ledger recover edges.csv.ledger --out model
    """
    from gcon.release.recovery import finish_kept, kept_results, settle_kept  # with torch: seconds

    books = _open(path)
    settled = settle_kept(books)
    kept = [each for each in kept_results(books.path) if each.release is not None]
    lines = [f"Settled: entry {number}." for number in settled]
    if out is not None:
        chosen = [each for each in kept if entry is None or entry in dict(each.entries)]
        if len(chosen) != 1:
            rule = "must say which of the kept results to write"
            known = ", ".join(str(each.entries[0][0]) for each in kept) or "none"
            raise InputError("entry", rule=rule, got=f"{entry} where these are kept: {known}", fix="Pass --entry N.")
        check_writable(out)
        finish_kept(books, chosen[0], out)
        kept.remove(chosen[0])
        lines.append(f"Written: {out}")
    for each in kept:
        lines.append(f"Kept: the release of entry {each.entries[0][0]}, which was to be {each.out}, in {each.folder}")
    whole, lost = {number for each in kept for number, _ in each.entries}, list[int]()
    with suppress(LedgerError):  # a damaged ledger is no reason to keep back what is kept
        lost += [each.number for each in books.overview(history=False).unsettled if each.number not in whole]
    if lost:
        lines.append(
            f"Charged, not settled, and nothing is kept of it: entry {', '.join(map(str, lost))}. A command that is still at "
            "work, or that was stopped or killed before its result was whole, leaves it so. That stays spent. If it was killed "
            "while it wrote, a hidden folder .NAME.*.new beside its --out may hold the whole model: `gcon statement FOLDER "
            "--verify` tells, and then it may be renamed."
        )
    fields: dict[str, object] = {
        "settled": settled,
        "written": None if out is None else str(out),
        "kept": [{"entry": each.entries[0][0], "out": each.out, "folder": str(each.folder)} for each in kept],
        "lost": lost,
    }
    output.result(fields, "\n".join(lines) or "Nothing is kept.")


def _result(entry: LedgerEntry) -> str:
    if entry.result is None:
        return ""
    return " -> " + ", ".join(f"{name} {value}" for name, value in entry.result.items())


def _outcome_in_words(entry: LedgerEntry) -> str:
    return "withdrawn, not charged" if entry.outcome is Outcome.WITHDRAWN else entry.outcome.value
