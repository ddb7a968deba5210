"""The report: a whole page, every figure with its numbers, nothing from elsewhere, diagnostics marked, damage refused."""

import csv
import io
import json
import re
from urllib.parse import unquote

import pytest
import torch
from msgspec.structs import replace
from tests.pages.reader import Page
from tests.pages.site.models import HOSTILE

from gcon.errors import InputError
from gcon.methods.calibration import ReliabilityBin, reliability_bins
from gcon.pages.report import (
    OPERATOR_ONLY,
    LedgerLine,
    ModelScores,
    NoiseLevel,
    ReportData,
    from_json,
    mean_and_deviation,
    to_json,
    verdict,
)
from gcon.pages.report_page import page
from gcon.pages.scored_nodes import confusion_counts

NUMBERED = ("accuracy", "noise", "confusion", "calibration")


def record(**changes):
    def private(epsilon, own):
        free = {"none": (0.6, 0.62), "cached": (0.64, 0.66)}
        return ModelScores(kind="private", name="private model", epsilon=epsilon, own_edges=own, **free)

    parts = {
        "data_set": "friends <of> friends",
        "about": "A made-up graph.",
        "time": "2026-01-01T00:00:00+00:00",
        "version": "0",
        "shown_epsilon": 1.0,
        "promise": ("Protected: one edge.", "e^1 & more"),
        "models": (
            ModelScores(kind="edge-free", name="edge-free model", epsilon=None, none=(0.6, 0.6), own_edges=()),
            ModelScores(kind="one-hop", name="control", epsilon=None, none=(), own_edges=(0.7, 0.72)),
            ModelScores(kind="self-training", name="self-training", epsilon=None, none=(), own_edges=(0.75, 0.77)),
            private(1.0, (0.7, 0.72)),
            private(4.0, (0.85, 0.88)),
            ModelScores(kind="non-private", name="reference", epsilon=None, none=(0.7, 0.7), own_edges=(0.9, 0.9)),
        ),
        "noise": tuple(
            NoiseLevel(
                epsilon=epsilon,
                noise_to_edge=1 / epsilon,
                released=("edge moments, 2 x 2: 9.5", "neighbour counts, 90 x 2: 3.1"),
                best_advantage=0.4,
                true_positive_rate=0.02,
            )
            for epsilon in (1.0, 4.0)
        ),
        "class_names": ("a", "b & c"),
        "confusion": ((30, 10), (5, 55)),
        "reliability": (
            ReliabilityBin(low=0.5, high=0.6, count=40, confidence=0.55, accuracy=0.8),
            ReliabilityBin(low=0.6, high=0.7, count=60, confidence=0.65, accuracy=0.9),
        ),
        "settings": {"restart": "0.8"},
        "ledger": (
            LedgerLine(
                number=0, time="now", kind="release", purpose="test", epsilon=1.0, delta=0.0, outcome="released"
            ),
        ),
        "total_epsilon": 1.0,
        "total_delta": 0.0,
    }
    return ReportData(**(parts | changes))


@pytest.fixture(scope="module")
def html():
    return page(record())


def test_page_is_whole_and_has_every_section(html):
    found = Page(html)
    assert len(found.ids) == len(set(found.ids))
    sections = [section["id"] for section in found.all("section")]
    assert sections == ["promise", *NUMBERED, "settings", "ledger"]
    assert [f"#{name}" for name in sections] == [link["href"] for link in found.all("a")][:7]
    assert "friends &lt;of&gt; friends" in html
    assert "prefers-color-scheme: dark" in html
    assert html.isascii()


def test_hostile_words_stay_words():
    entry = replace(record().ledger[0], purpose=HOSTILE[1])
    models = tuple(replace(model, name=HOSTILE[0]) for model in record().models)
    hostile = {"data_set": HOSTILE[0], "about": HOSTILE[1], "promise": HOSTILE, "settings": dict([HOSTILE[:2]])}
    text = page(record(class_names=HOSTILE[1:], models=models, ledger=(entry,), **hostile))
    assert text.isascii()
    assert "<script" not in text
    assert "<img" not in text
    for tag, attributes in Page(text).found:
        assert tag not in ("script", "img")
        assert not [name for name in attributes if name.startswith("on")]


def files(html):
    """The files to take along, as rows, by their names."""
    links = [link for link in Page(html).all("a") if "download" in link]
    assert all(link["href"].startswith("data:text/csv;charset=utf-8,") for link in links)
    return {
        link["download"]: list(csv.DictReader(io.StringIO(unquote(link["href"].split(",", 1)[1])))) for link in links
    }


def test_numbers_are_on_the_page_and_in_files(html):
    found, text = files(html), Page(html).text
    assert list(found) == ["accuracy-operator-only.csv", "noise.csv", "confusion.csv", "calibration.csv"]
    for rows in found.values():
        assert rows
        assert all(cell in text for row in rows for cell in row.values())
    assert len(found["accuracy-operator-only.csv"]) == 1 + 1 + 1 + 2 * 3 + 2  # every model under every access
    assert (
        found["noise.csv"][0]["released, noise over one edge"]
        == "edge moments, 2 x 2: 9.5; neighbour counts, 90 x 2: 3.1"
    )


def test_the_chart_shows_every_access_beside_its_control(html):
    chart = html[html.index('<svg class="chart"') : html.index('<ul class="lines">')]
    lines = dict(re.findall(r'<polyline class="line ([\w-]+)" points="([^"]+)"', chart))
    assert list(lines) == ["own-edges", "cached", "none", "self-training", "edge-free", "non-private"]
    heights = {kind: [float(point.split(",")[1]) for point in points.split()] for kind, points in lines.items()}
    assert heights["non-private"][0] < heights["own-edges"][1] < heights["self-training"][1] < heights["cached"][1]
    assert heights["cached"][1] < heights["none"][1] < heights["edge-free"][1]  # the higher, the nearer to 0
    shown = html[html.index('<ul class="lines">') : html.index("<figcaption>Share")]
    assert re.findall("</span>(.*?)</li>", shown) == [
        "private model, own edges",
        "private model, cached",
        "private model, none",
        "self-training, own edges",
        "edge-free model, none",
        "reference, own edges",
    ]
    few = replace(record(), models=tuple(replace(model, cached=()) for model in record().models))
    assert '"line cached"' not in page(few)


def test_nothing_comes_from_elsewhere(html):
    assert "http://" not in html
    assert "https://" not in html
    for tag, attributes in Page(html).found:
        assert tag not in ("script", "img", "image", "iframe")
        assert attributes.get("href", "#").startswith(("#", "data:text/csv", "data:image/svg+xml;"))
    assert "url(" not in html.replace("url(#", "")
    assert "default-src 'none'" in html


def test_numbers_with_own_edges_say_for_whom_they_are(html):
    assert [OPERATOR_ONLY in figure["drawn"] for figure in Page(html).figures] == [True, False, False, False]
    for row in files(html)["accuracy-operator-only.csv"]:
        open_to_all = row["access"] in ("none", "cached") and row["model"] != "reference"
        assert row["audience"] == ("anybody" if open_to_all else "operator only")


def test_record_survives_json_and_gives_the_same_bytes(html):
    text = to_json(record())
    assert from_json(text) == record()
    json.loads(text, parse_constant=pytest.fail)
    assert page(from_json(text)) == html
    assert to_json(from_json(text)) == text


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: "null",
        lambda text: "[" * 100_000,
        lambda text: text.replace('"format": 4', '"format": 3'),
        lambda text: text.replace('"format": 4', '"format": 4, "more": 1'),
        lambda text: text.replace("private model", "private \udcff"),  # no UTF-8
        lambda text: text.replace('"data_set"', '"dataset"'),
        lambda text: text.replace('"count": 40', '"count": "40"'),
        lambda text: text.replace('"confidence": 0.55', '"confidence": NaN'),
        lambda text: text.replace('"kind": "one-hop"', '"kind": "two-hop"'),
        lambda text: text.replace('"noise_to_edge": 1.0', '"noise_to_edge": -1.0'),
        lambda text: text.replace('"b & c"', '"b", "c"'),
        lambda text: text.replace('"kind": "private"', '"kind": "one-hop"'),
        lambda text: text.replace('"low": 0.5', '"low": true'),
    ],
)
def test_damaged_records_are_refused(damage):
    text = to_json(record()).decode()
    assert damage(text) != text
    with pytest.raises(InputError, match=r"run\.json"):
        from_json(damage(text).encode(errors="surrogateescape"))


def test_verdict_says_when_the_control_is_not_beaten():
    first, second, third, _ = verdict(record())
    assert "beats the stronger zero-budget control (self-training: 0.760) at epsilon 4." in first
    assert "does not beat the stronger zero-budget control" in second
    assert "at epsilon 1:" in second
    assert "never beats it" in third  # ahead by 0.010, which is less than the deviation of 0.014
    single = replace(
        record(),
        models=tuple(replace(m, none=m.none[:1], own_edges=m.own_edges[:1]) for m in record().models),
    )
    assert "one run" in verdict(single)[-1]


def test_measures():
    labels = torch.tensor([0, 1, 1, 0])
    probabilities = torch.tensor([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3], [0.8, 0.2]], dtype=torch.float64)
    assert confusion_counts(probabilities.argmax(dim=1), labels, 2) == ((2, 0), (1, 1))
    low, high = reliability_bins(probabilities, labels, count=2)
    assert (low.count, low.accuracy, low.low, low.high) == (2, 0.5, 0.6, 0.7)
    assert (high.count, high.accuracy) == (2, 1.0)
    assert high.confidence == pytest.approx(0.85)
    assert sum(entry.count for entry in reliability_bins(probabilities, labels)) == 4
    assert mean_and_deviation([0.25]) == (0.25, 0.0)
