"""Every exception that gcon raises on purpose.

    GconError
    ├── InputError                 (ValueError)   a parameter breaks its rule
    ├── BoundaryError              (TypeError)    a private value was used outside a gate
    ├── AccessRefusedError                        this kind of access is not promised here
    ├── BudgetExceededError                       the ledger's ceiling would be passed
    ├── LedgerError                               a reservation is used twice, or a ledger file is damaged
    │   └── LedgerRefusedError                    the system refuses to read or write a ledger file
    ├── PaidResultError                           something was paid for, and is not where it was asked for
    ├── PlanMismatchError                         a noise plan does not fit the values it should protect
    ├── UnprovenBoundError         (ValueError)   no proof covers this bound with these options
    ├── NoCertificateError                        the solver could not prove its answer; nothing is released
    ├── PrivateComputationError                   something failed on private values; details withheld
    ├── ReleaseFormatError         (ValueError)   a stored release is damaged, edited, or of a newer format
    └── MissingExtraError          (ImportError)  an optional dependency is not installed

Beside them two warnings, which stop nothing:

    PromiseWarning                 (UserWarning)  a promise is weaker than it may look
    AnswersWarning                 (UserWarning)  answers are others than may be expected

No message ever holds a value that was derived from private edges.
"""

from __future__ import annotations

import numbers
import re
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress


class PromiseWarning(UserWarning):
    """A promise is weaker than it may look: a large delta, or releases that no ledger adds up."""


class AnswersWarning(UserWarning):
    """Answers are others than may be expected: parts of the training table count as never seen, or columns as nothing."""


def warn_caller(words: str, kind: type[Warning]) -> None:
    """Warn at the line that led here, the user's own: the first one outside of gcon and scikit-learn."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).split(".")[0] in ("gcon", "sklearn"):
        frame, level = frame.f_back, level + 1
    warnings.warn(words, kind, stacklevel=level)


class GconError(Exception):
    """Base of all exceptions that gcon raises on purpose."""


class InputError(GconError, ValueError):
    """A parameter breaks its rule.

    The message names the parameter, the rule, what was given and the way out. For parameters that hold private
    edges, `got` must describe the problem without any value from them. `problems` are those of a file, one by one.
    """

    problems: tuple[object, ...] = ()

    def __init__(self, parameter: str, *, rule: str, got: object, fix: str) -> None:
        self.parameter, self.rule, self.got, self.fix = parameter, rule, got, fix
        super().__init__(f"{parameter}: {rule}; got {got}. {fix}")

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the keyword arguments when the exception travels between processes."""
        return (_rebuild_input_error, (self.parameter, self.rule, str(self.got), self.fix))


def _rebuild_input_error(parameter: str, rule: str, got: str, fix: str) -> InputError:
    return InputError(parameter, rule=rule, got=got, fix=fix)


def check_number(
    parameter: str, value: object, *, allowed: Callable[[float], bool], rule: str, fix: str, whole: bool = False
) -> None:
    """Raise `InputError` unless the value is a number (whole, if wanted; never a truth value) that is allowed."""
    fits = False
    if isinstance(value, numbers.Integral if whole else numbers.Real) and not isinstance(value, bool):
        with suppress(OverflowError):  # where any number would do, one that float64 cannot hold is none
            fits = allowed(int(value) if whole and isinstance(value, numbers.Integral) else float(value))
    if not fits:
        raise InputError(parameter, rule=rule, got=repr(value), fix=fix)


class BoundaryError(GconError, TypeError):
    """A private value was printed, measured, copied, stored or converted outside a gate."""


class AccessRefusedError(GconError):
    """The kind of access that was asked for is not promised for this graph."""


class BudgetExceededError(GconError):
    """The ledger's ceiling would be passed; nothing was opened and nothing was charged."""


class LedgerError(GconError):
    """A reservation was settled twice or elsewhere, or a ledger file was changed, damaged or cannot be written."""


class LedgerRefusedError(LedgerError):
    """The system refuses to read or write a ledger file: a full disk, permissions, a broken device.

    `charged`: an entry may stand in the file although it was refused; then it counts.
    """

    def __init__(self, message: str, *, charged: bool = False) -> None:
        self.charged = charged
        super().__init__(message)


class PaidResultError(GconError):
    """Budget was spent, and the result could not be put where it was asked for; the message says where it is."""


class UnsettledWarning(UserWarning):
    """Something was released, and the ledger could not be told: its entry stays reserved, which counts as spent."""


class PlanMismatchError(GconError):
    """The noise plan was made for other (or better bounded) values than the ones it should protect."""


class UnprovenBoundError(GconError, ValueError):
    """The chosen bound is not proven for the options in force."""


class NoCertificateError(GconError):
    """The solver could not certify its answer within the public number of iterations.

    Nothing is released. The budget stays charged, because this very failure may depend on private edges.
    """


class PrivateComputationError(GconError):
    """A computation on private values failed; what failed may depend on the edges, so it is not told."""


class ReleaseFormatError(GconError, ValueError):
    """A folder is not a release that this version can read: missing, damaged, edited, or of a newer format."""


class MissingExtraError(GconError, ImportError):
    """An optional dependency is missing; the message names the extra to install."""

    def __init__(self, package: str, *, extra: str) -> None:
        super().__init__(f"{package} is not installed. Install it with: pip install 'gcon[{extra}]'")


_NO_MEMORY = re.compile(
    "allocate memory|out of memory|bad_alloc|failed to map segment|Resource temporarily unavailable"
)  # as torch, the dynamic linker, and the readers of tables say it


def wants_memory(error: BaseException) -> bool:
    """Whether an error of a library means that there is no memory left, and nothing is wrong with what it was given."""
    return isinstance(error, MemoryError) or _NO_MEMORY.search(str(error)) is not None
