"""`gcon demo` and `gcon report`, small: a few nodes, one run."""

import json
import math
from types import SimpleNamespace

import pytest

from gcon.cli import demo
from gcon.pages.report import OPERATOR_ONLY, ModelScores, from_json


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(demo, "NUM_NODES", 300)
    monkeypatch.delenv("GCON_DATA", raising=False)


def test_demo_writes_a_report_and_prints_one_json_object(run, tmp_path):
    folder = tmp_path / "demo"
    code, out, err = run("demo", "--out", folder, "--runs", 1, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["report"] == str(folder / "report.html")
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "run.json"]
    kinds = [model["kind"] for model in found["models"]]
    assert kinds == ["edge-free", "one-hop", "self-training", *["private"] * 4, *["paper"] * 4, "non-private"]
    assert [model["epsilon"] for model in found["models"] if model["kind"] == "private"] == [0.5, 1.0, 2.0, 4.0]
    assert [bool(model["cached"]) for model in found["models"]] == [False] * 3 + [True] * 4 + [False] * 4 + [True]
    # The non-private reference is not in the demo's books.
    assert found["total"]["epsilon"] == pytest.approx(15.0)  # two models at each budget: ours and the paper's
    data = from_json((folder / "run.json").read_bytes())
    assert [line.kind for line in data.ledger] == ["release"] * 8 + ["diagnostic"] * 3
    assert math.isfinite(data.total_epsilon)
    levels = [level.noise_to_edge for level in data.noise]
    assert levels == sorted(levels, reverse=True)
    # What was really released: the branch that was taken, not the moments alone. With little noise counts are sure to come.
    assert all(level.released for level in data.noise)
    assert any(name.startswith("neighbour counts") for name in data.noise[-1].released)
    assert sum(map(sum, data.confusion)) == sum(entry.count for entry in data.reliability) > 0
    (shown,) = (model for model in data.private if model.epsilon == data.shown_epsilon)
    right = sum(row[place] for place, row in enumerate(data.confusion)) / sum(map(sum, data.confusion))
    assert right == pytest.approx(shown.cached[0])  # the matrix is that of the headline

    page = (folder / "report.html").read_bytes()
    assert OPERATOR_ONLY.encode() in page
    (folder / "report.html").unlink()
    assert run("report", folder)[:2] == (0, f"Written: {folder / 'report.html'}\n")
    assert (folder / "report.html").read_bytes() == page

    text = (folder / "run.json").read_text()
    (folder / "run.json").write_text(text[:-200])
    (folder / "report.html").unlink()
    code, out, err = run("report", folder)
    assert code == 2
    assert "run.json" in err
    assert [path.name for path in folder.iterdir()] == ["run.json"]
    code, out, _ = run("report", folder, "--json")
    assert (code, json.loads(out)["exit_code"]) == (2, 2)


def scores(kind, *, epsilon=None, none=(), cached=(), own=()):
    return ModelScores(kind=kind, name=kind, epsilon=epsilon, none=none, cached=cached, own_edges=own)


def test_what_was_won_is_said_against_the_same_model_without_edges():
    free, control = scores("edge-free", none=(0.5, 0.6)), scores("self-training", own=(0.9, 0.9))
    other = scores("private", epsilon=2.0, none=(1.0, 1.0), cached=(1.0, 1.0), own=(1.0, 1.0))
    asked = scores("private", epsilon=1.0, none=(0.5, 0.5), cached=(0.7, 0.8), own=(0.8, 0.9))
    models = (free, control, other, asked)
    data = SimpleNamespace(
        shown_epsilon=1.0,
        private=(other, asked),
        of_kind=lambda kind: tuple(model for model in models if model.kind == kind),
    )
    said = demo.won(data)
    assert "75.0% of the test nodes, +20.0 points" in said
    assert "85.0%, -5.0 points" in said  # also when nothing was won


@pytest.mark.slow
def test_demo_in_words_names_path_table_and_verdict(run, tmp_path):
    code, out, err = run("demo", "--out", tmp_path, "--runs", 2)
    assert code == 0
    assert demo.CONTROL in out
    assert demo.REFERENCE in out
    assert "control" in out.split("\n\n")[1]
    assert "not for publication" in out
    *_, won, report = out.splitlines()
    assert str(tmp_path / "report.html") in report
    assert won.startswith("Won at epsilon 1: ")
    assert "22/22" in err


def test_bad_calls_end_with_2_and_leave_nothing(run, tmp_path):
    assert run("demo", "--out", tmp_path / "new", "--runs", 0)[0] == 2
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").write_text("")
    assert run("demo", "--out", tmp_path / "file", "--runs", 1)[0] == 2
    assert run("report", tmp_path / "nowhere")[0] == 2
    assert run("report", tmp_path)[0] == 2


@pytest.mark.slow
def test_quiet(run, tmp_path):
    assert run("demo", "--out", tmp_path, "--runs", 1, "--quiet") == (0, "", "")


@pytest.mark.parametrize("name", ["run.json", "report.html"])
def test_files_that_are_no_demos_are_not_replaced(run, tmp_path, name):
    (tmp_path / name).write_text("mine")
    code, _, said = run("demo", "--out", tmp_path, "--runs", 1)
    assert code == 2
    assert "Choose another folder, or remove them." in said
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "mine")]
