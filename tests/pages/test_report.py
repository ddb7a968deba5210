"""The report: a whole page, every figure with its numbers, nothing from elsewhere, diagnostics marked, damage refused."""

import csv
import dataclasses
import io
import json
import math
import sys
from urllib.parse import unquote

import pytest
import torch
from tests.pages.reader import Page
from tests.pages.site.models import HOSTILE

from gcon.errors import InputError, MissingExtraError
from gcon.pages.report import (
    OPERATOR_ONLY,
    LedgerLine,
    ModelScores,
    NoiseLevel,
    ReliabilityBin,
    ReportData,
    confusion_counts,
    from_json,
    mean_and_deviation,
    reliability_bins,
    to_json,
    verdict,
)
from gcon.pages.report_figures import check_matplotlib
from gcon.pages.report_page import page

FIGURES = ("accuracy", "noise", "access", "confusion", "calibration")


def record(**changes):
    def private(epsilon, own):
        return ModelScores(kind="private", name="private model", epsilon=epsilon, none=(0.6, 0.62), own_edges=own)

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
            NoiseLevel(epsilon=epsilon, noise_to_edge=1 / epsilon, best_advantage=0.4, true_positive_rate=0.02)
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
                number=0, time="now", kind="release", purpose="test", epsilon=math.inf, delta=0.0, outcome="released"
            ),
        ),
        "total_epsilon": math.inf,
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
    assert sections == ["promise", *FIGURES, "settings", "ledger"]
    assert [f"#{name}" for name in sections] == [link["href"] for link in found.all("a")][:8]
    assert "friends &lt;of&gt; friends" in html
    assert "prefers-color-scheme: dark" in html
    assert html.isascii()


def test_hostile_words_stay_words():
    entry = dataclasses.replace(record().ledger[0], purpose=HOSTILE[1])
    models = tuple(dataclasses.replace(model, name=HOSTILE[0]) for model in record().models)
    hostile = {"data_set": HOSTILE[0], "about": HOSTILE[1], "promise": HOSTILE, "settings": dict([HOSTILE[:2]])}
    text = page(record(class_names=HOSTILE[1:], models=models, ledger=(entry,), **hostile))
    assert text.isascii()
    assert "<script" not in text
    assert "<img" not in text
    for tag, attributes in Page(text).found:
        assert tag not in ("script", "img")
        assert not [name for name in attributes if name.startswith("on")]


def test_every_figure_is_inline_with_its_table_and_its_file(html):
    figures = Page(html).figures
    assert len(figures) == len(FIGURES)
    for name, figure in zip(FIGURES, figures, strict=True):
        tags = [tag for tag, _ in figure["tags"]]
        assert tags.count("svg") == tags.count("table") == tags.count("details") == 1
        assert "img" not in tags
        (link,) = [attributes for tag, attributes in figure["tags"] if tag == "a"]
        assert link["download"].startswith(name)
        head, content = link["href"].split(",", 1)
        assert head == "data:text/csv;charset=utf-8"
        rows = list(csv.reader(io.StringIO(unquote(content))))
        assert len(rows) == tags.count("tr")
        assert {len(row) for row in rows} == {len(rows[0])}
        assert all(cell in figure["text"] for row in rows for cell in row)


def test_nothing_comes_from_elsewhere(html):
    assert "http://" not in html
    assert "https://" not in html
    for tag, attributes in Page(html).found:
        assert tag not in ("script", "img", "image", "iframe")
        assert attributes.get("href", "#").startswith(("#", "data:text/csv", "data:image/svg+xml;"))
    assert "url(" not in html.replace("url(#", "")
    assert "default-src 'none'" in html


def test_own_edges_figures_say_on_their_face_for_whom_they_are(html):
    figures = dict(zip(FIGURES, Page(html).figures, strict=True))
    for name, figure in figures.items():
        diagnostic = "own-edges" in figure["text"]
        assert diagnostic == (name in ("accuracy", "access"))
        assert (OPERATOR_ONLY in figure["drawn"]) == diagnostic
        assert OPERATOR_ONLY not in figure["text"]  # once: the drawing carries it wherever it is copied to
        if diagnostic:
            (link,) = [attributes for tag, attributes in figure["tags"] if tag == "a"]
            assert "operator-only" in link["download"]
            for row in csv.DictReader(io.StringIO(unquote(link["href"].split(",", 1)[1]))):
                open_to_all = row["access"] == "none" and row["model"] != "reference"
                assert row["audience"] == ("anybody" if open_to_all else "operator only")


def test_figures_follow_the_colours_of_the_page(html):
    assert "#010a" not in html
    for name in ("ink", "main", "second", "one-hop", "non-private"):
        assert f"var(--{name})" in html


def test_record_survives_json_and_gives_the_same_bytes(html):
    text = to_json(record())
    assert from_json(text) == record()
    json.loads(text, parse_constant=pytest.fail)
    assert page(from_json(text)) == html


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: "null",
        lambda text: text.replace('"format": 3', '"format": 2'),
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
    text = to_json(record())
    assert damage(text) != text
    with pytest.raises(InputError, match=r"run\.json"):
        from_json(damage(text))


def test_verdict_says_when_the_control_is_not_beaten():
    first, second, third, _ = verdict(record())
    assert "beats the stronger zero-budget control (self-training: 0.760) at epsilon 4." in first
    assert "does not beat the stronger zero-budget control" in second
    assert "at epsilon 1:" in second
    assert "never beats it" in third  # ahead by 0.010, which is less than the deviation of 0.014
    single = dataclasses.replace(
        record(),
        models=tuple(dataclasses.replace(m, none=m.none[:1], own_edges=m.own_edges[:1]) for m in record().models),
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


def test_missing_matplotlib_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"gcon\[report\]"):
        check_matplotlib()
