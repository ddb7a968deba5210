"""What `report` gives: a page about a released model, for a notebook or a file. The room `pages` makes it."""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path

from gcon.writing import OWNER_ONLY, write_whole


@dataclass(frozen=True, kw_only=True)
class Report:
    """A page about one model. A notebook shows it; `save` writes it.

    Attributes:
        html: the page, which needs nothing but itself.
        headline: what it says first, in sentences.
        publishable: whether it may be published: the model keeps its promise, and all else is public or was paid for.
    """

    html: str
    headline: tuple[str, ...]
    publishable: bool

    def save(self, path: str | Path) -> Path:
        """Write the page, whole or not at all; only its owner can read a file that is not for publication."""
        return write_whole(Path(path), self.html, mode=0o644 if self.publishable else OWNER_ONLY)

    def __repr__(self) -> str:
        return "\n".join(self.headline)

    def _repr_html_(self) -> str:
        """The page in a frame of its own, so that its style and the notebook's do not meet."""
        inside = html.escape(self.html, quote=True)
        return (
            f'<iframe title="gcon report" sandbox style="width:100%;height:40rem;border:0" srcdoc="{inside}"></iframe>'
        )
