"""All of the reproduction on one HTML page that needs nothing but itself: figures, their numbers, claims, datasets."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from gcon.errors import InputError
from gcon.pages.html_page import document, download, figure, table
from gcon.pages.svg import inline_svg

TITLE = "GCON: the paper's figures and table, made again"
ABOUT = (
    "Every figure of the paper from runs of this package on the same public graphs, with the zero-budget controls in every "
    "panel. Lines are means over the runs, bands one standard deviation."
)
LABELS = {
    "as in the paper": (
        "delta 1/|E| takes the number of edges as public; settings chosen by validation accuracy, not charged: as in the paper."
    ),
    "honest": "public delta, choices free or paid.",
    "controls": (
        "read no edge in training. A node's own edges are free at inference, so a private model is worth its budget only "
        "where it beats them."
    ),
}
# Four panels in a row need more room than a report; claims are sentences and have to wrap.
_WIDER = """body { max-width: 70rem; } main > section > p, header p, header li, figcaption { max-width: 54rem; }
main > section > .scroll :is(th, td) { white-space: normal; min-width: 6rem; max-width: 30rem; overflow-wrap: anywhere; }
"""


@dataclass(frozen=True, kw_only=True)
class Section:
    """One part of the page.

    Attributes:
        anchor: where links lead, such as `fig1`: small letters, digits and hyphens.
        title: plain text.
        words: plain text; an empty line begins a new paragraph. With a drawing they are its caption.
        svg: what `figures.draw` gave, or nothing.
        columns, rows: the table, plain text; without columns there is none.
        csv_name, csv: the file to take along; without `csv` there is none.
    """

    anchor: str
    title: str
    words: str
    svg: str = ""
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    csv_name: str = ""
    csv: str = ""


def page(sections: Sequence[Section], *, facts: Mapping[str, str]) -> str:
    """The whole page.

    Args:
        sections: in the order in which they are read.
        facts: how it was made, such as the command, the versions and the machine.

    Raises:
        InputError: an anchor is used twice, or is not one.
    """
    _check_anchors(sections)
    labels = "".join(f"<li><strong>{escape(name)}</strong>: {escape(words)}</li>" for name, words in LABELS.items())
    bodies = {section.anchor: (section.title, _body(section)) for section in sections}
    made = table(("fact", "value"), list(facts.items()), "What made this page.")
    return document(
        TITLE,
        header=f"<p>{escape(ABOUT)}</p>\n<ul>{labels}</ul>",
        sections={**bodies, "facts": ("How it was made", made)},
        more_style=_WIDER,
    )


def _body(section: Section) -> str:
    numbers = table(section.columns, section.rows, section.title) if section.columns else ""
    file = download(section.csv_name, section.csv) if section.csv else ""
    paragraphs = "".join(
        f"<p>{escape(part.strip())}</p>" for part in re.split(r"\n\s*\n", section.words) if part.strip()
    )
    if section.svg:
        drawing = inline_svg(section.svg, section.anchor, section.title)
        return figure(drawing, paragraphs, numbers, file)
    return f"{paragraphs}\n{numbers}\n{file}"


def _check_anchors(sections: Sequence[Section]) -> None:
    counts = Counter(["facts", *(section.anchor for section in sections)])
    for anchor, count in counts.items():
        if count > 1 or not re.fullmatch(r"[a-z][a-z0-9-]*", anchor):
            raise InputError(
                "anchor",
                rule="must be small letters, digits and hyphens, and used once (`facts` is taken)",
                got=repr(anchor),
                fix="Rename it.",
            )
