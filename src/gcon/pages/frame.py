"""What all pages of the site share: the frame with its links, the style, and the scripts from their files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from gcon.pages.html_page import document

PAGES = {"index.html": "The promise", "ask.html": "Ask the model", "model.html": "About the model"}


@cache
def part(name: str) -> str:
    """A file of this package: a script or a style."""
    return files("gcon.pages").joinpath(name).read_text(encoding="ascii")


def site_page(
    here: str,
    title: str,
    *,
    header: str,
    sections: Mapping[str, tuple[str, str]],
    opening: str = "",
    script: str = "",
    connect: str = "",
) -> str:
    """One page of the site; the arguments are those of `document`.

    Every page gets a script, if only an empty one: then its policy refuses all others by name.
    """
    return document(
        title,
        header=header,
        sections=sections,
        opening=opening,
        more_style=part("site.css"),
        pages=PAGES,
        here=here,
        script=script or '"use strict";',
        connect=connect,
    )
