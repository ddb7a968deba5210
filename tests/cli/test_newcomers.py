"""What newcomers were not told, or told too late: one test for each of their notes."""

import errno
import json
import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from tests.command import gcon as command
from tests.pages.site.models import moments

import gcon
from gcon.choose.paid_accuracy import MOST_NOISE, USEFUL_NOISE, epsilon_for, paid_noise
from gcon.cli.evaluate import _told
from gcon.cli.output import reporting
from gcon.errors import PromiseWarning, warn_caller


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Files of a small graph, and a model of them."""
    folder = tmp_path_factory.mktemp("world")
    assert command("data", "make", "--out", folder, "--nodes", 300, "--quiet") == 0
    files = ("--edges", folder / "edges.csv", "--nodes", folder / "nodes.csv")
    assert command("train", *files, "--epsilon", 1, "--out", folder / "model", "--quiet") == 0
    return folder


def files(world):
    return ["--edges", world / "edges.csv", "--nodes", world / "nodes.csv"]


def test_the_noise_of_a_number_is_said_before_it_is_paid(run, world, monkeypatch, capsys):
    asked = ["evaluate", world / "model", *files(world), "--access", "own-edges", "--paid"]
    number = sum(line.split(",")[2] == "test" for line in (world / "nodes.csv").read_text().splitlines())
    at_charge = []
    reserve = gcon.FileLedger.reserve

    def noting(self, request):
        at_charge.append(capsys.readouterr().err)
        return reserve(self, request)

    monkeypatch.setattr(gcon.FileLedger, "reserve", noting)
    code, _, _ = run(*asked, 0.1)
    assert code == 0
    noise, useful = paid_noise(0.1, number), epsilon_for(USEFUL_NOISE, number)
    assert noise > MOST_NOISE
    assert (
        f"Epsilon 0.1 buys a share with noise: a standard deviation of {noise:.2g} on {number} nodes." in at_charge[0]
    )
    assert f"warning: With epsilon 0.1 on {number} nodes" in at_charge[0]
    assert f"Epsilon {useful:.2g} would make that {USEFUL_NOISE}" in at_charge[0]
    assert "warning" not in run(*asked, useful)[2]
    told = json.loads(run(*asked, useful, "--json")[1])
    assert told["standard_deviation"] == paid_noise(useful, number) <= USEFUL_NOISE


def test_a_check_warns_of_what_spoils_a_model(run, world, tmp_path):
    rows = ["id,label,age,income", *(f"n{row},{'ab'[row // 2 % 2]},{row % 70},{1000 * row}" for row in range(200))]
    (tmp_path / "n.csv").write_text("\n".join(rows) + "\n")
    code, out, err = run("data", "check", "--nodes", tmp_path / "n.csv")
    assert (code, out) == (0, "nothing is wrong\n")
    scales, test, validation = err.splitlines()
    assert scales.startswith("warning: features: columns should differ in scale by at most 1000 times")
    assert test.startswith("warning: split: no nodes are marked 'test'")
    assert validation.startswith("warning: split: no nodes are marked 'val'")
    told = json.loads(run("data", "check", "--nodes", tmp_path / "n.csv", "--json")[1])
    assert [f"warning: {words}" for words in told["warnings"]] == err.splitlines()
    assert told["ok"]
    rows = [f"{row},{part}" for row, part in zip(rows, ["split", "test", *["train", "val"] * 100], strict=False)]
    (tmp_path / "n.csv").write_text("\n".join(row.replace("000,", ",") for row in rows) + "\n")
    (few,) = json.loads(run("data", "check", "--nodes", tmp_path / "n.csv", "--json")[1])["warnings"]
    assert few.startswith("split: 1 node is marked 'test' (column 'split'), and fewer than 20")
    assert json.loads(run("data", "check", "--nodes", world / "nodes.csv", "--json")[1])["warnings"] == []


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_training_on_all_labels_says_what_a_check_says(run, tmp_path, more):
    run("data", "make", "--out", tmp_path, "--nodes", 60, "--classes", 2, "--quiet")
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    training = ["train", "--nodes", nodes, "--edges", edges, "--epsilon", 1, "--method", "paper", "--hidden", 0]
    assert "warning" not in run(*training, "--out", tmp_path / "split", *more)[2]
    pd.read_csv(nodes).drop(columns="split").to_csv(nodes, index=False)
    checked = run("data", "check", "--nodes", nodes)[2].splitlines()
    assert [words[:46] for words in checked] == [
        "warning: split: no nodes are marked 'test' (co",
        "warning: split: no nodes are marked 'val': cho",
    ]
    code, out, err = run(*training, "--out", tmp_path / "model", *more)
    assert (code, [words for words in err.splitlines() if words in checked]) == (0, checked)
    assert not more or json.loads(out)["out"] == str(tmp_path / "model")
    assert "marked" not in run(*training, "--out", tmp_path / "quiet", "--quiet")[2]


def test_the_same_warning_is_said_once(capsys):
    with reporting(as_json=False, quiet=False):
        for words in ("delta", "delta", "scales"):
            warn_caller(words, PromiseWarning)
    assert capsys.readouterr().err == "warning: delta\nwarning: scales\n"


def test_a_score_that_noise_made_more_than_all_is_called_noise():
    mask = torch.ones(500, dtype=torch.bool)
    told = _told(moments(), {"micro_f1": 534 / 500}, "own-edges", mask, publishable=True, words="Paid.")[1]
    assert told == "micro-F1 1.0680 (more than all: noise) on 500 nodes (own-edges)\nPaid."


def test_help_names_the_extra_of_the_service(run):
    for asked in (["--help"], ["serve", "--help"], ["serve", "run", "--help"]):
        assert "its extra 'serve'" in " ".join(run(*asked)[1].replace("\u2502", " ").split())


def test_a_report_without_nodes_names_the_option(run, world, tmp_path):
    code, out, _ = run("report", world / "model", "--out", tmp_path / "r.html")
    assert code == 0
    assert "No accuracy: no table of public nodes was given (--nodes FILE" in out


TARGETS = {
    "train": lambda w, to: ["train", *files(w), "--epsilon", 1, "--out", to / "model"],
    "predict": lambda w, to: ["predict", w / "model", *files(w), "--out", to / "p.csv"],
    "report": lambda w, to: ["report", w / "model", "--out", to / "r.html"],
    "site": lambda w, to: ["site", w / "model", "--out", to],
    "a new site": lambda w, to: ["site", w / "model", "--out", to / "pages"],
    "export onnx": lambda w, to: ["export", w / "model", "--onnx", to / "m.onnx"],
    "export hub": lambda w, to: ["export", w / "model", "--hub", to / "hub"],
    "data make": lambda _, to: ["data", "make", "--out", to],
    "data make anew": lambda _, to: ["data", "make", "--out", to / "friends"],
    "data convert": lambda w, to: ["data", "convert", *files(w), "--out", to, "--format", "parquet"],
    "demo": lambda _, to: ["demo", "--out", to],
    "tune": lambda w, to: ["tune", *files(w), "--epsilon", 1, "--out", to / "settings.toml"],
    "tokens": lambda w, to: ["serve", "tokens", "issue", w / "t.db", "--nodes", w / "nodes.csv", "--out", to / "t.csv"],
    "token file": lambda w, to: [
        "serve",
        "tokens",
        "issue",
        to / "t.db",
        "--nodes",
        w / "nodes.csv",
        "--out",
        w / "t.csv",
    ],
}


@pytest.mark.parametrize("verb", TARGETS)
def test_a_folder_that_is_read_only_gets_one_answer(run, world, tmp_path, monkeypatch, verb):
    """The system says it to others than root, for whom these tests may run: so it is said here."""
    make, make_folder = tempfile.TemporaryFile, os.mkdir

    def refused(*args, **options):
        if options["dir"] == closed:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return make(*args, **options)

    def no_folder(path, *args, **options):
        if Path(path).parent == closed:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        make_folder(path, *args, **options)

    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    monkeypatch.setattr(os, "mkdir", no_folder)
    before = sorted(path.name for path in world.iterdir())
    code, out, err = run(*TARGETS[verb](world, closed))
    assert (code, out, list(closed.iterdir())) == (2, "", [])
    assert sorted(path.name for path in world.iterdir()) == before
    rule, fix = (
        "must lie in a folder that can be written to",
        "Choose another one, or check permissions and free space.",
    )
    assert f": {rule}; got {closed}" in err
    assert err.endswith(f"(Permission denied). {fix}\n")


POINT = "Write numbers with a point (1.5)"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("n.csv", 'id,label,x\na,u,"1,5"\nb,v,"2,25"\n'),
        ("n.csv", 'id,label,x\na,u,"1.000,5"\nb,v,"2"\n'),
        ("n.tsv", "id\tlabel\tx\na\tu\t-1,5\nb\tv\t2,25\n"),
        ("n.csv", "id;label;x\na;u;1,5\nb;v;2,25\n"),
        ("n.csv", "id,label,x\na,u,1,5\nb,v,2,25\n"),
    ],
)
def test_decimal_commas_are_told_to_be_points(run, tmp_path, name, text):
    (tmp_path / name).write_text(text)
    code, out, _ = run("data", "check", "--nodes", tmp_path / name)
    assert code == 2
    assert POINT in out
    assert "--categorical" not in out


def test_decimal_commas_in_a_frame_are_told_to_be_points():
    frame = pd.DataFrame({"x": ["1,5", "2,25"], "town": ["Bonn, 5", "Ulm, 6"]})
    with pytest.raises(gcon.GconError) as caught:
        gcon.NodeClassifier().fit(frame, np.array([0, 1]), edges=[])
    assert POINT in str(caught.value)
    with pytest.raises(gcon.GconError, match=r"Pass categorical=\['town'\]"):
        gcon.NodeClassifier().fit(frame[["town"]], np.array([0, 1]), edges=[])


def test_nodes_of_the_training_are_told_of_their_better_answers(run, tmp_path):
    graph = ("--edges", tmp_path / "edges.csv", "--nodes", tmp_path / "nodes.csv")
    command("data", "make", "--out", tmp_path, "--nodes", 400, "--mean-degree", 40, "--quiet")
    assert command("train", *graph, "--epsilon", 8, "--out", tmp_path / "model", "--quiet") == 0
    for verb, *more in (("evaluate",), ("predict", "--out", tmp_path / "p.csv", "--overwrite")):
        asked = [verb, tmp_path / "model", "--nodes", tmp_path / "nodes.csv", *more]
        code, _, err = run(*asked)
        assert code == 0
        assert "--access cached uses the counts released of them too" in err
        assert "cached" not in run(*asked, "--access", "cached")[2]
        assert run(*asked, "--json")[2] == ""
    lines = (tmp_path / "nodes.csv").read_text().splitlines()
    (tmp_path / "nodes.csv").write_text("\n".join([*lines[:1], *lines[40:]]) + "\n")  # not the table of the training
    assert "--access cached" not in run("evaluate", tmp_path / "model", "--nodes", tmp_path / "nodes.csv")[2]


def test_nodes_whose_labels_a_model_learned_are_no_test_nodes(run, world, tmp_path):
    """A typo in the name of the split column makes every label teach; an accuracy on these nodes would be far too good."""
    head, *rows = (world / "nodes.csv").read_text().splitlines()
    (tmp_path / "typo.csv").write_text("\n".join([head.replace("split", "part"), *rows]) + "\n")
    graph = ("--edges", world / "edges.csv", "--nodes", tmp_path / "typo.csv")
    code, _, err = run("train", *graph, "--epsilon", 1, "--out", tmp_path / "model")
    assert code == 2
    assert "its name must be 'split'" in err
    assert command("train", *graph, "--epsilon", 1, "--drop", "part", "--out", tmp_path / "model", "--quiet") == 0
    number = sum(row.split(",")[2] == "test" for row in rows)
    for access in ("none", "cached", "own-edges"):
        code, _, err = run("evaluate", tmp_path / "model", *files(world), "--access", access)
        assert code == 2
        assert f"got {number} of {number} test nodes that taught this model" in err
    code, _, _ = run("report", tmp_path / "model", *files(world), "--out", tmp_path / "report.html")
    assert code == 0
    page = (tmp_path / "report.html").read_text()
    assert f"{number} of the {number} scored nodes taught the model" in page


def test_own_edges_need_an_edges_file_and_say_so(run, world):
    code, _, err = run("evaluate", world / "model", "--nodes", world / "nodes.csv", "--access", "own-edges")
    assert code == 2
    assert "--edges: is needed for own-edges" in err
