"""The function that opens a private value. Only the account and the gates import this module: an import rule, checked in CI."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gcon.errors import AccessRefusedError, NoCertificateError, PrivateComputationError
from gcon.privacy.boundary import Private

NO_CERTIFICATE = (
    "The solver could not prove its answer within its fixed number of iterations, so nothing is released. The budget "
    "stays charged, because this may depend on private edges. Raise the ridge or lower the noise (a larger epsilon, "
    "restart or number of labelled nodes), and plan for another release."
)

ENDED = "The process was told to end in a computation on private values; nothing was released."

T = TypeVar("T")
U = TypeVar("U")


def apply_private(function: Callable[[T], U], private: Private[T]) -> U:
    """Apply a function to the value inside, letting no detail of a failure out.

    Where the value is on other machines the whole function goes there, drawing of noise included, and only what it returns
    comes back.

    An exception on private values may itself depend on the edges: its text, its type, the values in its frames. All
    are replaced by one fixed message; a missing certificate, an interruption and an exit have fixed ones of their own.

    Privacy:
        Reads the private value. The result is as private as what the function returns.
    """
    failure: BaseException
    try:
        # No local names: they would be seen in the frame that raises below.
        if private._Private__run is None:  # type: ignore[attr-defined]
            return function(private._Private__value)  # type: ignore[attr-defined]
        return private._Private__run(function)  # type: ignore[attr-defined, no-any-return]
    except KeyboardInterrupt:
        failure = KeyboardInterrupt()
    except SystemExit:
        failure = SystemExit(ENDED)  # told on standard error; its own words or code may depend on edges
    except NoCertificateError:
        failure = NoCertificateError(NO_CERTIFICATE)
    except BaseException:
        failure = PrivateComputationError(
            "A computation on private values failed. What failed may depend on the edges, so it is not told; "
            "nothing was released. Reproduce it on a synthetic graph (gcon.datasets.synthetic) to see the cause."
        )
    # Raised outside the handler, so that no chained traceback keeps the private frames.
    raise failure


def check_there(private: Private[Any]) -> None:
    """Refuse a value on other machines that are gone: what is charged for it then would be lost.

    Privacy:
        Reads nothing; tells whether the machines answer.
    """
    if private._Private__check is not None:  # type: ignore[attr-defined]
        private._Private__check()  # type: ignore[attr-defined]


def check_here(private: Private[Any]) -> None:
    """Refuse a value on other machines: answers are written down where they are computed, and would be lost there.

    Privacy:
        Tells where the owner keeps the edges, and nothing about them.
    """
    if private._Private__run is not None:  # type: ignore[attr-defined]
        raise AccessRefusedError(
            "These edges are on a cluster, where answers for owners would be lost. Nothing was recorded. Read the edge store on "
            "a machine of your own for this."
        )
