"""Templates: everything is escaped, a value that is missing is an error, and little is put into a page as it is."""

import re
import sys
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from gcon.errors import MissingExtraError
from gcon.pages import frame

ROOT = Path(__file__).parents[2]


def test_only_drawings_and_our_own_files_are_not_escaped():
    files = [path for folder in ("src", "lab/gcon_lab") for path in (ROOT / folder).rglob("*.*")]
    code = [(path.name, path.read_text()) for path in files if path.suffix == ".py"]
    assert sorted(name for name, text in code for _ in re.findall(r"\bMarkup\(", text)) == ["frame.py", "tables.py"]
    templates = [(path.name, path.read_text()) for path in files if path.parent.name == "templates"]
    assert {"base.html", "report.html", "reproduction.html"} <= {name for name, _ in templates}
    for name, text in templates:
        assert not re.search(r"\|\s*safe\b|autoescape", text), name
        assert all(re.fullmatch(r'"\w+\.(css|js|svg)"', file) for file in re.findall(r"\bfile\((.*?)\)", text)), name


def test_a_value_that_is_missing_is_an_error():
    with pytest.raises(UndefinedError, match="'here' is undefined"):
        frame.render("ask.html", {"service": None, "pages": frame.PAGES})


def test_missing_jinja_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    frame._environment.cache_clear()
    with pytest.raises(MissingExtraError, match=r"jinja2 is not installed.*gcon\[report\]"):
        frame.render("ask.html", {})
