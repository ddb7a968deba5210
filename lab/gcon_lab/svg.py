"""Drawings as SVG: the same bytes from the same drawing, text that stays text, and a form that fits into an HTML page."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.figure import Figure


def svg_text(figure: Figure, name: str) -> str:
    """The figure as an `svg` element that can be a file of its own; no prolog, date, or maker, ids fixed by the name."""
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
    drawn = buffer.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    return re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL).strip()


def inline_svg(drawn: str, name: str, title: str) -> Markup:
    """An `svg` element of `svg_text` for the inside of a page: no addresses, ids of its own, as wide as the page allows.

    The only text that templates do not escape: matplotlib escaped the words in it.
    """
    from markupsafe import Markup, escape

    box = re.findall(r"[\d.]+", drawn[drawn.index('viewBox="') : drawn.index(">")])[:4]
    # The same scale for all, so that their text has one size; a narrow screen scrolls before the text gets too small.
    width = float(box[2])
    style = f"max-width: {1.7 * width:.0f}px; min-width: {width:.0f}px"
    head = f'<svg viewBox="{" ".join(box)}" style="{style}" role="img" aria-label="{escape(title)}">'
    drawn = head + drawn[drawn.index(">") + 1 :]
    drawn = drawn.replace("xlink:href", "href")
    return Markup(re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", drawn).strip())
