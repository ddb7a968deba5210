"""A ledger in an append-only file that is kept with the private data, not with the model.

| file          | what it is                                                                                    |
|---------------|-----------------------------------------------------------------------------------------------|
| `<path>`      | the ledger, one record per line, chained by hashes (`ledger_lines`)                             |
| `<path>.head` | how many lines there are and the hash of the last; shows when lines at the end were cut off   |
| `<path>.lock` | held while somebody reads or writes; it may stay, and must not be removed while runs are on   |
| `<path>.torn` | lines whose writer died in the middle; they were never acknowledged, so nothing was opened    |
| `<path>.checkpoint` | of a long ledger: what its first lines say (`ledger_lines`); it may be removed      |

Both files are needed to restore a ledger from a backup. Whoever may write both can put back an older pair; keep a copy of the
head elsewhere if that must be noticed.

An entry is acknowledged when its line is on the disk and the head after it. A crash at any moment leaves a ledger that says what
was opened:

| the writer dies                  | what is found                                             | the next writer               |
|----------------------------------|-----------------------------------------------------------|-------------------------------|
| while it writes the line         | an unfinished line: not acknowledged, nothing was opened  | moves it to `<path>.torn`     |
| before it has written the head   | a head one line behind: the entry is there, and charged   | brings the head level         |
| before it has written more       | no new checkpoint                                         | writes one                    |
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Final, final

from gcon.errors import GconError, InputError, LedgerError, LedgerRefusedError
from gcon.privacy.budget import NOTHING, Budget
from gcon.privacy.ledger import LedgerEntry, Outcome, Request, Reservation, check_settlement
from gcon.privacy.ledger_lines import (
    CHECKPOINT_EVERY,
    FORMAT,
    HEAD_OF,
    VERSION,
    Chain,
    Reading,
    Verification,
    check_words,
    read_ledger,
    render_checkpoint,
    write_request,
    write_value,
)
from gcon.writing import sync_folder, uninterrupted

HEAD, TORN, CHECKPOINT = ".head", ".torn", ".checkpoint"  # endings of the files beside the ledger
_LONGEST_HEADER = 2**16

try:
    import fcntl
except ImportError:  # not a Unix
    fcntl = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Overview:
    """What a ledger says.

    Attributes:
        entries: all of them, oldest first.
        total: everything charged so far, by basic composition.
        ceiling: the most that may ever be spent; None means no limit.
        unsettled: the entries that are charged and not settled: their runs are still at work, or were stopped or killed.
        count: how many entries there are.
    """

    entries: Sequence[LedgerEntry]
    total: Budget
    ceiling: Budget | None
    unsettled: Sequence[LedgerEntry]
    count: int


@final
class FileLedger:
    """A ledger for one data set, in a file; any number of processes may pay it at once.

    Totals are by basic composition. Every reserve checks the whole file again, under a lock: the lines since the last
    checkpoint one by one, those before it by their checksum.

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

    counted: Final = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        data_set: str | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        if fcntl is None:
            raise LedgerError("A file ledger needs file locks (fcntl), which this system lacks. Use Linux or macOS.")
        rule, fix = "must be a file in a folder that exists", "Put it next to the private data."
        try:
            self.path: Final = Path(path).resolve()  # without links, so that all its names share one lock
        except (TypeError, ValueError, OSError, RuntimeError):
            raise InputError("path", rule=rule, got=repr(path), fix=fix) from None
        if not self.path.parent.is_dir():
            got, fix = f"{self.path}, whose folder does not exist", "Make the folder first."
            raise InputError("path", rule=rule, got=got, fix=fix)
        if os.path.exists(self.path) and not os.path.isfile(self.path):
            raise InputError("path", rule=rule, got=f"{self.path}, which is not a file", fix=fix)
        if data_set is not None:
            check_words("data_set", data_set)
        self._head, self._lock, self._checkpoint = (
            self.path.with_name(self.path.name + ending) for ending in (HEAD, ".lock", CHECKPOINT)
        )
        self._clock = clock or partial(datetime.now, UTC)
        self._withdrawals: dict[int, object] = {}  # of reservations that this object made and that are not settled
        self.newest: Reservation | None = None  # that this object made

        def missing() -> bool:
            written = os.path.exists(self.path) and os.path.getsize(self.path) > 0
            return not written and not os.path.exists(self._head)

        if missing():
            if data_set is None:
                rule, fix = "must be given for a new ledger", "Name the data, or check the path of its ledger."
                raise InputError("data_set", rule=rule, got=f"None, and no ledger at {self.path}", fix=fix)
            self.data_set = data_set
            with self._locked(write=True, refuse=False):
                if missing():  # look again: somebody may have been faster
                    chain, created = Chain(), self._clock().isoformat(timespec="seconds")
                    header = {"line": "header", "format": FORMAT, "version": VERSION, "data_set": data_set}
                    line = chain.render({**header, "created": created})
                    chain.add(line)
                    replace_file(self.path, line)  # whole or not at all: no other file is ever taken for half a ledger
                    replace_file(self._head, HEAD_OF.format(chain).encode())
        # Reading needs no lock: the first line is written whole and never changes. What is no ledger gets no lock file.
        try:
            with self.path.open("rb") as file:
                first = file.readline(_LONGEST_HEADER)
        except FileNotFoundError:
            first = b""
        except OSError as error:
            raise self._refused("read", error) from error
        if not first:
            raise self._tampered("it is empty or gone, but was written before.")
        chain = Chain()
        try:
            chain.add(first)
        except LedgerError as error:
            if not chain.data_set:  # else it is a ledger, and what is wrong with its first line is told by every use
                raise LedgerError(f"ledger {self.path}: its first line {error}.") from None
        self.data_set = chain.data_set
        if data_set not in (None, self.data_set):
            rule = f"must be the name in the ledger {self.path}, {self.data_set!a}"
            raise InputError("data_set", rule=rule, got=f"{data_set!a}", fix="Each data set has a ledger of its own.")

    def reserve(self, request: Request) -> Reservation:
        """Charge a request, or raise `BudgetExceededError` and charge nothing.

        `LedgerError`: the file was tampered with, or could not be written. If only the head could not be written, the
        request stays charged although it was refused; never the other way round.
        """
        fields = write_request(request)
        with self._locked(write=True) as reading:
            chain = reading.chain
            replace(chain.spent).add(request.cost, ceiling=chain.ceiling)  # to a copy: the line itself adds it
            number, time = chain.entries, self._clock().isoformat(timespec="seconds")
            with uninterrupted():  # so that whoever is interrupted here knows whether there is an entry
                try:
                    append_line(
                        self.path, reading, {"line": "reserve", "number": number, "time": time, "request": fields}
                    )
                except LineStaysError as error:
                    counts = "is charged" if request.cost != NOTHING else "costs nothing"
                    raise self._refused(
                        "write", error, f"Entry {number} may stand in it, and {counts} then."
                    ) from error
                # The line's hash: no other ledger takes it for its own.
                reservation = Reservation(number, chain.last_hash, object(), time, chain.spent.rounded)
                self._withdrawals[number] = reservation.withdrawal
                self.newest = reservation
            return reservation

    def check(self, request: Request) -> None:
        """Raise what `reserve` would raise now (the ceiling, a changed file, no permission), and charge nothing."""
        write_request(request)
        with self._locked(write=True) as reading:
            chain = reading.chain
            replace(chain.spent).add(request.cost, ceiling=chain.ceiling)  # to a copy
            os.close(os.open(self.path, os.O_WRONLY | os.O_APPEND))

    def settle(self, reservation: Reservation, outcome: Outcome, *, result: Mapping[str, object] | None = None) -> None:
        """Say what became of a reservation, once. The line's time is the reservation's, so it shows no run time.

        Args:
            reservation: what `reserve` gave.
            outcome: what became of it.
            result: a few released numbers, public by then, that exist nowhere else.
        """
        kept = {} if result is None else {"result": write_value(result)}
        with self._locked(write=True) as reading:
            chain, number = reading.chain, reservation.number
            if 0 <= number < chain.entries and number not in chain.open:
                raise LedgerError("This reservation is settled already; reserve again for another release.")
            entry, made = chain.open.get(number, (None, None))
            if entry is None or made != reservation.ledger:
                raise LedgerError("This reservation was not made in this ledger.")
            check_settlement(entry, outcome, reservation, self._withdrawals)
            time = entry.time
            append_line(
                self.path, reading, {"line": "settle", "number": number, "time": time, "outcome": str(outcome), **kept}
            )

    def set_ceiling(self, ceiling: Budget | None) -> None:
        """Set the most that may ever be spent; None means no limit. For the data's owner."""
        if not isinstance(ceiling, Budget | None):
            rule, fix = "must be a Budget or None", "For example Budget(2.0, 1e-5)."
            raise InputError("ceiling", rule=rule, got=f"a {type(ceiling).__name__}", fix=fix)
        fields = None
        if ceiling is not None:
            fields = {"epsilon": write_value(float(ceiling.epsilon)), "delta": float(ceiling.delta)}
        with self._locked(write=True) as reading:
            time = self._clock().isoformat(timespec="seconds")
            append_line(self.path, reading, {"line": "ceiling", "time": time, "ceiling": fields})

    def ceiling(self) -> Budget | None:
        """The most that may ever be spent; None means no limit."""
        return self.overview(history=False).ceiling

    def entries(self) -> Sequence[LedgerEntry]:
        """All entries so far, oldest first; raises `LedgerError` if the file was tampered with."""
        return self.overview().entries

    def overview(self, *, history: bool = True) -> Overview:
        """What the ledger says, from one reading.

        Args:
            history: with all entries, for which every line is read; else with none.
        """
        with self._locked(history=history) as reading:
            chain = reading.chain
        charged = tuple(entry for entry, _ in chain.open.values() if entry.request.cost != NOTHING)
        return Overview(tuple(chain.history or ()), chain.spent.rounded, chain.ceiling, charged, chain.entries)

    def total(self) -> Budget:
        """Everything charged so far, by basic composition."""
        return self.overview(history=False).total

    def verify(self) -> Verification:
        """Check every line and the head, and say what was found. Changes nothing."""
        with self._locked(history=True, refuse=False) as reading:
            return Verification(
                ok=reading.problem is None,
                lines=reading.chain.lines,
                problem=reading.problem,
                line_number=reading.line_number,
                unfinished=bool(reading.unfinished),
                last_hash=reading.chain.last_hash,
            )

    def __repr__(self) -> str:
        try:  # without waiting: a debugger may show a ledger that is being written
            with self._locked(wait=False) as reading:
                books = f"spent={reading.chain.spent.rounded}, ceiling={reading.chain.ceiling}"
        except (GconError, OSError):
            books = "which cannot be read now"
        return f"FileLedger({str(self.path)!r}, data_set={self.data_set!r}, {books})"

    def __sklearn_clone__(self) -> FileLedger:
        """Clones of an estimator pay the same ledger: it belongs to the data, not to the model."""
        return self

    def __reduce__(self) -> tuple[type[FileLedger], tuple[str]]:
        """Copies and pickles hold the path alone. The file is the state, so all copies pay the same account."""
        return FileLedger, (str(self.path),)

    @contextmanager
    def _locked(
        self, *, write: bool = False, wait: bool = True, history: bool = False, refuse: bool = True
    ) -> Iterator[Reading]:
        """Hold the lock, and read the files under it. What the system refuses is told as a `LedgerError`.

        Args:
            write: nobody else reads or writes meanwhile.
            wait: for the lock; else a lock that somebody holds, or that is not there, is refused.
            history: every line is taken apart, and the checkpoint compared with them.
            refuse: files that were tampered with, unless somebody only looks.
        """
        flags, kind = (os.O_RDWR, fcntl.LOCK_EX) if write else (os.O_RDONLY, fcntl.LOCK_SH)
        flags, kind = (flags | os.O_CREAT, kind) if wait else (flags, kind | fcntl.LOCK_NB)
        try:
            while True:
                with os.fdopen(os.open(self._lock, flags, 0o600), "rb", 0) as lock:
                    fcntl.flock(lock, kind)
                    if not os.fstat(lock.fileno()).st_nlink:
                        continue  # somebody removed the lock file while we waited: take the new one
                    try:
                        data, head, checkpoint = b"", None, b""
                        with suppress(FileNotFoundError):
                            data = self.path.read_bytes()
                        with suppress(FileNotFoundError):
                            head = self._head.read_bytes()
                        with suppress(OSError):  # without it, all lines are read
                            checkpoint = self._checkpoint.read_bytes()
                        reading = read_ledger(data, head, checkpoint, history=history)
                        if reading.problem is None and reading.chain.data_set != self.data_set:
                            problem = "it is the ledger of another data set now."
                            reading = replace(reading, problem=problem, line_number=1)
                        if refuse and reading.problem is not None:
                            raise self._tampered(reading.problem)
                        yield reading
                    finally:
                        fcntl.flock(lock, fcntl.LOCK_UN)  # also where a forked process inherited the descriptor
                    return
        except OSError as error:
            raise self._refused("write" if write else "read", error) from error

    def _refused(self, what: str, error: OSError, more: str = "") -> LedgerRefusedError:
        said = f"ledger {self.path}: the system refused to {what} it ({error.strerror})."
        fix = "Check permissions and free space in its folder."
        return LedgerRefusedError(" ".join(filter(None, (said, more, fix))), charged="is charged" in more)

    def _tampered(self, problem: str) -> LedgerError:
        return LedgerError(
            f"ledger {self.path}: {problem} It was changed from outside and takes no entries like this. Restore it "
            f"and {self._head.name} together from a backup, and check with verify(). Do not start a new "
            "ledger: what was spent stays spent."
        )


class LineStaysError(OSError):
    """The system refused after a line was written, which the next reader may find."""


def append_line(path: Path, reading: Reading, content: Mapping[str, object]) -> None:
    """Add a line to what was read, and then write the head; `LineStaysError` if only the head could not be written.

    Whoever calls holds the lock, and has just read the files.
    """
    chain, head = reading.chain, path.with_name(path.name + HEAD)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND), "wb", 0) as file:
        if reading.unfinished:
            beside = os.open(path.with_name(path.name + TORN), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(beside, "wb", 0) as torn:
                _write(torn, reading.unfinished.removesuffix(b"\n") + b"\n")
            os.ftruncate(file.fileno(), len(reading.good))
        if reading.head_is_behind:
            replace_file(head, HEAD_OF.format(chain).encode())
        line = chain.render(content)
        chain.add(line)  # what is written can be read back
        try:
            _write(file, line)
        except OSError as error:
            try:
                os.ftruncate(file.fileno(), len(reading.good))
            except OSError:
                raise LineStaysError(error.errno, error.strerror) from error
            raise
    try:
        replace_file(head, HEAD_OF.format(chain).encode())
    except OSError as error:
        raise LineStaysError(error.errno, error.strerror) from error
    if reading.taken_apart >= CHECKPOINT_EVERY:
        with suppress(OSError):  # nothing is lost but time
            replace_file(path.with_name(path.name + CHECKPOINT), render_checkpoint(chain, reading.good + line))


def replace_file(path: Path, data: bytes) -> None:
    """Write a whole file or nothing, and see it to the disk."""
    new = path.with_name(path.name + ".new")
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb", 0) as file:
            _write(file, data)
        os.replace(new, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(new)
        raise
    sync_folder(path.parent)


def _write(file: FileIO, data: bytes) -> None:
    while data:
        data = data[os.write(file.fileno(), data) :]
    os.fsync(file.fileno())
