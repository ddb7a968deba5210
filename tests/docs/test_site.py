"""What `make docs` does around the builder: versions side by side, and nothing that is loaded from outside."""

import json
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = runpy.run_path(str(ROOT / "docs" / "build.py"))


def test_versions_stand_side_by_side_and_the_newest_release_opens(tmp_path):
    for version in ("0.9.1", "0.10.0", "0.11.0rc1", "0.10.0rc2"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "index.html").touch()
    BUILD["write_start"](tmp_path)
    listed = [entry["version"] for entry in json.loads((tmp_path / "versions.json").read_text())]
    assert listed == ["0.11.0rc1", "0.10.0", "0.10.0rc2", "0.9.1"]
    start = (tmp_path / "index.html").read_text()
    assert 'url=0.10.0/index.html"' in start
    assert re.findall(r'href="([^"]+)"', start) == [f"{version}/index.html" for version in listed]


@pytest.mark.parametrize(
    ("page", "outside"),
    [
        ('<script src="https://unpkg.com/x"></script>', True),
        ('<link rel="stylesheet" href="//fonts.example/x.css">', True),
        ("<img alt='' src=http://example.org/x.png>", True),
        ('<a href="https://example.org">a link is followed, not loaded</a>', False),
        ('<script src="../assets/bundle.js"></script>', False),
    ],
)
def test_what_is_loaded_from_outside_is_found(tmp_path, page, outside):
    (tmp_path / "page.html").write_text(page)
    assert bool(BUILD["loads_from_outside"](tmp_path)) == outside
