"""The functions that open a private value. Who may import this module is an import rule, checked in CI.

Allowed: the private entry of propagation, the gates, and nothing else (see `tool.importlinter` in pyproject.toml).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from gcon.errors import GconError, NoCertificateError, PrivateComputationError
from gcon.privacy.boundary import Private

T = TypeVar("T")
U = TypeVar("U")


def open_private(private: Private[T]) -> T:
    """Return the value inside.

    Privacy:
        The result is a bare private value. It may live only inside the function that asked for it.
    """
    return cast(T, private._Private__value)  # type: ignore[attr-defined]


def apply_private(function: Callable[[T], U], private: Private[T]) -> U:
    """Apply a function to the value inside, letting no detail of a failure out.

    An exception on private values may itself depend on the edges: its text, its type, the values in its frames. All
    are replaced by one fixed message, except a missing certificate, whose text is fixed already.

    Privacy:
        Reads the private value. The result is as private as what the function returns.
    """
    failure: GconError
    try:
        return function(open_private(private))
    except NoCertificateError as error:
        failure = NoCertificateError(*error.args)
    except Exception:
        failure = PrivateComputationError(
            "A computation on private values failed. What failed may depend on the edges, so it is not told; "
            "nothing was released. Reproduce it on a synthetic graph (gcon.datasets.synthetic) to see the cause."
        )
    # Raised outside the handler, so that no chained traceback keeps the private frames.
    raise failure


def map_private(function: Callable[[T], U], private: Private[T], description: str) -> Private[U]:
    """Compute on a private value; the result is private again.

    Privacy:
        Reads the private value; reveals nothing but the (public) description.
    """
    return Private(apply_private(function, private), description)
