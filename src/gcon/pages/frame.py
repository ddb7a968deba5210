"""What all pages share: templates that escape whatever is put into them, and files that go into a page as they are."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from gcon.errors import MissingExtraError

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

PAGES = {"index.html": "The promise", "ask.html": "Ask", "model.html": "The model"}  # in words that fit a phone


def render(template: str, values: Mapping[str, object], *, package: str = "gcon.pages") -> str:
    """A page that needs nothing but itself, in plain ASCII, so that no reader or writer can get the encoding wrong.

    Args:
        template: a file in the package's folder of templates; it extends `base.html` of this package.
        values: what it shows. All text in them is escaped, except drawings of `inline_svg`.
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
    made.globals["mark"] = Markup(part("mark.svg").replace(' xmlns="http://www.w3.org/2000/svg"', ""))
    made.globals["icon"] = f"data:image/svg+xml;base64,{base64.b64encode(part('mark.svg').encode()).decode()}"
    made.filters.update(number=number, percent=percent, sha256=_sha256, code=_code)
    made.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return made


def _code(text: str) -> Markup:
    """Words between backticks as code; everything is escaped."""
    from markupsafe import Markup

    parts = [Markup("<code>{}</code>" if place % 2 else "{}").format(part) for place, part in enumerate(text.split("`"))]
    return Markup("").join(parts)


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
