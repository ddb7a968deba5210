"""The report in a real browser: whole, readable in light and dark, wide and narrow, and silent towards the network."""

import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from tests.pages.site.models import HOSTILE, moments, nodes, paper
from tests_browser.checker import WIDTHS, opened, page_problems, problems

from gcon.pages.model_report import model_report
from gcon.pages.report import LedgerLine, ModelScores, NoiseLevel, ReportData
from gcon.pages.report_page import page
from gcon.pages.scored_nodes import ReliabilityBin


def record():
    """Three runs, so that there are bands; names and purposes that HTML and CSV could trip over; long ones, too."""

    def model(kind, name, epsilon, none, own):
        def spread(mean):
            return () if mean is None else (mean - 0.03, mean, mean + 0.03)

        return ModelScores(kind=kind, name=name, epsilon=epsilon, none=spread(none), own_edges=spread(own))

    names = ("cats", "dogs & owls", 'the "others", all')
    return ReportData(
        data_set="friends <of> friends",
        about="A made-up graph.",
        time="2026-01-01T00:00:00+00:00",
        version="0",
        shown_epsilon=1.0,
        promise=("Protected: one edge.", "e^1 & more: whatever anybody concludes from it, in a long sentence. " * 3),
        models=(
            model("edge-free", "edge-free model", None, 0.6, None),
            model("one-hop", "zero-budget control, one hop", None, None, 0.72),
            model("self-training", "self-training control, one hop", None, None, 0.76),
            *(model("private", "private model", e, 0.5 + e / 20, 0.6 + e / 20) for e in (0.5, 1.0, 2.0, 4.0)),
            model("non-private", "non-private reference", None, 0.7, 0.9),
        ),
        noise=tuple(
            NoiseLevel(
                epsilon=e,
                noise_to_edge=1.234 / e,
                released=("edge moments, 2 x 2: 9.5", "neighbour counts, 90 x 2: 3.1"),
                best_advantage=0.4,
                true_positive_rate=0.02,
            )
            for e in (0.5, 1.0, 2.0, 4.0)
        ),
        class_names=names,
        confusion=((100, 0, 0), (5, 55, 7), (0, 31, 62)),
        reliability=tuple(
            ReliabilityBin(low=p, high=p + 0.1, count=20, confidence=p + 0.05, accuracy=p) for p in (0.5, 0.6, 0.7)
        ),
        settings={"restart": "0.8", "steps": "2"},
        ledger=tuple(
            LedgerLine(
                number=number,
                time="2026-01-01T00:00:00+00:00",
                kind="release",
                purpose="a purpose that somebody described at length, with <signs> & more of them",
                epsilon=1.0,
                delta=1e-5,
                outcome="released",
            )
            for number in range(3)
        ),
        total_epsilon=3.0,
        total_delta=3e-5,
    )


@pytest.fixture(scope="session")
def html():
    return page(record())


@pytest.fixture(scope="session")
def small(html, tmp_path_factory):
    path = tmp_path_factory.mktemp("small") / "report.html"
    path.write_text(html)
    return path


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """The page of a real run, on the made-up graph."""
    folder = tmp_path_factory.mktemp("demo")
    clean = {name: value for name, value in os.environ.items() if name != "GCON_DATA"}
    command = [sys.executable, "-m", "gcon.cli.app", "demo", "--runs", "1", "--out", str(folder), "--quiet"]
    subprocess.run(command, check=True, env=clean)
    return folder / "report.html"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_page_of_a_record(browser, small, width, dark):
    assert problems(browser, small, width=width, dark=dark, bands=True) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_page_of_the_demo(browser, demo, width, dark):
    assert problems(browser, demo, width=width, dark=dark) == []
    assert "differentially private for one edge" in demo.read_text()


def counted():
    """A model whose count of right answers says something."""
    model = moments()
    return replace(model, right=700, asked=1000)


REPORTS = {
    "moments": lambda: (counted(), nodes()),
    "paper": lambda: (paper(), nodes()),
    "hostile": lambda: (moments(names=HOSTILE, purpose=HOSTILE[1], data_set=40 * "long"), nodes(HOSTILE)),
    "seeded": lambda: (moments(seeded=True), nodes()),
    "no nodes": lambda: (paper(), None),
}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [*WIDTHS, 1280])
@pytest.mark.parametrize("kind", REPORTS)
def test_report_of_a_model(browser, tmp_path, kind, width, dark):
    model, table = REPORTS[kind]()
    path = model_report(model, table, control_seed=0 if kind == "moments" else None).save(tmp_path / "report.html")
    with opened(browser, path.as_uri(), width=width, dark=dark) as (page, told):
        assert page_problems(page, told, width=width, dark=dark) == []
        tiles = page.locator(".tile")
        assert all(tile.is_visible() for tile in tiles.all())
        assert tiles.count() == {"moments": 4, "paper": 2, "hostile": 2, "seeded": 1, "no nodes": 1}[kind]


def without(pattern):
    """The page less the first match."""
    return lambda html: re.sub(pattern, "", html, count=1, flags=re.DOTALL)


def put(words):
    """The page with more at its end."""
    return lambda html: html.replace("</main>", f"{words}</main>")


def unguarded(change):
    """The change on a page that no longer tells the browser to load nothing."""
    return lambda html: change(without('<meta http-equiv="Content-Security-Policy".*?>')(html))


IMAGE = put('<img src="http://example.org/x.png">')
BROKEN = {
    "image from elsewhere": (IMAGE, "example.org"),
    "image from elsewhere, no policy": (unguarded(IMAGE), "a request leaves the page: http://example.org/x.png"),
    "style from elsewhere": (
        unguarded(put("<style>@import url('https://example.org/a.css');</style>")),
        "a request leaves the page: https://example.org/a.css",
    ),
    "file from beside": (unguarded(put('<img src="beside.png">')), "a request leaves the page: file://"),
    "request by a script": (
        unguarded(put("<script>fetch('http://example.org/')</script>")),
        "a request leaves the page: http://example.org/",
    ),
    "socket": (
        unguarded(put("<script>new WebSocket('ws://example.org/')</script>")),
        "a request leaves the page: ws://example.org/",
    ),
    "script error": (unguarded(put("<script>nothing.there()</script>")), "script error"),
    "link away": (put('<a href="https://example.org/">more</a>'), "a reference that leads nowhere or away"),
    "link to nowhere": (put('<a href="#nowhere">more</a>'), "a reference that leads nowhere or away"),
    "section gone": (without('<section id="settings".*?</section>'), "section 'Settings' is missing"),
    "table without rows": (without("(?<=<tbody>).*?(?=</tbody>)"), "table 'accuracy' has no rows"),
    "table other than its file": (lambda html: html.replace("<td>0.7200", "<td>0.7300"), "not hold the numbers"),
    "file gone": (without("<a download=.*?</a>"), "no file to take along"),
    "chart of no size": (put("<style>.chart { height: 0 }</style>"), "the chart has no visible size"),
    "hidden chart": (put("<style>.chart { display: none }</style>"), "the chart has no visible size"),
    "no chart": (without('<svg class="chart".*?</svg>'), "the chart is missing"),
    "chart without a line": (without("<polyline.*?/>"), "the chart has 4 lines and names 5"),
    "line without its name": (without('<li><span class="swatch.*?</li>'), "the chart has 5 lines and names 4"),
    "line of no colour": (put("<style>.chart .line { stroke: none }</style>"), "a line of the chart cannot be seen"),
    "no budget on the axis": (without(r">0\.5(?=</text>)"), "the chart does not show ['0.5']"),
    "no band": (put("<style>.band { display: none }</style>"), "the accuracy has no band"),
    "a label over another": (
        lambda html: re.sub(r"(<text .*?</text>)", r"\1\1", html, count=1, flags=re.DOTALL),
        "lies over",
    ),
    "no bars": (put("<style>#noise .bar { display: none }</style>"), "'noise' has no bars"),
    "always dark": (lambda html: html.replace("(prefers-color-scheme: dark)", "all"), "does not follow the reader"),
    "pale text": (put("<style>figcaption { color: #bbb }</style>"), "has a contrast of only"),
    "too wide": (put('<div style="width: 1500px">wide</div>'), "overflow at 1200 pixels"),
}


@pytest.mark.parametrize(("change", "words"), BROKEN.values(), ids=BROKEN)
def test_the_checker_finds_what_is_broken(browser, html, tmp_path, change, words):
    """A check that cannot fail checks nothing."""
    changed = change(html)
    assert changed != html
    path = tmp_path / "report.html"
    path.write_text(changed)
    found = problems(browser, path, bands=True)
    assert any(words in problem for problem in found), found
