"""`gcon audit`: names, results in words and files, resuming, and how it ends."""

import csv
import json

import pytest
from typer.testing import CliRunner

from gcon.cli.app import app
from gcon_lab.audits import measure
from gcon_lab.audits.cases.registry import ABOUT

SURE = ("--confidence", "0.9999999")  # a test must not fail by chance


def gcon(*words):
    return CliRunner().invoke(app, ["audit", *words])


def test_list_names_every_mechanism():
    assert [line.split()[0] for line in gcon("list").stdout.splitlines()] == list(ABOUT)
    assert json.loads(gcon("list", "--json").stdout)["mechanisms"] == list(ABOUT)


def test_findings_as_json():
    done = gcon("walk-moments", "noisy-graph", "--runs", "200", "--json", *SURE)
    assert done.exit_code == 0
    told = json.loads(done.stdout)
    assert told["good"]
    assert told["error_of_a_bound"] == pytest.approx(1e-7 / 6, rel=1e-3)
    assert [finding["mechanism"] for finding in told["findings"]] == ["walk-moments"] * 2 + ["noisy-graph"] * 2
    assert all(finding["runs"] == 200 for finding in told["findings"])


def test_files_with_broken_variants(tmp_path):
    done = gcon("walk-moments", "--broken", "--runs", "100000", *SURE, "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "2 of 2 cases hold; 6 of 6 broken variants are caught." in done.stdout
    rows = list(csv.DictReader((tmp_path / "audit.csv").read_text().splitlines()))
    assert rows[0]["variant"] == "as it is"
    assert {row["outcome"] for row in rows} == {"holds", "caught"}
    page = (tmp_path / "audit.md").read_text()
    assert "## Broken on purpose" in page
    assert "gcon audit walk-moments --broken --runs 100000" in page
    assert not (tmp_path / "units").exists()


def test_interrupted_work_resumes(tmp_path, monkeypatch):
    measured = []

    def interrupted(case, variant=None, **settings):
        if len(measured) == 2:
            raise KeyboardInterrupt
        measured.append(variant)
        return original(case, variant, **settings)

    original = measure.measure
    monkeypatch.setattr(measure, "measure", interrupted)
    words = ("walk-moments", "--broken", "--runs", "100000", *SURE, "--out", str(tmp_path))
    assert gcon(*words).exit_code != 0
    assert len(list((tmp_path / "units").iterdir())) == 2
    monkeypatch.setattr(measure, "measure", original)
    monkeypatch.setattr(measure, "measure", lambda *given, **more: measured.append(1) or original(*given, **more))
    assert gcon(*words).exit_code == 0
    assert len(measured) == 8  # two before, six after


def test_a_variant_that_is_missed_ends_with_1(monkeypatch):
    missed = measure.Finding(
        mechanism="walk-moments", options="", variant="broken", runs=1, outcome="MISSED", good=False
    )
    monkeypatch.setattr(measure, "measure", lambda *_, **__: missed)
    done = gcon("walk-moments", "--broken")
    assert done.exit_code == 1
    assert "MISSED" in done.stdout
    assert not json.loads(gcon("walk-moments", "--broken", "--json").stdout)["good"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nothing",), "gcon audit list"),
        (("walk-moments", "--runs", "5"), "runs"),
        (("walk-moments", "--confidence", "1"), "confidence"),
    ],
)
def test_bad_input_ends_with_2(words, told):
    done = gcon(*words)
    assert done.exit_code == 2
    assert told in done.output
