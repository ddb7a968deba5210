"""The register of what may be released: only classes whose bound has a proof page.

`@proven("edge-moments")` names the page in `docs/proofs`. A test checks that every page is there and names the class's file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from gcon.errors import UnprovenBoundError

ClassT = TypeVar("ClassT", bound=type)
_PAGES: dict[type, str] = {}


def proven(page: str) -> Callable[[ClassT], ClassT]:
    """Register a class with the page that proves its bound."""

    def register(kind: ClassT) -> ClassT:
        _PAGES[kind] = page
        return kind

    return register


def proof_page(kind: type) -> str:
    """The name of the page; `UnprovenBoundError` without one. A subclass could do anything, so it needs its own."""
    if kind not in _PAGES:
        raise UnprovenBoundError(
            f"{kind.__name__} has no proof page, so nothing is released from it (gcon.privacy.proven)."
        )
    return _PAGES[kind]
