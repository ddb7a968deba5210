"""Errors that leave functions with bare private arguments: raised again from a frame that holds none of them.

A traceback keeps every frame that it went through, and a collector of errors records their local names. So where a function takes
bare edges, and only there, an error of ours loses its frames, and is raised once the arguments are let go.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from gcon.errors import GconError

P = ParamSpec("P")
R = TypeVar("R")


def without_frames(function: Callable[P, R]) -> Callable[P, R]:
    """The function; what gcon raises in it on purpose brings no frame of it, of what it called, or of earlier errors.

    Privacy:
        Hides local values, not words: the message must not depend on edges in the first place.
    """

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except GconError as error:
            failure = error.with_traceback(None)
        failure.__cause__ = failure.__context__ = None
        del args, kwargs
        raise failure

    return checked
