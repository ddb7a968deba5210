"""How far a fit is, for people: lines on standard error, a bar in a notebook, or a function of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from html import escape
from typing import Any

Callback = Callable[[str, float], None]  # is told the name of a stage that begins, and about which share is done


def fit_progress(shares: Mapping[str, float], *, verbose: bool, callback: Callback | None) -> Callable[[str], None]:
    """A function to call with the name of every stage that begins, and with "done" at the end; it shows or tells that.

    `shares` say about which share of a fit is done when a stage begins.
    """
    known, share, bar = {**shares, "done": 1.0}, 0.0, None

    def tell(stage: str) -> None:
        nonlocal share, bar
        share = known.get(stage, share)
        if verbose:
            bar = _show(stage, share, bar)
        if callback is not None:
            callback(stage, share)

    return tell


def _show(stage: str, share: float, bar: Any) -> Any:
    """A line, or in a notebook a bar, which is returned to be moved next time."""
    show = _notebook()
    if show is None:
        with suppress(OSError):  # that nobody can hear it loses no paid fit
            sys.stderr.write(f"gcon: {share:4.0%} {stage}\n")
        return None
    now = show.HTML(f'<progress value="{share:.2f}" max="1"></progress> gcon: {escape(stage)}')
    if bar is None:
        return show.display(now, display_id=True)
    bar.update(now)
    return bar


def _notebook() -> Any:
    """What a notebook shows things with; None elsewhere. A shell of IPython in a terminal has no kernel."""
    shell = sys.modules.get("IPython")
    if shell is None or not hasattr(shell.get_ipython(), "kernel"):
        return None
    from IPython import display  # type: ignore[import-not-found]

    return display
