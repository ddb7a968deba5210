"""How far a fit is, for people: lines on standard error, a bar in a notebook, or a function of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

Callback = Callable[[str, float], None]  # is told the name of a stage that begins, and about which share is done


class FitProgress:
    """Is called with the name of every stage that begins.

    Args:
        shares: about which share of a fit is done when a stage begins.
        verbose: show it.
        callback: tell it.
    """

    def __init__(self, shares: Mapping[str, float], *, verbose: bool, callback: Callback | None) -> None:
        self._shares, self._verbose, self._callback = shares, verbose, callback
        self._done, self._bar = 0.0, None

    def __call__(self, stage: str) -> None:
        """A stage begins."""
        self._tell(stage, self._shares.get(stage, self._done))

    def finish(self) -> None:
        """All is done."""
        self._tell("done", 1.0)

    def _tell(self, stage: str, share: float) -> None:
        self._done = share
        if self._verbose:
            self._show(stage, share)
        if self._callback is not None:
            self._callback(stage, share)

    def _show(self, stage: str, share: float) -> None:
        show = _notebook()
        if show is None:
            sys.stderr.write(f"gcon: {share:4.0%} {stage}\n")
            return
        bar = show.HTML(f'<progress value="{share:.2f}" max="1"></progress> gcon: {escape(stage)}')
        if self._bar is None:
            self._bar = show.display(bar, display_id=True)
        else:
            self._bar.update(bar)


def _notebook() -> Any:
    """What a notebook shows things with; None elsewhere. A shell of IPython in a terminal has no kernel."""
    shell = sys.modules.get("IPython")
    if shell is None or not hasattr(shell.get_ipython(), "kernel"):
        return None
    from IPython import display  # type: ignore[import-not-found]

    return display
