"""`gcon baseline`: every method from the shell, what it pays, and what is refused before anything is read or paid."""

import contextlib
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcon.errors import InputError
from gcon.methods.method import PrivateMethod
from gcon_lab.cli import baseline as baseline_module
from gcon_lab.cli.baseline import _built
from gcon_lab.methods import METHODS
from gcon_lab.methods.competitor import settings_of

QUICK = {
    "self-training": [],
    "moments": [],
    "moments-without-edges": [],
    "encoder": [],
    "encoder-one-hop": [],
    "dp-sgd": ["--set", "steps=5"],
}


def test_the_list_for_people_has_two_columns(run):
    lines = run("baseline", "list")[1].splitlines()
    starts = {line.index(METHODS[line.split()[0]].about) for line in lines}
    assert (len(lines), len(starts)) == (len(METHODS), 1)


@pytest.fixture
def files(run, tmp_path):
    assert run("data", "make", "--out", tmp_path, "--nodes", 200, "--quiet")[0] == 0
    return ["--edges", tmp_path / "edges.csv", "--nodes", tmp_path / "nodes.csv"]


def test_the_list_says_what_each_promises(run):
    code, out, _ = run("baseline", "list", "--json")
    listed = json.loads(out)["methods"]
    assert code == 0
    assert [entry["name"] for entry in listed] == list(METHODS)
    assert all(entry["about"] for entry in listed)
    assert {entry["name"] for entry in listed if not entry["private"]} == {"gcn", "gpr-gnn"}


@pytest.mark.parametrize("name", METHODS)
def test_every_method_trains_pays_and_is_scored(run, files, tmp_path, name):
    spends = issubclass(METHODS[name], PrivateMethod)
    options = [*(["--epsilon", 1] if spends else []), *QUICK.get(name, ["--set", "epochs=3"])]
    code, out, _ = run("baseline", name, *files, *options, "--json")
    assert code == 0
    told = json.loads(out)
    assert {entry["access"] for entry in told["scores"]} <= {"none", "cached", "own-edges", "full"}
    assert all(entry["publishable"] == (entry["access"] in ("none", "cached")) for entry in told["scores"])
    assert told["keeps_promise"] == (name not in ("gcn", "gpr-gnn"))
    assert len(told["receipts"]) == spends
    for receipt in told["receipts"]:
        assert set(receipt) == {"mechanism", "budget", "keeps_promise", "randomness", "total", "plan"}
        assert (receipt["keeps_promise"], receipt["randomness"]) == (True, "operating system")
        assert receipt["budget"]["epsilon"] == receipt["total"]["epsilon"] == 1.0
    shown = json.loads(run("ledger", "show", tmp_path / "edges.csv.ledger", "--json")[1])
    total = shown["total"]["epsilon"]
    assert total == ("inf" if name in ("gcn", "gpr-gnn") else 1.0 if spends else 0.0)
    assert [entry["kind"] for entry in shown["entries"]].count("diagnostic") == sum(
        entry["access"] == "own-edges" for entry in told["scores"]
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["atlantis"], "must be one of"),
        (["gap"], "is needed by gap"),
        (["mlp", "--epsilon", "1"], "is not spent by mlp"),
        (["gap", "--epsilon", "0"], "epsilon"),
        (["gap", "--epsilon", "1", "--set", "hop=1"], "must name a setting of gap"),
        (["gap", "--epsilon", "1", "--set", "hops=0"], "hops"),
        (["gap", "--epsilon", "1", "--set", "hops=many"], "hops"),
        (["lpgnet", "--epsilon", "1", "--set", "stacked=3"], "stacked"),
        (["gap", "--epsilon", "1", "--seed", "-1"], "random_state"),
        (["gap", "--epsilon", "1", "--set", "hidden"], "must be NAME=VALUE"),
        (["gap", "--epsilon", "1", "--set", "hidden="], "hidden: must be a whole number"),
        (["gap", "--epsilon", "1", "--set", "hidden=none"], "hidden: must be a whole number"),
        (["gap", "--epsilon", "1", "--set", "hidden=1.5"], "hidden: must be a whole number"),
        (["dp-sgd", "--epsilon", "1", "--set", "sampling=none"], "sampling: must be a number"),
        (["progap", "--epsilon", "1", "--set", "train_earlier_blocks=no"], "must be true or false"),
        (["dpgcn", "--epsilon", "1", "--set", "variant=lapgraph"], "variant: must be one of top-pairs, random-flips"),
        (["gap", "--epsilon", "1", "--set", "epsilon=2"], "must name a setting of gap"),
    ],
)
def test_wrong_calls_are_refused_before_anything_is_paid(run, files, tmp_path, arguments, words):
    before = sorted(tmp_path.iterdir())
    code, out, _ = run("baseline", arguments[0], *files, *arguments[1:], "--json")
    assert code == 2
    assert words in json.loads(out)["message"]
    assert sorted(tmp_path.iterdir()) == before


def test_a_ceiling_refuses_what_is_not_private(run, files, tmp_path):
    ledger = tmp_path / "edges.csv.ledger"
    assert run("baseline", "gap", *files, "--epsilon", 1, "--set", "epochs=2", "--quiet")[0] == 0
    assert run("ledger", "set-ceiling", ledger, "--epsilon", 2, "--delta", 1e-4)[0] == 0
    assert run("baseline", "gcn", *files, "--set", "epochs=2", "--json")[0] == 3
    assert json.loads(run("ledger", "show", ledger, "--json")[1])["total"]["epsilon"] == 1.0


GARBAGE = [
    "",
    " ",
    "=",
    "no",
    "yes",
    "none",
    "nan",
    "inf",
    "-inf",
    "-2",
    "1e999",
    "-1e1",
    "0x10",
    "1.5",
    "1,5",
    "[]",
    "²",
]
GARBAGE += [
    "{}",
    "1" * 400,
    "1" * 5000,
    "\x00",
    "\udcff",
    "tRuE",
    "true",
    "1e1",
    "1",
    "0",
    "0.5",
    "None",
    "'adam'",
    "%s",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_no_setting_ends_in_a_traceback_or_costs_anything(run, files, tmp_path, name):
    kind = METHODS[name]
    budget = {"epsilon": 1.0} if issubclass(kind, PrivateMethod) else {}
    before, refused = sorted(tmp_path.iterdir()), 0
    for field, text in itertools.product(settings_of(kind), GARBAGE):
        try:
            built = _built(name, epsilon=budget.get("epsilon"), delta=None, given=[f"{field}={text}"])
        except InputError:
            refused += 1
        else:  # it was understood
            settings_of(kind)[field].check(getattr(built, field))
            continue
        if refused % 4:  # a verb takes a while: every fourth one, other texts for every field
            continue
        spent = ["--epsilon", 1] if budget else []
        code, out, _ = run("baseline", name, *files, *spent, "--set", f"{field}={text}", "--json")
        assert code == 2
        assert field in json.loads(out)["message"]
    assert refused >= 15 * len(settings_of(kind))
    assert sorted(tmp_path.iterdir()) == before


@given(st.sampled_from(sorted(METHODS)), st.data(), st.text() | st.floats().map(str) | st.integers().map(str))
def test_any_text_is_understood_or_refused(name, data, text):
    kind = METHODS[name]
    field = data.draw(st.sampled_from(sorted(settings_of(kind))))
    epsilon = 1.0 if issubclass(kind, PrivateMethod) else None
    with contextlib.suppress(InputError):
        built = _built(name, epsilon=epsilon, delta=None, given=[f"{field}={text}"])
        value = getattr(built, field)
        assert value is None or isinstance(value, settings_of(kind)[field].kind)


@pytest.mark.parametrize(
    ("options", "why"),
    [(["--epsilon", 1, "--seed", 5], "drawn from a seed"), (["--epsilon", "inf"], "no noise was added")],
)
def test_without_a_promise_nothing_is_publishable(run, files, tmp_path, options, why):
    code, out, _ = run("baseline", "gap", *files, *options, "--set", "epochs=2", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["keeps_promise"] is False
    assert [entry["access"] for entry in told["scores"]] == ["cached", "own-edges"]
    for entry in told["scores"]:
        assert entry["publishable"] is False
        assert entry["promise"].startswith("There is no promise: ")
        assert why in entry["promise"]
    (receipt,) = told["receipts"]
    assert receipt["keeps_promise"] is False
    assert receipt["randomness"] == ("seeded: no promise" if "--seed" in options else "operating system")
    assert receipt["total"]["epsilon"] == "inf"
    assert json.loads(run("ledger", "show", tmp_path / "edges.csv.ledger", "--json")[1])["total"]["epsilon"] == "inf"


def test_words_say_what_was_paid_and_whether_the_promise_holds(run, files):
    _, kept, _ = run("baseline", "gap", *files, "--epsilon", 1, "--set", "epochs=2")
    assert "epsilon 1.0, delta 1e-05, noise: operating system; the promise holds." in kept
    assert "may be published" in kept
    _, void, _ = run("baseline", "gap", *files, "--epsilon", 1, "--set", "epochs=2", "--seed", 3)
    assert "noise: seeded: no promise; there is no promise. The ledger's total: epsilon inf" in void
    assert "may be published" not in void


def test_however_it_ends_it_says_what_was_charged(run, files, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(baseline_module, "_scores", stopped)
    code, _, told = run("baseline", "encoder-one-hop", *files)
    assert (code, "Nothing was charged" in told) == (130, True)
    code, _, told = run("baseline", "gap", *files, "--epsilon", 1, "--set", "epochs=3")
    assert code == 130
    assert "Charged: epsilon 1, delta 1e-05, entry 0 (reserved)" in " ".join(told.split())
    assert "Nothing was charged" not in told
