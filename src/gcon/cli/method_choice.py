"""`--method`: which options belong to which method."""

from __future__ import annotations

from collections.abc import Iterable

from gcon.errors import InputError
from gcon.methods.moments import Moments
from gcon.methods.objective import Objective
from gcon.privacy.protected_change import check_edges


def check_method(method: str, *, protect_edges: int, given: Iterable[str]) -> None:
    """Raise `InputError` unless the method exists and all options are its own.

    Args:
        method: its name.
        protect_edges: how many edges may change together.
        given: names of the options of the paper's method that were given.
    """
    check_edges(protect_edges)
    if method == Moments.name:
        for name in given:
            raise InputError(
                name.replace("_", "-"),
                rule="is an option of the paper's method",
                got="--method moments",
                fix="Add --method paper, or leave it out.",
            )
    elif method != Objective.name:
        rule = f"must be '{Moments.name}' or '{Objective.name}'"
        raise InputError("method", rule=rule, got=repr(method), fix="Leave it out for the default.")
    elif protect_edges != 1:
        raise InputError(
            "protect-edges",
            rule="must be 1 with --method paper: its noise is proven for one edge",
            got=protect_edges,
            fix="Leave out --method: the default protects up to 10 edges together.",
        )
