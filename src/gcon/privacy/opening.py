"""The functions that open a private value. Who may import this module is an import rule, checked in CI.

Allowed: the private entry of propagation, the gates, and nothing else (see `tool.importlinter` in pyproject.toml).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from gcon.errors import NoCertificateError, PrivateComputationError
from gcon.privacy.boundary import Private

NO_CERTIFICATE = (
    "The solver could not prove its answer within its fixed number of iterations, so nothing is released. The budget "
    "stays charged, because this may depend on private edges. Raise the ridge or lower the noise (a larger epsilon, "
    "restart or number of labelled nodes), and plan for another release."
)

T = TypeVar("T")
U = TypeVar("U")


class _Deferred(Generic[T]):
    """A private computation that runs when somebody with the right to open it does, and only once."""

    def __init__(self, function: Callable[[Any], T], source: Private[Any]) -> None:
        self.waiting: tuple[Callable[[Any], T], Private[Any]] | None = (function, source)
        self._result: T | None = None

    def result(self) -> T:
        if self.waiting is not None:
            function, source = self.waiting
            self._result = function(open_private(source))
            self.waiting = None
        return cast(T, self._result)


def open_private(private: Private[T]) -> T:
    """Return the value inside.

    Privacy:
        The result is a bare private value. It may live only inside the function that asked for it.
    """
    value = _inside(private)
    return cast(T, value.result() if isinstance(value, _Deferred) else value)


def _inside(private: Private[Any]) -> Any:
    return private._Private__value  # type: ignore[attr-defined]


def _apply(function: Callable[[Any], U], private: Private[Any]) -> U:
    """The function of the value inside, computed where the value is.

    A value may be on other machines: `runs_elsewhere`, with a method `run(compute)` (gcon.edges.cluster). Then all that
    waits to be computed from it goes there in one piece, down to the function that adds the noise, and only what that function
    returns comes back. What was deferred is not kept: it would have to come here for that.
    """
    value, whole = _inside(private), function
    while isinstance(value, _Deferred) and value.waiting is not None:
        step, source = value.waiting
        value, whole = _inside(source), _after(step, whole)
    if getattr(value, "runs_elsewhere", False) is True:
        return cast(U, value.run(whole))
    return function(open_private(private))


def is_elsewhere(private: Private[Any]) -> bool:
    """Whether the value, or what it waits to be computed from, is on other machines.

    Privacy:
        Tells where the owner keeps the edges, and nothing about them.
    """
    value = _inside(private)
    while isinstance(value, _Deferred) and value.waiting is not None:
        value = _inside(value.waiting[1])
    return getattr(value, "runs_elsewhere", False) is True


def _after(first: Callable[[Any], Any], second: Callable[[Any], U]) -> Callable[[Any], U]:
    return lambda value: second(first(value))


def apply_private(function: Callable[[T], U], private: Private[T]) -> U:
    """Apply a function to the value inside, letting no detail of a failure out.

    An exception on private values may itself depend on the edges: its text, its type, the values in its frames. All
    are replaced by one fixed message; a missing certificate has a fixed one of its own.

    Privacy:
        Reads the private value. The result is as private as what the function returns.
    """
    failure: BaseException
    try:
        return _apply(function, private)
    except KeyboardInterrupt:
        failure = KeyboardInterrupt()
    except NoCertificateError:
        failure = NoCertificateError(NO_CERTIFICATE)
    except Exception:
        failure = PrivateComputationError(
            "A computation on private values failed. What failed may depend on the edges, so it is not told; "
            "nothing was released. Reproduce it on a synthetic graph (gcon.files.datasets.synthetic) to see the cause."
        )
    # Raised outside the handler, so that no chained traceback keeps the private frames.
    raise failure


def map_private(function: Callable[[T], U], private: Private[T], description: str) -> Private[U]:
    """Compute on a private value; the result is private again.

    The computation waits until the result is opened: by then a gate has charged the ledger, so no edge is read before
    it is paid for.

    Privacy:
        Reads the private value when opened; reveals nothing but the (public) description.
    """
    return Private(cast(U, _Deferred(function, private)), description)
