"""A ledger in an append-only file that is kept with the private data, not with the model.

| file          | what it is                                                                                    |
|---------------|-----------------------------------------------------------------------------------------------|
| `<path>`      | the ledger, one record per line, chained by hashes (`ledger_lines`)                             |
| `<path>.head` | how many lines there are and the hash of the last; shows when lines at the end were cut off   |
| `<path>.lock` | held while somebody reads or writes; it may stay, and must not be removed while runs are on   |
| `<path>.torn` | lines whose writer died in the middle; they were never acknowledged, so nothing was opened    |

An entry is acknowledged when its line is on the disk and the head after it. A crash before leaves an unfinished line,
which the next writer moves to `<path>.torn`; a crash in between leaves a head one line behind, which the next writer
brings level: that entry stays charged. Both files are needed to restore a ledger from a backup. Whoever may write both
can put back an older pair; keep a copy of the head elsewhere if that must be noticed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import final

from gcon.errors import InputError, LedgerError
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import LedgerEntry, Outcome, Request, Reservation, check_ceiling, check_withdrawal, total_cost
from gcon.privacy.ledger_lines import (
    Chain,
    Reading,
    check_words,
    data_set_name,
    header,
    read_ledger,
    render_head,
    write_budget,
    write_request,
)

try:
    import fcntl
except ImportError:  # not a Unix
    fcntl = None  # type: ignore[assignment]


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What `FileLedger.verify` found.

    Attributes:
        ok: every line is as it was written, and none is missing.
        lines: how many good lines there are (before the first bad one, if there is one).
        problem: None, or what is wrong, in words.
        line_number: the line it is about, counted from 1, if it is about one.
        unfinished: a last line that was never acknowledged follows; harmless, the next entry clears it away.
        last_hash: the hash of the last good line; note it elsewhere to notice an older ledger put back.
    """

    ok: bool
    lines: int
    problem: str | None
    line_number: int | None
    unfinished: bool
    last_hash: str


def _now() -> datetime:
    return datetime.now(UTC)


@final
class FileLedger:
    """A ledger for one data set, in a file; any number of processes may pay it at once.

    Totals are by basic composition. Every reserve reads and checks the whole file again, under a lock.

    Args:
        path: the file, in a folder that exists. A new one is readable by its owner only.
        data_set: the owner's name for the data, 1 to 200 characters. A new ledger needs it; for a ledger that exists
            it may be left out, or must be the same.
        clock: gives the time of an entry.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = FileLedger(folder.name + "/friendships.ledger", data_set="friendships")
        >>> ledger.set_ceiling(Budget(2.0, 1e-5))
        >>> ledger.total(), ledger.verify().ok
        (Budget(epsilon=0.0, delta=0.0), True)
        >>> folder.cleanup()

    Privacy:
        Holds public numbers and words, and for each release whether it was withheld, which may depend on edges: the
        file is for the operator. A run that dies between `reserve` and `settle` stays charged.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, data_set: str | None = None, clock: Callable[[], datetime] = _now
    ) -> None:
        if fcntl is None:
            raise LedgerError("A file ledger needs file locks (fcntl), which this system lacks. Use Linux or macOS.")
        self._path, self._clock = _checked_path(path), clock
        self._withdrawals: dict[int, object] = {}  # of reservations that this object made and that are not settled
        if data_set is not None:
            check_words("data_set", data_set)
        if self._is_new():
            if data_set is None:
                rule, fix = "must be given for a new ledger", "Name the data, or check the path of its ledger."
                raise InputError("data_set", rule=rule, got=f"None, and no ledger at {self._path}", fix=fix)
            self._create(data_set)
        self._data_set = self._read_name()
        if data_set not in (None, self._data_set):
            rule = f"must be the name in the ledger {self._path}, {self._data_set!a}"
            raise InputError("data_set", rule=rule, got=f"{data_set!a}", fix="Each data set has a ledger of its own.")

    @property
    def data_set(self) -> str:
        """The owner's name for the data."""
        return self._data_set

    def reserve(self, request: Request) -> Reservation:
        """Charge a request, or raise `BudgetExceededError` and charge nothing.

        `LedgerError`: the file was tampered with, or could not be written. If only the head could not be written, the
        request stays charged although it was refused; never the other way round.
        """
        fields = write_request(request)
        with self._locked(write=True):
            reading = self._read()
            chain = reading.chain
            check_ceiling(chain.ceiling, spent=total_cost(chain.entries), asked=request.cost)
            number = len(chain.entries)
            self._append(reading, {"line": "reserve", "number": number, "time": self._time(), "request": fields})
            # The line's hash: no other ledger takes it for its own.
            reservation = Reservation(number, chain.hashes[-1], object())
            self._withdrawals[number] = reservation.withdrawal
            return reservation

    def settle(self, reservation: Reservation, outcome: Outcome) -> LedgerEntry:
        """Say what became of a reservation, once. The line's time is the reservation's, so it shows no run time."""
        if outcome is Outcome.RESERVED:
            raise LedgerError("A reservation is settled as released, withheld or withdrawn.")
        with self._locked(write=True):
            reading = self._read()
            chain, number = reading.chain, reservation.number
            if not chain.made(number, reservation.ledger):
                raise LedgerError("This reservation was not made in this ledger.")
            if chain.entries[number].outcome is not Outcome.RESERVED:
                raise LedgerError("This reservation is settled already; reserve again for another release.")
            check_withdrawal(chain.entries[number], outcome, reservation, self._withdrawals.pop(number, None))
            time = chain.entries[number].time
            self._append(reading, {"line": "settle", "number": number, "time": time, "outcome": str(outcome)})
            return chain.entries[number]

    def set_ceiling(self, ceiling: Budget | None) -> None:
        """Set the most that may ever be spent; None means no limit. For the data's owner."""
        if not isinstance(ceiling, Budget | None):
            rule, fix = "must be a Budget or None", "For example Budget(2.0, 1e-5)."
            raise InputError("ceiling", rule=rule, got=f"a {type(ceiling).__name__}", fix=fix)
        fields = None if ceiling is None else write_budget(ceiling)
        with self._locked(write=True):
            self._append(self._read(), {"line": "ceiling", "time": self._time(), "ceiling": fields})

    def ceiling(self) -> Budget | None:
        """The most that may ever be spent; None means no limit."""
        with self._locked(write=False):
            return self._read().chain.ceiling

    def entries(self) -> Sequence[LedgerEntry]:
        """All entries so far, oldest first; raises `LedgerError` if the file was tampered with."""
        with self._locked(write=False):
            return tuple(self._read().chain.entries)

    def total(self) -> Budget:
        """Everything charged so far, by basic composition."""
        return total_cost(self.entries())

    def verify(self) -> Verification:
        """Check every line and the head, and say what was found. Changes nothing."""
        with self._locked(write=False):
            reading = self._examine()
        return Verification(
            ok=reading.problem is None,
            lines=reading.chain.count,
            problem=reading.problem,
            line_number=reading.line_number,
            unfinished=bool(reading.unfinished),
            last_hash=reading.chain.hashes[-1],
        )

    def __repr__(self) -> str:
        return f"FileLedger({str(self._path)!r}, data_set={self._data_set!r})"

    def __sklearn_clone__(self) -> FileLedger:
        """Clones of an estimator pay the same ledger: it belongs to the data, not to the model."""
        return self

    def __reduce__(self) -> tuple[type[FileLedger], tuple[str]]:
        """Copies and pickles hold the path alone. The file is the state, so all copies pay the same account."""
        return FileLedger, (str(self._path),)

    def _time(self) -> str:
        return self._clock().isoformat(timespec="seconds")

    def _beside(self, ending: str) -> Path:
        return self._path.with_name(self._path.name + ending)

    @contextmanager
    def _locked(self, *, write: bool) -> Iterator[None]:
        with self._refusals("write" if write else "read"), _lock(self._beside(".lock"), write=write):
            yield

    @contextmanager
    def _refusals(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise LedgerError(
                f"ledger {self._path}: the system refused to {what} it ({error.strerror}). "
                "Without the ledger nothing may be opened. Check permissions and free space in its folder."
            ) from error

    def _is_new(self) -> bool:
        written = os.path.exists(self._path) and os.path.getsize(self._path) > 0
        return not written and not os.path.exists(self._beside(".head"))

    def _create(self, data_set: str) -> None:
        with self._locked(write=True):
            if self._is_new():
                chain = Chain()
                line = chain.render(header(data_set, self._time()))
                chain.add(line)
                _replace(self._path, line)  # whole or not at all: no other file is ever taken for half a ledger
                _replace(self._beside(".head"), render_head(chain))

    def _read_name(self) -> str:
        # Needs no lock: the first line is written whole and never changes. What is no ledger gets no lock file beside it.
        with self._refusals("read"):
            data = _bytes(self._path)
        if not data:
            raise self._tampered("it is empty or gone, but was written before.")
        try:
            return data_set_name(data)
        except LedgerError as error:
            raise LedgerError(f"ledger {self._path}: its first line {error}.") from None

    def _examine(self) -> Reading:
        reading = read_ledger(_bytes(self._path) or b"", _bytes(self._beside(".head")))
        if reading.problem is None and reading.chain.data_set != self._data_set:
            return replace(reading, problem="it is the ledger of another data set now.", line_number=1)
        return reading

    def _read(self) -> Reading:
        reading = self._examine()
        if reading.problem is not None:
            raise self._tampered(reading.problem)
        return reading

    def _tampered(self, problem: str) -> LedgerError:
        return LedgerError(
            f"ledger {self._path}: {problem} It was changed from outside and takes no entries like this. Restore it "
            f"and {self._beside('.head').name} together from a backup, and check with verify(). Do not start a new "
            "ledger: what was spent stays spent."
        )

    def _append(self, reading: Reading, content: Mapping[str, object]) -> None:
        chain, head = reading.chain, self._beside(".head")
        with _opened(self._path, os.O_WRONLY | os.O_APPEND) as descriptor:
            if reading.unfinished:
                with _opened(self._beside(".torn"), os.O_WRONLY | os.O_APPEND | os.O_CREAT) as torn:
                    _write(torn, reading.unfinished.removesuffix(b"\n") + b"\n")
                os.ftruncate(descriptor, reading.size)
            if reading.head_is_behind:
                _replace(head, render_head(chain))
            line = chain.render(content)
            chain.add(line)  # what is written can be read back
            try:
                _write(descriptor, line)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(descriptor, reading.size)
                raise
        _replace(head, render_head(chain))


def _checked_path(path: str | os.PathLike[str]) -> Path:
    """The path without links, so that all its names share one lock."""
    rule, fix = "must be a file in a folder that exists", "Put it next to the private data."
    try:
        checked = Path(path).resolve()
    except (TypeError, ValueError, OSError, RuntimeError):
        raise InputError("path", rule=rule, got=repr(path), fix=fix) from None
    if not checked.parent.is_dir():
        raise InputError("path", rule=rule, got=f"{checked}, whose folder does not exist", fix="Make the folder first.")
    if os.path.exists(checked) and not os.path.isfile(checked):
        raise InputError("path", rule=rule, got=f"{checked}, which is not a file", fix=fix)
    return checked


@contextmanager
def _lock(path: Path, *, write: bool) -> Iterator[None]:
    while True:
        with _opened(path, (os.O_RDWR if write else os.O_RDONLY) | os.O_CREAT) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX if write else fcntl.LOCK_SH)
            if not os.fstat(descriptor).st_nlink:
                continue  # somebody removed the lock file while we waited: take the new one
            try:
                yield
            finally:
                fcntl.flock(descriptor, fcntl.LOCK_UN)  # also where a forked process inherited the descriptor
            return


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
    os.fsync(descriptor)


def _replace(path: Path, data: bytes) -> None:
    """Write a whole file or nothing, and see it to the disk."""
    new = path.with_name(path.name + ".new")
    with _opened(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as descriptor:
        _write(descriptor, data)
    os.replace(new, path)
    with _opened(path.parent, os.O_RDONLY) as folder:
        os.fsync(folder)


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
