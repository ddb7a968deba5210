"""The command line, verb by verb: one JSON object, exit codes, nothing half written, charged only when edges were used."""

import csv
import json
import subprocess
import sys

import pytest

PAPER = ["--method", "paper"]
PLAN = ["plan", *PAPER, "--epsilon", "1", "--delta", "1e-5", "--classes", "7", "--dim", "16", "--labelled", "2995"]


@pytest.fixture
def files(run, tmp_path):
    assert run("data", "make", "--out", tmp_path, "--nodes", 300, "--quiet")[0] == 0
    return ["--edges", tmp_path / "edges.csv", "--nodes", tmp_path / "nodes.csv"]


def train(run, files, out, *more):
    return run("train", *files, "--epsilon", 1, "--out", out, *more)


def test_plan_prints_theorem_one_for_exactly_this_budget(run):
    arguments = [*PAPER, "--epsilon", 0.5, "--delta", 1 / 16316, "--classes", 7, "--dim", 16, "--labelled", 140]
    code, out, _ = run(
        "plan",
        *arguments,
        "--restart",
        0.2,
        "--steps",
        "inf",
        "--ridge",
        0.01,
        "--influence",
        "paper",
        "--xi",
        0.001,
        "--json",
    )
    found = json.loads(out)
    assert code == 0
    expected = {
        "edge_influence": 8.0,
        "noise_radius_quantile": 39.25769121,
        "ridge": 1.247275911,
        "weight_norm_bound": 5127.960788,
        "jacobian_epsilon": 20.61097654,
        "extra_ridge": 563.2535892,
        "noise_rate": 4.384289149e-5,
    }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-9)
    assert found["certificate_reserve"]["epsilon"] == pytest.approx(2 * 0.5 / 1000)


def test_plan_several_steps_and_no_noise(run):
    found = json.loads(run(*PLAN, "--steps", 0, "--steps", 1, "--steps", 2, "--influence", "paper", "--json")[1])
    assert found["edge_influence"] == pytest.approx((0 + 0.4 + 0.48) / 3)
    assert json.loads(run(*PLAN, "--restart", 1, "--json")[1])["noise_rate"] is None
    assert json.loads(run(*PLAN, "--json")[1])["edge_influence"] == pytest.approx(0.4)


def test_plan_in_words_says_what_it_means_for_an_attacker(run):
    code, out, _ = run(*PLAN)
    assert code == 0
    assert "73.1 % of the time" in out
    assert run(*PLAN, "--quiet")[1] == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["--epsilon", "0"], "epsilon"),
        (["--delta", "2"], "delta"),
        (["--classes", "1"], "classes"),
        (["--dim", "0"], "dim"),
        (["--labelled", "0"], "labelled"),
        (["--restart", "1.5"], "restart"),
        (["--steps", "many"], "steps"),
        (["--restart", "0", "--steps", "inf"], "restart"),
        (["--loss", "hinge"], "loss"),
        (["--ridge", "-1"], "ridge"),
        (["--noise-share", "1"], "noise_share"),
        (["--influence", "best"], "influence"),
        (["--influence", "sharp", "--restart", "0.25"], "sharp"),
        (["--diameter", "3"], "diameter"),
        (["--xi", "0"], "margin"),
        (["--epsilon", "one"], "--epsilon"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_bad_plans_are_one_json_object_with_exit_code_2(run, change, words):
    code, out, _ = run(*PLAN, *change, "--json")
    found = json.loads(out)
    assert code == found["exit_code"] == 2
    assert words in found["message"]


def test_configuration_file_gives_defaults_and_options_win(run, tmp_path):
    config = tmp_path / "plan.toml"
    config.write_text(
        "method = 'paper'\nepsilon = 1.0\ndelta = 1e-5\nclasses = 7\ndim = 16\nlabelled = 2995\nrestart = 0.6\n"
    )
    found = json.loads(run("plan", "--config", config, "--json")[1])
    assert found["edge_influence"] == pytest.approx(0.8)
    assert json.loads(run("plan", "--config", config, "--restart", 0.8, "--json")[1])[
        "edge_influence"
    ] == pytest.approx(0.4)
    config.write_text("epsilom = 1.0\n")
    assert "epsilom" in json.loads(run("plan", "--config", config, "--json")[1])["message"]
    config.write_text("epsilon = ")
    assert run("plan", "--config", config, "--json")[0] == 2


def test_from_files_to_a_released_model_and_back(run, files, tmp_path):
    model, ledger = tmp_path / "model", tmp_path / "edges.csv.ledger"
    code, out, _ = train(run, files, model, "--json")
    trained = json.loads(out)
    assert code == 0
    assert trained["statement"]["epsilon"] == 1.0
    assert sorted(entry.name for entry in model.iterdir()) == [
        "README.md",
        "model.safetensors",
        "privacy.json",
        "privacy.md",
        "release.json",
    ]
    stated = json.loads(run("statement", model, "--json")[1])
    assert stated["sentences"] == trained["sentences"]

    code, out, _ = run("predict", model, *files, "--out", tmp_path / "public.csv", "--json")
    assert (code, json.loads(out)["publishable"]) == (0, True)
    code, out, _ = run("predict", model, *files, "--access", "own-edges", "--out", tmp_path / "own.parquet", "--json")
    assert (code, json.loads(out)["publishable"]) == (0, False)
    assert (tmp_path / "own.parquet").stat().st_mode & 0o777 == 0o600
    lines = (tmp_path / "public.csv").read_text().splitlines()
    assert len(lines) == 301
    assert lines[0] == "id,label,probability_chess,probability_choir,probability_climbing,probability_cooking,audience"
    assert lines[1].endswith(",public")
    import polars

    assert set(polars.read_parquet(tmp_path / "own.parquet")["audience"]) == {"owner only"}

    free = json.loads(run("evaluate", model, *files, "--json")[1])
    own = json.loads(run("evaluate", model, *files, "--access", "own-edges", "--json")[1])
    paid = json.loads(run("evaluate", model, *files, "--access", "own-edges", "--paid", 0.5, "--json")[1])
    assert 0 <= free["micro_f1"] <= 1
    assert (free["publishable"], own["publishable"], paid["publishable"]) == (True, False, True)
    assert "Do not publish" in own["note"]

    shown = json.loads(run("ledger", "show", ledger, "--json")[1])
    assert [entry["kind"] for entry in shown["entries"]] == ["release", "delivery", "diagnostic", "release"]
    assert shown["total"] == {"epsilon": 1.5, "delta": 1e-5, "composition": "basic"}
    assert run("ledger", "verify", ledger)[0] == 0


def test_scores_go_by_the_names_of_the_classes(run, files, tmp_path):
    """A file in which one class has no split numbers its classes otherwise; scores still go by the classes' names."""
    assert train(run, files, tmp_path / "model", "--quiet")[0] == 0
    predict = ["predict", tmp_path / "model", *files, "--access", "none", "--out", tmp_path / "p.csv", "--quiet"]
    assert run(*predict)[0] == 0
    with (tmp_path / "p.csv").open() as lines:
        predicted = {row["id"]: row["label"] for row in csv.DictReader(lines)}
    with (tmp_path / "nodes.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    for row in rows:
        if row["label"] == "chess":
            row["split"] = ""  # it leaves all splits, so that the next class becomes number 0
    with (tmp_path / "nodes.csv").open("w", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    kept = [row for row in rows if row["split"] == "test"]
    right = sum(predicted[row["id"]] == row["label"] for row in kept)

    after = json.loads(run("evaluate", tmp_path / "model", *files, "--access", "none", "--json")[1])
    assert after["nodes"] == len(kept)
    assert after["micro_f1"] == pytest.approx(right / len(kept), abs=1e-12)


def test_scores_of_a_model_without_a_promise_may_not_be_published(run, files, tmp_path):
    assert train(run, files, tmp_path / "model", "--seed", 3, "--quiet")[0] == 0
    for more in (["--access", "none"], ["--access", "own-edges"], ["--access", "own-edges", "--paid", 1]):
        told = json.loads(run("evaluate", tmp_path / "model", *files, *more, "--json")[1])
        assert told["publishable"] is False
        assert "no promise" in told["note"]


def test_prediction_needs_no_labels_and_access_none_no_edges(run, files, tmp_path):
    assert train(run, files, tmp_path / "model", "--quiet")[0] == 0
    rows = [line.split(",") for line in (tmp_path / "nodes.csv").read_text().splitlines()]
    drop = {rows[0].index("label"), rows[0].index("split")}
    bare = [",".join(cell for place, cell in enumerate(row) if place not in drop) for row in rows]
    (tmp_path / "bare.csv").write_text("\n".join(bare) + "\n")
    whole, less = tmp_path / "whole.csv", tmp_path / "less.csv"
    assert run("predict", tmp_path / "model", *files, "--out", whole)[0] == 0
    assert run("predict", tmp_path / "model", "--nodes", tmp_path / "bare.csv", "--out", less)[0] == 0
    assert whole.read_bytes() == less.read_bytes()
    arguments = ["--nodes", tmp_path / "bare.csv", "--access", "own-edges", "--out", tmp_path / "own.csv"]
    assert run("predict", tmp_path / "model", *arguments, "--json")[0] == 2  # needs the edges
    assert run("predict", tmp_path / "model", *arguments, "--edges", tmp_path / "edges.csv")[0] == 0


def test_a_ceiling_refuses_and_nothing_is_written_or_charged(run, files, tmp_path):
    ledger = tmp_path / "edges.csv.ledger"
    assert train(run, files, tmp_path / "first", "--quiet")[0] == 0
    assert run("ledger", "set-ceiling", ledger, "--epsilon", 1.5, "--delta", 1e-4)[0] == 0
    code, out, _ = train(run, files, tmp_path / "second", "--json")
    assert (code, json.loads(out)["error"]) == (3, "BudgetExceededError")
    assert not (tmp_path / "second").exists()
    assert json.loads(run("ledger", "show", ledger, "--json")[1])["total"]["epsilon"] == 1.0
    assert run("ledger", "set-ceiling", ledger, "--none")[0] == 0
    assert train(run, files, tmp_path / "second", "--quiet")[0] == 0


def test_a_seed_carries_no_promise_and_is_not_told(run, files, tmp_path):
    code, out, _ = train(run, files, tmp_path / "model", "--seed", 987654, "--json")
    assert code == 0
    assert json.loads(out)["statement"]["promise"] is False
    for path in [*(tmp_path / "model").iterdir(), tmp_path / "edges.csv.ledger"]:
        assert b"987654" not in path.read_bytes()


def test_no_certificate_has_its_own_exit_code_and_stays_charged(run, files, tmp_path, monkeypatch):
    monkeypatch.setattr("gcon.mechanisms.perturbed_objective.MOST_ITERATIONS", 1)
    code, out, _ = train(run, files, tmp_path / "model", *PAPER, "--ridge", 0.01, "--json")
    assert (code, json.loads(out)["error"]) == (4, "NoCertificateError")
    assert not (tmp_path / "model").exists()
    shown = json.loads(run("ledger", "show", tmp_path / "edges.csv.ledger", "--json")[1])
    assert shown["total"]["epsilon"] == 1.0
    assert shown["entries"][0]["outcome"] == "withheld"


def broken(name):
    def change(tmp_path):
        edges, nodes = tmp_path / "edges.csv", tmp_path / "nodes.csv"
        if name == "edges file missing":
            edges.unlink()
        elif name == "edges file of zero bytes":
            edges.write_text("")
        elif name == "edge to an unknown node":
            edges.write_text(edges.read_text() + "0,987654\n")
        elif name == "edges with a weight":
            edges.write_text("source,target,weight\n0,1,0.5\n")
        elif name == "edges without their columns":
            edges.write_text("from,to\n0,1\n")
        elif name == "nodes without id":
            nodes.write_text(nodes.read_text().replace("id,", "name,", 1))
        elif name == "repeated node":
            nodes.write_text(nodes.read_text() + nodes.read_text().splitlines()[1] + "\n")
        elif name == "unknown split":
            nodes.write_text(nodes.read_text().replace(",train,", ",training,", 1))
        elif name == "feature that is no number":
            lines = nodes.read_text().splitlines()
            lines[1] = lines[1].rsplit(",", 1)[0] + ",much"
            nodes.write_text("\n".join(lines) + "\n")
        elif name == "nodes file missing":
            nodes.unlink()

    return change


BROKEN = [
    "edges file missing",
    "edges file of zero bytes",
    "edge to an unknown node",
    "edges with a weight",
    "edges without their columns",
    "nodes without id",
    "repeated node",
    "unknown split",
    "feature that is no number",
    "nodes file missing",
]


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_leave_nothing_behind_and_charge_nothing(run, files, tmp_path, name):
    broken(name)(tmp_path)
    code, out, _ = train(run, files, tmp_path / "model", "--json")
    assert code == 2, out
    assert "987654" not in out
    assert not (tmp_path / "model").exists()
    assert not (tmp_path / "edges.csv.ledger").exists()
    code, out, _ = run("data", "check", *files, "--json")
    assert code == 2
    assert "987654" not in out


@pytest.mark.parametrize(
    "change",
    [
        ["--method", "magic"],
        [*PAPER, "--device", "abacus"],
        [*PAPER, "--expand", "some"],
        [*PAPER, "--hidden", "-1"],
        [*PAPER, "--inference-restart", "2"],
        ["--epsilon", "nan"],
        ["--delta", "0"],
    ],
)
def test_bad_settings_are_refused_before_anything_is_read(run, files, tmp_path, change):
    code, out, _ = run("train", *files, "--out", tmp_path / "model", "--epsilon", 1, *change, "--json")
    assert (code, json.loads(out)["exit_code"]) == (2, 2)
    assert not (tmp_path / "edges.csv.ledger").exists()


def test_other_refusals(run, files, tmp_path):
    assert train(run, files, tmp_path / "no" / "where", "--json")[0] == 2
    assert train(run, files, tmp_path, "--json")[0] == 2  # exists
    assert run("train", "--epsilon", 1, "--out", tmp_path / "m", "--json")[0] == 2  # no source
    assert run("train", "cora-ml", *files, "--epsilon", 1, "--out", tmp_path / "m", "--json")[0] == 2  # two sources
    assert run("train", "atlantis", "--epsilon", 1, "--out", tmp_path / "m", "--json")[0] == 2
    assert run("statement", tmp_path / "nothing", "--json")[0] == 6
    assert run("ledger", "show", tmp_path / "nothing", "--json")[0] == 2
    assert train(run, files, tmp_path / "model", "--quiet")[0] == 0
    assert (
        run("predict", tmp_path / "model", *files, "--access", "public-graph", "--out", tmp_path / "p.csv", "--json")[0]
        == 5
    )
    assert run("predict", tmp_path / "model", *files, "--out", tmp_path / "p.xlsx", "--json")[0] == 2
    assert run("evaluate", tmp_path / "model", *files, "--paid", 1, "--json")[0] == 2
    (tmp_path / "model" / "model.safetensors").write_bytes(b"short")
    assert run("statement", tmp_path / "model", "--json")[0] == 6
    ledger = tmp_path / "edges.csv.ledger"
    ledger.write_text(ledger.read_text().replace('"epsilon":1.0', '"epsilon":0.1'))
    assert run("ledger", "verify", ledger, "--json")[0] == 6
    assert train(run, files, tmp_path / "second", "--json")[0] == 6


def test_data_verbs(run):
    names = [entry["name"] for entry in json.loads(run("data", "list", "--json")[1])["data_sets"]]
    assert set(names) == {"cora-ml", "citeseer", "pubmed", "actor", "cora"}
    assert json.loads(run("data", "show", "pubmed", "--json")[1])["num_nodes"] == 19717
    assert run("data", "show", "atlantis", "--json")[0] == 2


@pytest.mark.parametrize(
    "verb", [[], ["plan"], ["train"], ["predict"], ["evaluate"], ["statement"], ["ledger"], ["data"]]
)
def test_every_verb_has_help(run, verb):
    code, out, _ = run(*verb, "--help")
    assert code == 0
    assert "Usage" in out


def test_the_installed_command_runs():
    found = subprocess.run(
        [sys.executable, "-m", "gcon.cli.app", "version", "--json"], check=False, capture_output=True, text=True
    )
    assert found.returncode == 0
    assert json.loads(found.stdout)["gcon"]
