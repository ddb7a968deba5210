"""What a verb prints, and with which exit code it ends.

With `--json`, standard output is exactly one JSON object, also when something goes wrong. People's words go to standard
output, progress and warnings to standard error. Nothing ever prompts. However a verb ends, an error says what was charged.

| exit code | meaning                                                             |
|-----------|---------------------------------------------------------------------|
| 0         | done                                                                |
| 1         | something we did not foresee                                        |
| 2         | bad input: a parameter or a file breaks its rule                    |
| 3         | the ledger's ceiling refuses                                        |
| 4         | no certificate: nothing was released, the budget stays charged      |
| 5         | this access is not promised for this graph                          |
| 6         | the ledger or a release folder is damaged or of another format      |
| 7         | a computation on private values failed; details are withheld        |
| 8         | an optional dependency is missing                                   |
| 9         | budget was spent, and the result is not where it was asked for      |
| 10        | the system refused (disk, memory, a closed pipe): nothing was spent |

Stopped by a signal, it is 128 and the signal's number: 130 for Ctrl-C, 143 for SIGTERM.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, NoReturn, cast

import typer
from rich.console import Console

from gcon import errors
from gcon.cli import handlers
from gcon.writing import STOPS

if TYPE_CHECKING:
    from gcon.privacy.deferred_ledger import DeferredLedger

PAID, REFUSED = 9, 10
EXIT_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (errors.BudgetExceededError, 3),
    (errors.NoCertificateError, 4),
    (errors.AccessRefusedError, 5),
    (errors.LedgerRefusedError, REFUSED),
    (errors.LedgerError, 6),
    (errors.ReleaseFormatError, 6),
    (errors.PrivateComputationError, 7),
    (errors.MissingExtraError, 8),
    (errors.PaidResultError, 9),
    (errors.GconError, 2),
)
NO_MEMORY = "out of memory. Use a machine with more of it, or an edge store (gcon data convert --format csr)."


class StoppedError(KeyboardInterrupt):
    """A signal asks to end."""


@dataclass(frozen=True, kw_only=True)
class Output:
    """Where one verb writes.

    Attributes:
        progress: what happens, for people who wait.
        payments: the ledgers that the verb pays from: an error says what they were charged.
        notes: what else an error must say: where a result is kept, for instance.
        stopped: the signals that asked to end.
        gone: why standard output takes no more.
    """

    as_json: bool
    quiet: bool
    progress: Console
    payments: list[DeferredLedger] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stopped: list[int] = field(default_factory=list)
    gone: list[OSError] = field(default_factory=list)

    def result(self, fields: Mapping[str, object], text: str) -> None:
        """The result: one strict JSON object, in which infinity is a string; or words."""
        if self.quiet and not self.as_json:
            return
        words = json.dumps(plain(fields), allow_nan=False, indent=2) if self.as_json else text
        try:  # seen through: what Python writes when it ends fails without a word
            sys.stdout.write(f"{words}\n")
            sys.stdout.flush()
        except OSError as error:
            self.refused(error)
            raise

    def refused(self, error: OSError) -> None:
        """Standard output is gone: nothing more is written there."""
        with suppress(OSError, ValueError, AttributeError):  # what is in the buffer would fail again at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        error.filename = "standard output"
        self.gone.append(error)

    def remark(self, words: str) -> None:
        """Something to know besides the result, on standard error."""
        if not self.quiet:
            self.warn(words)

    def warn(self, words: str) -> None:
        """Something that must be known besides the result, also where it should be quiet."""
        with suppress(OSError):
            Console(stderr=True, highlight=False, soft_wrap=True).print(words, markup=False)

    def error(self, kind: str, message: str, code: int, **more: object) -> None:
        """What went wrong: as JSON if that was asked for and can be written, else in words on standard error."""
        if self.as_json and not self.gone:
            with suppress(OSError):
                self.result({"error": kind, "message": message, "exit_code": code, **more}, "")
                return
        self.warn(f"error: {message}")


@contextmanager
def reporting(*, as_json: bool, quiet: bool) -> Iterator[Output]:
    """Gives a verb its output, and turns errors, signals and what the system refuses into a message and an exit code."""
    while handlers:
        signal.signal(*handlers.popitem())
    seen = (sys.stderr is not None and sys.stderr.isatty()) or None
    progress = Console(file=cast(IO[str], _Unheard()), quiet=quiet or as_json, force_terminal=seen)
    output = Output(as_json=as_json, quiet=quiet, progress=progress)
    others, mine, before = warnings.showwarning, os.getpid(), {}
    said: set[str] = set()

    def tell(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        """Warnings of ours are said in one line each, and once; others as Python says them."""
        if issubclass(category, errors.PromiseWarning | errors.AnswersWarning):
            if str(message) not in said:
                output.remark(f"warning: {message}")
            said.add(str(message))
        else:
            others(message, category, *place, **more)

    def stop(number: int, _: object) -> None:
        """Signals that would end the process at once raise instead."""
        if os.getpid() != mine:  # a forked child: as if nobody had asked
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        output.stopped.append(number)
        raise StoppedError

    try:
        with warnings.catch_warnings():
            if threading.current_thread() is threading.main_thread():
                for each in STOPS:  # like Ctrl-C, so that what was charged is told and temporary folders go
                    if signal.getsignal(each) is signal.SIG_DFL:
                        before[each] = signal.signal(each, stop)
            for ours in (errors.PromiseWarning, errors.AnswersWarning):
                warnings.simplefilter("always", ours)
            warnings.showwarning = tell  # put back by catch_warnings
            try:
                yield output
            finally:
                for each, handler in before.items():
                    signal.signal(each, handler)
    except (errors.GconError, OSError, MemoryError, KeyboardInterrupt) as error:
        _end(output, error)
    except Exception as error:
        if errors.wants_memory(error):
            _end(output, MemoryError())
        for words in _charged_words(output):
            output.warn(words)
        raise


def _end(output: Output, error: BaseException) -> NoReturn:
    """Say what went wrong and what was charged, and end with the code that belongs to it."""
    paid = any(payment.costs for payment in output.payments)
    message, code = str(error), PAID if paid else REFUSED
    if isinstance(error, errors.GconError):
        code = next(code for kind, code in EXIT_CODES if isinstance(error, kind))
        paid = paid or (isinstance(error, errors.LedgerRefusedError) and error.charged)
        if paid and code in (2, 6, 8, REFUSED):  # these promise that nothing new is in the ledger
            code = PAID
    elif isinstance(error, KeyboardInterrupt):
        number = output.stopped[0] if output.stopped else int(signal.SIGINT)
        message, code = f"stopped by {signal.Signals(number).name}.", 128 + number
    elif isinstance(error, MemoryError):
        message = NO_MEMORY
    else:
        message = refusal(error)  # type: ignore[arg-type]
    if isinstance(error, BrokenPipeError) and not paid and not output.notes:
        raise typer.Exit(code) from None  # whoever read has read enough
    charged = _charged_words(output)
    refused = not isinstance(error, errors.GconError) or isinstance(error, errors.LedgerRefusedError)
    if refused and not charged and not paid:
        charged = ["Nothing was charged."]
    record = [payment.record() for payment in output.payments if payment.charges]
    more = {"charged": record} if record else {}
    output.error(type(error).__name__, " ".join([message, *charged, *output.notes]), code, **more)
    raise typer.Exit(code) from None


def _charged_words(output: Output) -> list[str]:
    return [words for payment in output.payments if (words := payment.in_words())]


def refusal(error: OSError) -> str:
    """What the system refuses, in words: the reason, and the path that it names. Both are public."""
    named = "" if error.filename is None else f" {os.fsdecode(error.filename)}"
    way_out = (
        "" if error.errno in (errno.EPIPE, errno.EBADF) else " Check permissions and free space."
    )  # nobody listens
    return f"the system refused:{named} ({error.strerror or type(error).__name__}).{way_out}"


class _Unheard(io.TextIOBase):
    """Standard error for progress: that nobody can hear it (a full disk, a terminal that was closed) stops no paid work."""

    def write(self, text: str) -> int:
        behind = getattr(sys.stderr, "rich_proxied_file", sys.stderr)  # while a bar is shown, rich itself stands there
        with suppress(OSError):
            if behind is not None:  # as where a program was started without one
                behind.write(text)
                behind.flush()
        return len(text)


def plain(value: Any) -> Any:
    """Records, tuples and infinities as JSON knows them."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
