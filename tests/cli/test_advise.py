"""`gcon advise`: free without --look, paid exactly once with it, one JSON object, refusals before anything is made."""

import json

import pytest


@pytest.fixture
def folder(run, tmp_path):
    assert run("data", "make", "--out", tmp_path, "--nodes", 300, "--quiet")[0] == 0
    return tmp_path


@pytest.fixture
def files(folder):
    return ["--edges", folder / "edges.csv", "--nodes", folder / "nodes.csv"]


def spent(run, folder):
    return json.loads(run("ledger", "show", folder / "edges.csv.ledger", "--json")[1])


def test_free_advice_opens_no_edges_file_and_makes_no_ledger(run, folder, files):
    said = []
    for text in (None, "source,target\n", "this is no table\x00"):
        if text is not None:
            (folder / "edges.csv").write_text(text)
        said.append(run("advise", *files, "--epsilon", 1))
    (folder / "edges.csv").unlink()
    said.append(run("advise", *files, "--epsilon", 1))
    said.append(run("advise", "--nodes", folder / "nodes.csv", "--epsilon", 1))
    assert len(set(said)) == 1
    code, out, _ = said[0]
    assert code == 0
    assert "No edge was read" in out
    assert all(f"{access} (" in out for access in ("none", "cached", "own-edges", "public-graph"))
    assert not (folder / "edges.csv.ledger").exists()


def test_a_look_pays_the_ledger_once(run, folder, files):
    code, out, _ = run("advise", *files, "--epsilon", 1, "--look", 0.1, "--json")
    told = json.loads(out)
    assert code == 0
    assert told["look"]["receipt"]["budget"] == {"epsilon": 0.1, "delta": 1e-5}
    assert told["look"]["receipt"]["keeps_promise"]
    assert {verdict["epsilon"] for verdict in told["verdicts"]} == {0.9}
    shown = spent(run, folder)
    assert shown["total"]["epsilon"] == 0.1
    assert [entry["kind"] for entry in shown["entries"]] == ["release"]


def test_a_ceiling_refuses_the_look(run, folder, files):
    ledger = folder / "edges.csv.ledger"
    assert run("advise", *files, "--look", 0.1, "--quiet")[0] == 0
    assert run("ledger", "set-ceiling", ledger, "--epsilon", 0.15, "--delta", 1e-4, "--quiet")[0] == 0
    code, out, _ = run("advise", *files, "--look", 0.1, "--json")
    assert (code, json.loads(out)["error"]) == (3, "BudgetExceededError")
    assert spent(run, folder)["total"]["epsilon"] == 0.1


def test_json_is_one_object_with_everything(run, files):
    told = json.loads(run("advise", *files, "--access", "own-edges", "--json")[1])
    assert set(told) == {
        "facts",
        "delta",
        "protect_edges",
        "mean_degree",
        "run_time",
        "noise",
        "look",
        "look_errors",
        "verdicts",
        "enough",
        "remarks",
    }
    assert told["look"] is None
    assert [verdict["epsilon"] for verdict in told["verdicts"]] == [0.5, 1.0, 2.0, 3.0, 4.0]
    assert {verdict["access"] for verdict in told["verdicts"]} == {"own-edges"}
    assert run("advise", *files, "--quiet")[1] == ""


def test_a_guess_and_several_edges_are_free(run, folder, files):
    told = json.loads(run("advise", *files, "--epsilon", 2, "--mean-degree", 40, "--protect-edges", 2, "--json")[1])
    (noise,) = told["noise"]
    assert (told["mean_degree"], told["protect_edges"], noise["protect_edges"]) == (40, 2, 2)
    assert 0.9 < noise["one_edge"] < 1.05
    cached = next(verdict for verdict in told["verdicts"] if verdict["access"] == "cached")
    assert cached["stage"] == "counts"
    assert cached["expectation"]["epsilon"] == noise["one_edge"]
    assert not (folder / "edges.csv.ledger").exists()


def test_a_seeded_look_repeats_and_says_that_there_is_no_promise(run, folder, files):
    said = [run("advise", *files, "--look", 0.1, "--seed", 3, "--ledger", folder / name) for name in ("a", "b")]
    assert said[0][:2] == said[1][:2]
    assert "have another ledger" in said[1][2]
    assert "no promise" in said[0][1]
    total = json.loads(run("ledger", "show", folder / "a", "--json")[1])["total"]
    assert total["epsilon"] == "inf"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--epsilon", 0], "epsilon"),
        (["--epsilon", "inf"], "epsilon"),
        (["--epsilon", 1, "--look", 1], "look"),
        (["--epsilon", 1, "--look", 2], "look"),
        (["--look", 0], "look"),
        (["--look", "inf"], "look"),
        (["--access", "everything"], "access"),
        (["--delta", 0], "delta"),
        (["--seed", 1], "seed"),
        (["--mean-degree", 0], "mean_degree"),
        (["--mean-degree", 5, "--look", 0.1], "mean_degree"),
        (["--protect-edges", 11], "protect_edges"),
        (["--protect-edges", 0, "--look", 0.1], "protect_edges"),
    ],
)
def test_bad_calls_are_refused_before_a_ledger_is_made(run, folder, files, arguments, words):
    code, out, _ = run("advise", *files, *arguments, "--json")
    told = json.loads(out)
    assert code == told["exit_code"] == 2
    assert words in told["message"]
    assert not (folder / "edges.csv.ledger").exists()


@pytest.mark.parametrize("look", [[], ["--look", 0.1]])
def test_nodes_that_a_training_takes_are_advised_on_without_validation_nodes(run, folder, files, look):
    table = folder / "nodes.csv"
    table.write_text(table.read_text().replace(",val", ",test"))
    code, out, _ = run("advise", *files, *look, "--epsilon", 1, "--json")
    told = json.loads(out)
    assert (code, told["facts"]["num_validation"]) == (0, 0)
    assert told["remarks"][0].startswith("No validation nodes: what is expected")
    assert (folder / "edges.csv.ledger").exists() == bool(look)


def test_no_graph_is_named(run):
    code, out, _ = run("advise", "--json")
    assert code == 2
    assert json.loads(out)["message"].startswith(
        "--nodes: are needed; got none. Pass --nodes FILE, or name a data set: cora-ml"
    )


def test_a_delta_above_one_over_n_is_warned_about_and_one_half_is_refused(run, folder):
    code, out, said = run("advise", "--nodes", folder / "nodes.csv", "--delta", 0.01, "--json")
    assert code == 0
    assert json.loads(out)["delta"] == 0.01
    assert said.startswith("warning: delta=0.01 is above 1/n for 300 nodes")
    assert run("advise", "--nodes", folder / "nodes.csv", "--delta", 1e-3, "--json")[2] == ""
    code, out, _ = run("advise", "--nodes", folder / "nodes.csv", "--delta", 0.5, "--json")
    assert (code, "below 0.5" in json.loads(out)["message"]) == (2, True)
