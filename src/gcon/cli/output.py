"""What a verb prints, and with which exit code it ends.

With `--json`, standard output is exactly one JSON object, also when something goes wrong. People's words go to standard
output, progress and warnings to standard error. Nothing ever prompts.

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
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import typer
from rich.console import Console

from gcon import errors

EXIT_CODES: tuple[tuple[type[Exception], int], ...] = (
    (errors.BudgetExceededError, 3),
    (errors.NoCertificateError, 4),
    (errors.AccessRefusedError, 5),
    (errors.LedgerError, 6),
    (errors.ReleaseFormatError, 6),
    (errors.PrivateComputationError, 7),
    (errors.MissingExtraError, 8),
    (errors.GconError, 2),
)


@dataclass(frozen=True, kw_only=True)
class Output:
    """Where one verb writes.

    Attributes:
        progress: what happens, for people who wait.
    """

    as_json: bool
    quiet: bool
    progress: Console

    def result(self, fields: Mapping[str, object], text: str) -> None:
        """The result: one JSON object, or words."""
        if self.as_json:
            print_json(fields)
        elif not self.quiet:
            Console(highlight=False, soft_wrap=True).print(text, markup=False)

    def remark(self, words: str) -> None:
        """Something to know besides the result, on standard error."""
        if not self.quiet:
            _error_console().print(words, markup=False)


@contextmanager
def reporting(*, as_json: bool, quiet: bool) -> Iterator[Output]:
    """Gives a verb its output, and turns our exceptions into a message and an exit code."""
    output = Output(as_json=as_json, quiet=quiet, progress=Console(stderr=True, quiet=quiet or as_json))
    try:
        with warnings.catch_warnings():
            _tell_warnings(output)
            yield output
    except errors.GconError as error:
        raise typer.Exit(tell_error(error, as_json=as_json)) from None


def _tell_warnings(output: Output) -> None:
    """Warnings about the promise are said in one line each; others as Python says them."""
    others = warnings.showwarning

    def tell(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, errors.PromiseWarning):
            output.remark(f"warning: {message}")
        else:
            others(message, category, *place, **more)

    warnings.simplefilter("always", errors.PromiseWarning)
    warnings.showwarning = tell  # put back by catch_warnings


def tell_error(error: errors.GconError, *, as_json: bool) -> int:
    """Say what went wrong, and return the exit code that belongs to it."""
    code = next(code for kind, code in EXIT_CODES if isinstance(error, kind))
    if as_json:
        print_json({"error": type(error).__name__, "message": str(error), "exit_code": code})
    else:
        _error_console().print(f"error: {error}", markup=False)
    return code


def _error_console() -> Console:
    return Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(fields: Mapping[str, object]) -> None:
    """One strict JSON object on standard output; infinity is written as a string."""
    sys.stdout.write(json.dumps(plain(fields), allow_nan=False, indent=2) + "\n")


def plain(value: Any) -> Any:
    """Records, tuples and infinities as JSON knows them."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
