"""Words and small pieces that several pages share."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

LIMITS = (
    "Nothing about you yourself: that you are in the graph, your features and your label count as public. Features that were "
    "computed from private connections would give them away.",
    "One connection is protected. Two together are protected about half as well, ten about a tenth as well: a person's whole "
    "circle of contacts is not hidden if it is large.",
    "Every further release from the same connections adds to what is spent. The number above is what the ledger knew at the "
    "time.",
    "What you tell others yourself. An answer that was computed from your own connections is for you alone: it may give away "
    "something about them to whoever sees it.",
    "The operator of the graph knows all connections and is trusted with them.",
)


def items(sentences: Iterable[str]) -> str:
    """Plain sentences as a list."""
    return "<ul>" + "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences) + "</ul>"


def number(value: float) -> str:
    """Every digit; whole numbers lose their point, as in a browser.

    Example:
        >>> number(1.0), number(0.5)
        ('1', '0.5')
    """
    return repr(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)


def percent(share: float) -> str:
    """A share of at most 1, in words.

    Example:
        >>> percent(0.7311)
        '73.1 %'
    """
    return f"{100 * share:.1f} %"
