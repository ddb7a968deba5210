"""`gcon reproduce`: one JSON object, exit code 2 and nothing written for a wrong call. The work: lab/tests/experiments."""

import json

import pytest


@pytest.mark.parametrize("what", ["table2", "claims"])
def test_the_result_is_one_json_object(run, tmp_path, what):
    code, out, err = run("reproduce", what, "--graphs", "made-up", "--out", tmp_path / "results", "--json")
    assert (code, err) == (0, "")
    names = {f"{what}.csv", f"{what}.md", "index.html", "results.md"}
    told = json.loads(out)
    assert set(told) == {"complete", "missing_units", "files"}
    assert (told["complete"], told["missing_units"]) == (True, 0)
    assert sorted(told["files"]) == sorted(str(tmp_path / "results" / name) for name in names)
    assert {path.name for path in (tmp_path / "results").iterdir() if path.is_file()} == names


def test_in_words(run, tmp_path):
    arguments = ["reproduce", "table2", "--quick", "--graphs", "made-up", "--out", tmp_path]
    code, out, _ = run(*arguments)
    assert code == 0
    assert out.startswith("Complete. 4 files in ")
    assert str(tmp_path / "index.html") in out
    assert "gcon reproduce table2 --quick --graphs made-up --out OUT" in (tmp_path / "results.md").read_text()
    assert run(*arguments, "--quiet")[1] == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fig5"], "what: must be one of table2, fig1, fig2, fig3, fig4, claims, all, beyond; got fig5"),
        (["fig1", "--graphs", "atlantis"], "must be one of cora-ml, citeseer, pubmed, actor, made-up; got atlantis"),
        (["fig1", "--graphs", "made-up,"], "graphs: must be one of"),
        (["fig1", "--graphs", "made-up,made-up"], "each once"),
        (["fig1", "--runs", "0"], "runs: must be at least 1"),
        (["fig1", "--workers", "-1"], "workers: must be at least 1"),
        (["fig1", "--minutes", "nan"], "minutes: must be above 0"),
        (["fig1", "--competitors", "nowhere.csv"], "competitors: must be a file; got nowhere.csv"),
        (["fig1", "--runs", "many"], "--runs"),
        ([], "what"),
    ],
)
def test_wrong_calls_have_exit_code_2_and_write_nothing(run, tmp_path, arguments, words):
    more = ["--out", tmp_path / "results"]
    code, out, _ = run("reproduce", *arguments, *more, "--json")
    told = json.loads(out)
    assert code == told["exit_code"] == 2
    assert words in told["message"].lower() or words in told["message"]
    code, out, err = run("reproduce", *arguments, *more)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_must_be_named(run):
    code, out, _ = run("reproduce", "table2", "--json")
    assert code == 2
    assert "--out" in json.loads(out)["message"]
