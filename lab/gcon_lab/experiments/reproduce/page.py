"""All of the reproduction on one HTML page that needs nothing but itself: figures, their numbers, claims, datasets."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gcon.errors import InputError
from gcon.pages.frame import render
from gcon.pages.svg import inline_svg

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

    @property
    def paragraphs(self) -> list[str]:
        return [part.strip() for part in re.split(r"\n\s*\n", self.words) if part.strip()]

    @property
    def drawing(self) -> str:
        """The drawing for the inside of the page."""
        return inline_svg(self.svg, self.anchor, self.title)


def page(sections: Sequence[Section], *, facts: Mapping[str, str]) -> str:
    """The whole page.

    Args:
        sections: in the order in which they are read.
        facts: how it was made, such as the command, the versions and the machine.

    Raises:
        InputError: an anchor is used twice, or is not one.
    """
    _check_anchors(sections)
    titles = {**{section.anchor: section.title for section in sections}, "facts": "How it was made"}
    values = {"parts": sections, "sections": titles, "labels": LABELS, "facts": facts}
    return render("reproduction.html", values, package="gcon_lab.experiments.reproduce")


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
