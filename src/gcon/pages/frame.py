"""What all pages share: templates that escape whatever is put into them, and files that go into a page as they are."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from gcon.errors import MissingExtraError

if TYPE_CHECKING:
    from jinja2 import Environment

PAGES = {"index.html": "The promise", "ask.html": "Ask", "model.html": "The model"}  # in words that fit a phone


def render(template: str, values: Mapping[str, object], *, package: str = "gcon.pages") -> str:
    """A page that needs nothing but itself, in plain ASCII, so that no reader or writer can get the encoding wrong.

    Args:
        template: a file in the package's folder of templates; it extends `base.html` of this package.
        values: what it shows. All text in them is escaped, except drawings, which are marked so.
        package: whose template it is.
    """
    text = _environment(package).get_template(template).render(values)
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


@cache
def part(name: str) -> str:
    """A file of this package: a script, a style or a table."""
    return files("gcon.pages").joinpath(name).read_text(encoding="ascii")


@cache
def _environment(package: str) -> Environment:
    try:
        from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    except ModuleNotFoundError:
        raise MissingExtraError("jinja2", extra="report") from None
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("gcon.pages")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["file"] = lambda name: Markup(part(name))
    made.globals["icon"], made.globals["inf"] = _icon(), math.inf
    made.filters.update(number=number, percent=percent, sha256=_sha256)
    made.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return made


def _icon() -> str:
    """The mark as an address that holds the drawing itself."""
    alone = part("mark.svg").replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    return f"data:image/svg+xml;base64,{base64.b64encode(alone.encode('ascii')).decode('ascii')}"


def _sha256(script: str) -> str:
    """A script's checksum, as a policy names it."""
    return base64.b64encode(hashlib.sha256(script.encode("ascii")).digest()).decode("ascii")


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
