"""`gcon report` on a release, and the name that a data set gets at training."""

import json

import pytest
from tests.command import gcon

from gcon.privacy.ledger_file import FileLedger


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model of a made-up graph with a name, and what was paid for afterwards."""
    folder = tmp_path_factory.mktemp("trained")
    files = ["--nodes", folder / "nodes.csv", "--edges", folder / "edges.csv"]
    assert gcon("data", "make", "--out", folder, "--nodes", 150, "--classes", 2) == 0
    call = ["train", *files, "--epsilon", 2, "--method", "paper", "--out", folder / "model", "--name", "Our circles"]
    assert gcon(*call) == 0
    return folder, files


def test_a_report_of_ones_own_model(run, trained, tmp_path):
    folder, files = trained
    ledger = FileLedger(folder / "edges.csv.ledger")
    before = ledger.path.read_bytes()
    page = tmp_path / "report.html"
    code, out, err = run("report", folder / "model", *files, "--out", page, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["report"] == str(page)
    assert found["publishable"]
    assert "The control, which spends nothing" in found["headline"][1]
    text = page.read_text()
    assert "Our circles: what the model does" in text
    assert "node classification" in text  # a line of the ledger
    assert ledger.path.read_bytes() == before  # no edge was opened, nothing was paid or recorded
    assert run("report", folder / "model", "--out", page, "--name", "Other <words>")[0] == 0  # replaces its own
    assert "Other &lt;words&gt;: what" in page.read_text()


def test_what_was_bought_is_on_the_report(run, trained, tmp_path):
    folder, files = trained
    code, out, _ = run("evaluate", folder / "model", *files, "--access", "own-edges", "--paid", 5, "--json")
    assert code == 0
    page = tmp_path / "report.html"
    code, out, _ = run("report", folder / "model", "--ledger", folder / "edges.csv.ledger", "--out", page)
    assert code == 0
    assert "by a noisy count that was paid for" in out


def test_what_is_no_report_is_never_replaced(run, trained, tmp_path):
    folder, _ = trained
    (tmp_path / "mine.html").write_text("<p>mine")
    for target in (tmp_path / "mine.html", tmp_path):
        assert run("report", folder / "model", "--out", target)[0] == 2
    assert (tmp_path / "mine.html").read_text() == "<p>mine"
    FileLedger(tmp_path / "other.ledger", data_set="other")
    code, _, err = run("report", folder / "model", "--ledger", tmp_path / "other.ledger", "--out", tmp_path / "new")
    assert code == 2
    assert "'Our circles'; got that of 'other'" in err
    assert not (tmp_path / "new").exists()


def test_the_name_belongs_to_the_ledger(run, trained, tmp_path):
    folder, files = trained
    assert FileLedger(folder / "edges.csv.ledger").data_set == "Our circles"
    call = ["train", *files, "--epsilon", 2, "--method", "paper", "--out", tmp_path / "model"]
    code, _, err = run(*call, "--name", "Another")
    assert code == 2
    assert "--name: must be the name in the ledger" in err
    assert not (tmp_path / "model").exists()
    pages = tmp_path / "pages"
    assert run("site", folder / "model", "--out", pages, "--name", "Friends")[0] == 0
    assert all("Friends" in (pages / name).read_text() for name in ("index.html", "model.html"))
