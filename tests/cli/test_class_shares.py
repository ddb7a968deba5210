"""`gcon train --class-share NAME=SHARE`: what people know about their classes, without validation nodes."""

import json
import sys
from dataclasses import replace

import polars
import pytest
import torch

import gcon
from gcon.cli import app as cli
from gcon.errors import AnswersWarning, InputError, ReleaseFormatError
from gcon.files.datasets import social_circles
from gcon.methods.controls import MomentsWithoutEdges
from gcon.methods.moments import Moments
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness
from gcon.release.read import load_release

NAMES = ("even", "odd")


def run(*arguments):
    """Exit code, and the one JSON object that was said."""
    with pytest.MonkeyPatch.context() as patch:
        said = []
        patch.setattr(sys, "argv", ["gcon", *map(str, arguments), "--json"])
        patch.setattr("sys.stdout.write", said.append)
        with pytest.raises(SystemExit) as stopped:
            cli.main()
    return stopped.value.code, json.loads("".join(said))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Two classes with words for names, and no node marked val."""
    place = tmp_path_factory.mktemp("shares")
    assert run("data", "make", "--out", place, "--nodes", 120)[0] == 0
    nodes = polars.read_csv(place / "nodes.csv")
    words = (
        polars.when(polars.col("label").rank("dense") % 2 == 0)
        .then(polars.lit(NAMES[0]))
        .otherwise(polars.lit(NAMES[1]))
    )
    split = polars.col("split").replace("val", "test")
    nodes.with_columns(label=words, split=split).write_csv(place / "nodes.csv")
    return place


def train(place, *options):
    files = ("--edges", place / "edges.csv", "--nodes", place / "nodes.csv")
    return run("train", *files, "--epsilon", 2, "--seed", 1, *options)


def test_answers_are_as_common_as_classes_were_said_to_be(place, capsys):
    shares = {}
    for told in (0.2, 0.8):
        out = place / f"told-{told}"
        options = ("--class-share", f"even={told}", "--class-share", f"odd={1 - told:g}", "--out", out)
        assert train(place, *options)[0] == 0
        assert "--class-share" not in capsys.readouterr().err  # who told needs no remark
        model = load_release(out)
        shares[told] = float(model.answers[:, 0].mean())
        assert model.class_shares == pytest.approx((told, 1 - told))
        assert "who vouches that this is public knowledge" in " ".join(model.statement().sentences)
        assert "and class shares that were told," in (out / "README.md").read_text()
    assert shares[0.8] > shares[0.2] + 0.2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["even"], "NAME=SHARE"),
        (["even=much"], "NAME=SHARE"),
        (["even=1.5"], "NAME=SHARE"),
        (["=0.5"], "NAME=SHARE"),
        (["even=0.5", "even=0.5"], "once for every class"),
        (["even=0.5"], "by its name: even, odd"),
        (["even=0.5", "prime=0.5"], "by its name: even, odd"),
        (["even=0.5", "odd=0.2"], "together 1"),
    ],
)
def test_what_is_refused_before_anything_is_paid(place, options, words):
    shares = [word for each in options for word in ("--class-share", each)]
    ledger = place / "untouched.ledger"
    code, said = train(place, *shares, "--ledger", ledger, "--out", place / "never")
    assert code == 2
    assert words in said["message"]
    assert not (place / "never").exists()
    assert not ledger.exists() or run("ledger", "show", ledger)[1]["total"]["epsilon"] == 0


def test_the_papers_method_has_no_use_for_them(place):
    code, said = train(place, "--method", "paper", "--class-share", "even=0.5", "--out", place / "never")
    assert code == 2
    assert "is an option of the default" in said["message"]


def test_the_estimator_and_the_method_are_told_the_same():
    with_them = social_circles(200, seed=3)
    graph = replace(with_them, nodes=replace(with_them.nodes, validation_mask=torch.zeros(200, dtype=torch.bool)))
    told = dict(zip(graph.nodes.class_names, (0.4, 0.3, 0.2, 0.1), strict=True))
    fitted = gcon.NodeClassifier(epsilon=2.0, class_shares=told, random_state=5, ledger=MemoryLedger("one")).fit(graph)
    trained = Moments(epsilon=2.0, class_shares=told).train(
        graph.nodes, graph.edges, ledger=MemoryLedger("two"), randomness=SeededRandomness(5)
    )
    assert torch.equal(fitted.model_.answers, trained.answers)
    silent = Moments(epsilon=2.0).train(
        graph.nodes, graph.edges, ledger=MemoryLedger("three"), randomness=SeededRandomness(5)
    )
    assert not torch.equal(silent.answers, trained.answers)  # what was learned without edges is not mixed up
    with pytest.warns(AnswersWarning, match=r"^class_shares .*: not used, since validation nodes"):
        unused = Moments(epsilon=2.0, class_shares=told).train(
            with_them.nodes, with_them.edges, ledger=MemoryLedger("four"), randomness=SeededRandomness(5)
        )
    assert unused.class_shares is None  # validation nodes tell better
    ledger = MemoryLedger("five")
    with pytest.raises(InputError, match="class_shares"):
        gcon.NodeClassifier(class_shares={0: 1.0}, ledger=ledger).fit(graph)
    assert ledger.total().epsilon == 0


def test_who_teaches_is_said_before_anything_is_charged(place, tmp_path, monkeypatch, capsys):
    """While it can still be changed: who could tell class shares is told so."""
    said, reserve = [], gcon.FileLedger.reserve

    def noting(self, request):
        said.append(capsys.readouterr().err)
        return reserve(self, request)

    monkeypatch.setattr(gcon.FileLedger, "reserve", noting)
    teach = polars.read_csv(place / "nodes.csv").filter(polars.col("split") == "train").height
    assert train(place, "--out", tmp_path / "untold")[0] == 0
    assert f"No node is marked 'val': {teach} labelled nodes teach, and nothing says how common" in said[0]
    assert "--class-share NAME=SHARE helps" in said[0]
    assert run("data", "make", "--out", tmp_path, "--nodes", 625)[0] == 0
    polars.read_csv(tmp_path / "nodes.csv").drop("split").write_csv(tmp_path / "nodes.csv")
    names = polars.read_csv(tmp_path / "nodes.csv")["label"].unique()
    shares = [word for name in names for word in ("--class-share", f"{name}=0.25")]
    assert train(tmp_path, *shares, "--out", tmp_path / "all")[0] == 0
    assert "No node is marked 'val': 500 labelled nodes teach, and 125 are set aside to choose by" in said[1]
    assert "warning: class_shares (--class-share): not used" in said[1]


def test_a_release_with_other_shares_than_may_be_is_refused(place, tmp_path):
    shares = ("--class-share", "even=0.5", "--class-share", "odd=0.5")
    files = ("--edges", place / "edges.csv", "--nodes", place / "nodes.csv")
    assert run("train", *files, "--epsilon", 2, *shares, "--out", tmp_path / "model")[0] == 0
    assert run("statement", tmp_path / "model", "--verify")[0] == 0
    file = tmp_path / "model" / "release.json"
    record = json.loads(file.read_text())
    assert record["settings"]["class_shares"] == [0.5, 0.5]
    for wrong in ([0.5], [0.9, 0.9], ["much", 0.5]):
        record["settings"]["class_shares"] = wrong
        file.write_text(json.dumps(record))
        with pytest.raises(ReleaseFormatError):
            load_release(tmp_path / "model")


def test_the_reports_control_is_told_them_too(place, tmp_path, monkeypatch):
    told, learn = [], MomentsWithoutEdges.learn
    monkeypatch.setattr(
        MomentsWithoutEdges, "learn", lambda self, nodes: told.append(nodes.class_shares) or learn(self, nodes)
    )
    shares = ("--class-share", "even=0.5", "--class-share", "odd=0.5")
    assert train(place, *shares, "--out", tmp_path / "model")[0] == 0
    files = ("--nodes", place / "nodes.csv", "--out", tmp_path / "report.html")
    assert run("report", tmp_path / "model", *files)[0] == 0
    assert told == [(0.5, 0.5)]
