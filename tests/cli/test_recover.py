"""`gcon ledger recover`: what was paid for and could not be put in its place."""

import json
import math
from dataclasses import replace

import pytest

from gcon.choose.paid_look import take_look
from gcon.cli import train
from gcon.privacy.budget import NOTHING, Budget
from gcon.privacy.deferred_ledger import DeferredLedger
from gcon.privacy.ledger import Kind, Outcome, Request
from gcon.privacy.ledger_file import FileLedger
from gcon.release.recovery import keep
from gcon.release.store import load_release


@pytest.fixture
def kept(run, tmp_path, monkeypatch, request):
    """Two models whose target appeared while they were trained; gives the ledger. With a parameter: a third is there before."""
    finish = train.finish

    def late(output, books, *, release):
        release[1].mkdir()
        (release[1] / "notes").write_text("mine")
        finish(output, books, release=release)

    run("data", "make", "--out", tmp_path, "--nodes", 60, "--classes", 2)
    files = ["--edges", tmp_path / "edges.csv", "--nodes", tmp_path / "nodes.csv", "--method", "paper", "--hidden", 0]
    if hasattr(request, "param"):
        older = tmp_path / "edges.csv.ledger.recovery" / request.param
        older.mkdir(parents=True)
        (older / "kept.json").write_text("of a ledger that was deleted")
    with monkeypatch.context() as patch:
        patch.setattr(train, "finish", late)
        for name in ("one", "two"):
            code, _, said = run("train", *files, "--epsilon", 1, "--out", tmp_path / name)
            assert code == 9
            assert "must not exist yet" in said
            assert "The model is whole, and kept in" in said
            assert [path.name for path in (tmp_path / name).iterdir()] == ["notes"]
    return tmp_path / "edges.csv.ledger"


def test_kept_models_are_listed_and_finished_one_by_one(run, kept, tmp_path):
    code, said, _ = run("ledger", "recover", kept, "--json")
    assert (code, [each["entry"] for each in json.loads(said)["kept"]]) == (0, [0, 1])
    code, _, said = run("ledger", "recover", kept, "--out", tmp_path / "found")
    assert (code, "these are kept: 0, 1" in said) == (2, True)
    code, _, said = run("ledger", "recover", kept, "--out", tmp_path / "one", "--entry", 0)
    assert (code, "must not exist yet" in said) == (2, True)  # it stays kept
    code, _, said = run("ledger", "recover", kept, "--out", tmp_path, "--entry", 1)
    assert (code, "must not exist yet" in said, "overwrite" in said) == (2, True, False), said
    code, said, _ = run("ledger", "recover", kept, "--out", tmp_path / "found", "--entry", 1)
    assert (code, f"Written: {tmp_path / 'found'}" in said) == (0, True)
    assert load_release(tmp_path / "found").receipt.total.epsilon == 2
    assert [entry.outcome for entry in FileLedger(kept).entries()] == [Outcome.RESERVED, Outcome.RELEASED]
    assert run("ledger", "recover", kept, "--out", tmp_path / "last")[0] == 0
    assert run("ledger", "recover", kept)[1] == "Nothing is kept.\n"
    assert FileLedger(kept).total().epsilon == 2
    assert not kept.with_name(f"{kept.name}.recovery").exists()


@pytest.mark.parametrize("kept", ["entry-1"], indirect=True)
def test_what_an_older_ledger_left_is_in_nobodys_way(run, kept, tmp_path):
    assert run("ledger", "recover", kept, "--out", tmp_path / "found", "--entry", 1)[0] == 0
    assert load_release(tmp_path / "found").receipt.total.epsilon == 2
    assert [path.name for path in sorted(kept.with_name(f"{kept.name}.recovery").iterdir())] == ["entry-0", "entry-1"]


def test_a_damaged_ledger_keeps_no_model_back(run, kept, tmp_path):
    kept.write_bytes(kept.read_bytes().replace(b"node classification", b"node classificatiom"))
    assert run("ledger", "recover", kept, "--out", tmp_path / "found", "--entry", 1)[0] == 0
    assert load_release(tmp_path / "found").receipt.total.epsilon == 2


def test_a_damaged_ledger_loses_no_number_that_is_kept_for_it(run, tmp_path):
    path = tmp_path / "friends.ledger"
    books = DeferredLedger(FileLedger(path, data_set="friends"))
    request = Request(kind=Kind.RELEASE, mechanism="test", purpose="test", cost=Budget(1.0, 0.0))
    books.settle(books.reserve(request), Outcome.RELEASED)
    note = keep(path, books.charges, out="", result={"micro_f1": 0.75}) / "kept.json"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"purpose":"test"', b'"purpose":"tost"'))
    run("ledger", "recover", path)
    assert note.exists()
    path.write_bytes(whole)
    assert run("ledger", "recover", path)[:2] == (0, "Settled: entry 0.\n")
    assert FileLedger(path).entries()[0].result == {"micro_f1": 0.75}


def test_a_look_is_kept_when_the_advice_is_interrupted_also_where_it_has_no_numbers(run, tmp_path, monkeypatch):
    def divided_by_nothing(*arguments, **options):
        return replace(take_look(*arguments, **options), homophily_error=math.nan, mean_degree_error=math.inf)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("gcon.cli.advise.take_look", divided_by_nothing)
    monkeypatch.setattr("gcon.cli.advise.give_advice", interrupted)
    run("data", "make", "--out", tmp_path, "--nodes", 60, "--classes", 2)
    files = ["--edges", tmp_path / "edges.csv", "--nodes", tmp_path / "nodes.csv"]
    code, _, said = run("advise", *files, "--look", 0.1)
    assert (code, "The result is kept with the entry" in said) == (130, True)
    (entry,) = FileLedger(tmp_path / "edges.csv.ledger").entries()
    assert entry.result["homophily_error"] == "not a number"
    assert entry.result["mean_degree_error"] == math.inf


def test_the_next_command_says_what_a_killed_one_was_charged(run, tmp_path):
    run("data", "make", "--out", tmp_path, "--nodes", 60, "--classes", 2)
    files = ["--edges", tmp_path / "edges.csv", "--nodes", tmp_path / "nodes.csv"]
    books = FileLedger(tmp_path / "edges.csv.ledger", data_set="edges")
    request = Request(
        kind=Kind.RELEASE, mechanism="m", purpose="p", cost=Budget(1.0, 1e-5), randomness="system entropy"
    )
    books.reserve(replace(request, cost=NOTHING))  # and no word more
    assert books.overview().unsettled == ()
    books.reserve(request)
    code, said, _ = run("ledger", "recover", books.path)
    assert (code, "nothing is kept of it: entry 1." in said) == (0, True), said
    assert json.loads(run("ledger", "recover", books.path, "--json")[1])["lost"] == [1]
    words = f"Entry 1 of {books.path} (epsilon 1, delta 1e-05) is charged and was never settled"
    assert words in run("advise", *files, "--look", 0.1)[2]
    assert "never settled" not in run("advise", *files, "--look", 0.1)[2]  # once is enough
    assert books.total() == Budget(1.2, 3e-5)
