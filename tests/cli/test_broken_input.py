"""Broken input, kind by kind: the documented exit code and words, nothing left behind, nothing charged for nothing.

Every kind runs in words and with --json, and also where no ledger exists yet. The edges file holds a marked id, and the
mark must appear nowhere.
"""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import typer

from gcon.cli import app as cli
from gcon.privacy.budget import Budget
from gcon.privacy.ledger_file import FileLedger

pytestmark = pytest.mark.slow

SECRET = "zq-secret"  # part of ids in the edges file
NODES, EDGES, LEDGER, WEIGHTS, RELEASE = (
    Path(name)
    for name in ("nodes.csv", "edges.csv", "edges.csv.ledger", "model/model.safetensors", "model/release.json")
)
TRAIN, PREDICT, OWN, CHECK = "train", "predict", "predict, own edges", "data check"
SHOW, VERIFY, CEILING = "ledger show", "ledger verify", "ledger set-ceiling"
EDGE_VERBS, NODE_VERBS, LEDGER_VERBS = (TRAIN, OWN, CHECK), (TRAIN, PREDICT, CHECK), (SHOW, VERIFY, CEILING)
PAYERS, WRITERS, PREDICTORS = (TRAIN, OWN), (TRAIN, PREDICT, OWN), (PREDICT, OWN)
COMMANDS = {
    TRAIN: "train --edges edges.csv --nodes nodes.csv --epsilon 1 --out new",
    PREDICT: "predict model --nodes nodes.csv --out labels.csv",
    OWN: "predict model --nodes nodes.csv --edges edges.csv --access own-edges --out labels.csv",
    CHECK: "data check --nodes nodes.csv --edges edges.csv",
    SHOW: "ledger show edges.csv.ledger",
    VERIFY: "ledger verify edges.csv.ledger",
    CEILING: "ledger set-ceiling edges.csv.ledger --epsilon 9 --delta 0.001",
}
COMMAND = typer.main.get_command(cli.app)  # built once: hundreds of calls would build it hundreds of times
Change = Callable[[pytest.MonkeyPatch], object]


class Kind(NamedTuple):
    """One way in which input is broken, and what must come of it."""

    change: Change  # what breaks it
    verbs: tuple[str, ...]
    code: int
    words: tuple[str, ...]  # in the message: the parameter or file, the rule, the way out
    more: str = ""  # further arguments
    charged: bool = False


def nothing(_):
    """The call itself is what is broken."""


def holds(path, content):
    """The file holds something else."""
    return lambda _: Path(path).write_bytes(content.encode() if isinstance(content, str) else content)


def plus(path, line):
    """The file has one more line."""
    return lambda _: path.write_text(path.read_text() + line)


def swapped(path, old, new):
    """The first such text in the file is another."""

    def change(_):
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return change


def column(name, value):
    """A column of the nodes file holds one value everywhere; None: there is no such column."""

    def change(_):
        head, *rows = [line.split(",") for line in NODES.read_text().splitlines()]
        place = head.index(name)
        for row in (head, *rows):
            row[place : place + 1] = [] if value is None else [name if row is head else value]
        NODES.write_text("".join(",".join(row) + "\n" for row in (head, *rows)))

    return change


def cut(path, size):
    """Only the first bytes of the file are there."""
    return lambda _: path.write_bytes(path.read_bytes()[:size])


def gone(path):
    """The file or folder is not there."""
    return lambda _: shutil.rmtree(path) if path.is_dir() else path.unlink()


def folder(path):
    """A folder lies where a file is meant to be."""

    def change(_):
        Path(path).unlink(missing_ok=True)
        Path(path).mkdir()

    return change


def ceiling(_):
    """The owner allows less than the next training needs."""
    FileLedger(LEDGER).set_ceiling(Budget(1.5, 1e-4))


def one_iteration(monkeypatch):
    """The solver may take one step only, so it cannot prove its answer."""
    monkeypatch.setattr("gcon.mechanisms.perturbed_objective.MOST_ITERATIONS", 1)


AGAIN = ("damaged or truncated", "Write the file again")
FINITE = ("nodes.csv", "column 'x0'", "must be finite numbers", "in row 61", "Correct these rows")
TEXT = (*FINITE[:-1], "--categorical 'x0'", "--drop 'x0'")
CONFIG, PAPER = "--config defaults.toml", "--method paper"
# Kinds that do not concern the ledger; all but those of `ledger` also run where none exists yet.
INPUTS = {
    # The edges file. Its messages are fixed words.
    "edges of zero bytes": Kind(holds(EDGES, ""), EDGE_VERBS, 2, ("edges.csv", "not be empty", "needs its header")),
    "edges missing": Kind(gone(EDGES), EDGE_VERBS, 2, ("edges.csv", "a file that exists", "Check the path")),
    "edges a folder": Kind(folder(EDGES), EDGE_VERBS, 2, ("edges.csv", "a file that exists", "Check the path")),
    "edge to an unknown id": Kind(
        plus(EDGES, "zq-secret-77,zq-secret-78\n"),
        EDGE_VERBS,
        2,
        ("edges.csv", "every end must be an id of the nodes file", "Add the missing nodes"),
    ),
    "edge with one end": Kind(
        plus(EDGES, "zq-secret-77,\n"), EDGE_VERBS, 2, ("every edge needs two ids", "Complete or drop such edges")
    ),
    "third column": Kind(
        holds(EDGES, "source,target,weight\nzq-secret-77,p1,0.5\n"),
        EDGE_VERBS,
        2,
        ("two columns of ids and nothing else", "'weight'", "--ignore-column NAME"),
    ),
    "wrong delimiter": Kind(
        holds(EDGES, "source;target\nzq-secret-77;p1\n"),
        EDGE_VERBS,
        2,
        ("two columns of ids, by name", "no usable column 'source', 'target'", "by commas", "Name both columns"),
    ),
    "no header": Kind(holds(EDGES, "zq-secret-77,p1\n"), EDGE_VERBS, 2, ("no usable column", "there is no header")),
    "edges not in UTF-8": Kind(holds(EDGES, b"source,target\nzq-secret-\xff,p1\n"), EDGE_VERBS, 2, AGAIN),
    "broken Parquet": Kind(
        holds("edges.parquet", b"PAR1 zq-secret-77 PAR1"), EDGE_VERBS, 2, AGAIN, "--edges edges.parquet"
    ),
    "unknown ending": Kind(
        holds("edges.txt", "zq-secret-77 p1\n"),
        EDGE_VERBS,
        2,
        ("edges.txt", "must end in .csv", "Rename or convert"),
        "--edges edges.txt",
    ),
    "edges from a spreadsheet": Kind(
        holds("edges.xlsx", "PK"),
        EDGE_VERBS,
        2,
        ("edges.xlsx", "must end in .csv", "Save it as CSV"),
        "--edges edges.xlsx",
    ),
    # The nodes file. It is public: rows and values are told.
    "nodes of zero bytes": Kind(holds(NODES, ""), NODE_VERBS, 2, ("nodes.csv", "not be empty", "needs its header")),
    "repeated node id": Kind(
        plus(NODES, "p1,0,,0.5,0.5\n"), NODE_VERBS, 2, ("column 'id'", "may occur once", "rows 2, 61", "Keep one row")
    ),
    "infinite feature": Kind(plus(NODES, "p99,0,,inf,0.5\n"), NODE_VERBS, 2, FINITE),
    "gap that training had not": Kind(plus(NODES, "p99,0,,nan,0.5\n"), (PREDICT,), 2, FINITE),
    "text feature": Kind(plus(NODES, "p99,0,,much,0.5\n"), (TRAIN, CHECK), 2, TEXT),
    "text at prediction": Kind(plus(NODES, "p99,0,,much,0.5\n"), (PREDICT,), 2, FINITE),
    "no id column": Kind(
        swapped(NODES, "id,", "name,"), NODE_VERBS, 2, ("needs the columns 'id'", "among 'name'", "Rename")
    ),
    "no label column": Kind(
        column("label", None), (TRAIN, CHECK), 2, ("needs the columns 'label'", "among 'id'", "Rename")
    ),
    "unknown split word": Kind(
        column("split", "learn"), (TRAIN, CHECK), 2, ("must be train, val, test or empty", "'learn'", "Use these words")
    ),
    "no training nodes": Kind(
        column("split", "test"), (TRAIN, CHECK), 2, ("needs a labelled node for training", "Label some nodes")
    ),
    "one class": Kind(column("label", "a"), (TRAIN, CHECK), 2, ("at least two classes", "['a']", "nothing to learn")),
    "a column that is gone": Kind(
        column("x1", None),
        PREDICTORS,
        2,
        ("nodes.csv", "columns that the model was trained on", "no 'x1'", "Add or rename"),
    ),
    # The release folder.
    "release missing": Kind(gone(Path("model")), PREDICTORS, 6, ("'model' is missing", "Check the path")),
    "truncated weights": Kind(
        cut(WEIGHTS, 40), PREDICTORS, 6, ("model.safetensors", "it was cut or edited", "Get the folder again")
    ),
    "edited weights": Kind(
        lambda _: WEIGHTS.write_bytes(WEIGHTS.read_bytes()[:-1] + bytes([WEIGHTS.read_bytes()[-1] ^ 1])),
        PREDICTORS,
        6,
        ("model.safetensors", "checksum", "Get the folder again"),
    ),
    "edited release.json": Kind(
        swapped(RELEASE, '"homophily": ', '"homophily": 0'),
        PREDICTORS,
        6,
        ("release.json", "damaged or edited", "Get the"),
    ),
    "newer release": Kind(
        swapped(RELEASE, '"version": 4', '"version": 99'), PREDICTORS, 6, ("format version 99", "Install a newer gcon")
    ),
    "file of the release missing": Kind(
        gone(Path("model/privacy.json")), PREDICTORS, 6, ("privacy.json", "is missing", "Get the folder again")
    ),
    # The call.
    "epsilon 0": Kind(nothing, (TRAIN,), 2, ("epsilon", "greater than 0", "0.5 to 4 is usual"), "--epsilon 0"),
    "epsilon in words": Kind(nothing, (TRAIN,), 2, ("'--epsilon'", "valid number", "got 'one'"), "--epsilon one"),
    "epsilon nan": Kind(nothing, (TRAIN,), 2, ("epsilon", "greater than 0", "got nan"), "--epsilon nan"),
    "delta 1": Kind(nothing, (TRAIN,), 2, ("delta", "at least 1e-12", "below 0.5", "Leave it out"), "--delta 1"),
    "unproven bound": Kind(
        nothing, (TRAIN,), 2, ("influence='sharp' is not proven", "'auto'"), f"{PAPER} --influence sharp --restart 0.25"
    ),
    "option of the other mechanism": Kind(
        nothing, (TRAIN,), 2, ("restart", "--method moments", "--method paper"), "--restart 0.5"
    ),
    "cached answers for other nodes": Kind(
        column("x1", "0.25"), (PREDICT,), 2, ("nodes", "must be the training table", "access='none'"), "--access cached"
    ),
    "negative seed": Kind(nothing, (TRAIN,), 2, ("non-negative integer", "Use None"), "--seed -1"),
    "release exists": Kind(folder("new"), (TRAIN,), 2, ("out", "must not exist yet", "Choose another")),
    "nowhere to write": Kind(nothing, WRITERS, 2, ("out", "folder", "first"), "--out no/where.csv"),
    "table a folder": Kind(folder("labels.csv"), PREDICTORS, 2, ("out", "must be a file", "Choose another name")),
    "table of unknown ending": Kind(
        nothing, PREDICTORS, 2, ("out", "must end in .csv", "The ending decides"), "--out labels.xlsx"
    ),
    "unknown access": Kind(nothing, PREDICTORS, 2, ("access", "must be one of", "Use 'none'"), "--access all"),
    "private edges called public": Kind(nothing, (OWN,), 5, ("public-graph", "own-edges"), "--access public-graph"),
    "bad TOML": Kind(holds("defaults.toml", "split = "), WRITERS, 2, ("--config", "TOML", "for example"), CONFIG),
    "unknown key": Kind(
        holds("defaults.toml", "epsilom = 1.0"), WRITERS, 2, ("--config", "epsilom", "long options"), CONFIG
    ),
    "value of a wrong type": Kind(holds("defaults.toml", "split = 'a'"), WRITERS, 2, ("split", "integer"), CONFIG),
    "no certificate": Kind(one_iteration, (TRAIN,), 4, ("stays charged",), f"{PAPER} --ridge 0.01", charged=True),
}
RESTORE = ("Restore it", "from a backup", "what was spent stays spent")
BOOKS = {
    "edited line": Kind(
        swapped(LEDGER, '"epsilon":1.0', '"epsilon":0.1'), PAYERS + LEDGER_VERBS, 6, ("line 2 was edited", *RESTORE)
    ),
    "lines cut off": Kind(cut(LEDGER, 400), PAYERS + LEDGER_VERBS, 6, ("its head knows 3", *RESTORE)),
    "damaged head": Kind(
        holds(f"{LEDGER}.head", "what?\n"), PAYERS + LEDGER_VERBS, 6, ("the head file is damaged", *RESTORE)
    ),
    "newer ledger": Kind(
        swapped(LEDGER, '"version":1', '"version":99'), PAYERS + LEDGER_VERBS, 6, ("of version 99", "update gcon")
    ),
    "another file for a ledger": Kind(
        holds(LEDGER, "dear diary\n"), PAYERS + LEDGER_VERBS, 6, ("not the header of a gcon ledger", "check the path")
    ),
    "another file named as ledger": Kind(
        holds("diary.txt", "dear diary\n"),
        PAYERS,
        6,
        ("diary.txt", "not the header of a gcon ledger", "check the path"),
        "--ledger diary.txt",
    ),
    "ledger missing": Kind(gone(LEDGER), LEDGER_VERBS, 2, ("must be an existing ledger file", "gcon train makes one")),
    "ledger a folder": Kind(folder(LEDGER), LEDGER_VERBS, 2, ("must be an existing ledger file", "gcon train")),
    "folder named as ledger": Kind(
        folder("books"), PAYERS, 2, ("which is not a file", "Put it next to the private data"), "--ledger books"
    ),
    "nowhere to keep the ledger": Kind(
        nothing, PAYERS, 2, ("whose folder does not exist", "Make the folder first"), "--ledger no/books"
    ),
    "ceiling too small": Kind(ceiling, (TRAIN,), 3, ("ledger ceiling", "spent epsilon=1", "left epsilon=0.5")),
    "ceiling and no ceiling": Kind(
        nothing,
        (CEILING,),
        2,
        ("--none: must be the first two, or the last; got epsilon 9.0", "For example --epsilon 2"),
        "--none",
    ),
    "negative ceiling": Kind(nothing, (CEILING,), 2, ("epsilon", "must be at least 0", "Choose"), "--epsilon -1"),
}
KINDS = INPUTS | BOOKS
CASES = [
    pytest.param(kind, verb, fresh, id=f"{name} - {verb}{' - no ledger yet' if fresh else ''}")
    for name, kind in KINDS.items()
    for verb in kind.verbs
    for fresh in ([False, True] if name in INPUTS and verb != CHECK else [False])
]


def call(*arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "app", COMMAND)
        patch.setattr(sys, "argv", ["gcon", *arguments])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
    return stopped.value.code


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Sixty people, a model that was trained on them, and its ledger."""
    place = tmp_path_factory.mktemp("made")
    names = ["zq-secret-77", *(f"p{number}" for number in range(1, 60))]
    rows = [f"{name},{k % 2},{('train', 'val', 'test')[k % 3]},{k % 2}.5,0.{k}\n" for k, name in enumerate(names)]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        NODES.write_text("id,label,split,x0,x1\n" + "".join(rows))
        pairs = zip(names, names[2:] + names[:2], strict=True)
        EDGES.write_text("source,target\n" + "".join(f"{one},{other}\n" for one, other in pairs))
        assert call(*COMMANDS[TRAIN].split(), "--out", "model", "--quiet") == 0
    return place


@pytest.fixture
def place(made, tmp_path, monkeypatch):
    """A copy to break, as the working folder."""
    shutil.copytree(made, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def contents(place):
    """All files with their bytes, and all folders."""
    return {path: path.read_bytes() if path.is_file() else None for path in place.rglob("*")}


def spent(capsys):
    """Entries and epsilon, as `gcon ledger show` says; no ledger is an empty one."""
    if not LEDGER.exists():
        return 0, 0.0
    assert call("ledger", "show", str(LEDGER), "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    return len(shown["entries"]), shown["total"]["epsilon"]


def told(capsys, verb, *, as_json, code):
    """The message, from where it belongs: one JSON object, or standard error (a check's findings: standard output)."""
    out, err = capsys.readouterr()
    err = "".join(line for line in err.splitlines(keepends=True) if not line.startswith("warning: The release"))
    assert SECRET not in out + err
    assert "Traceback" not in out + err
    if as_json:
        found = json.loads(out)
        assert err == ""
        if verb == CHECK:
            assert found["ok"] is False
            return "\n".join(found["problems"])
        assert found["exit_code"] == code
        return found["message"]
    words, empty = (out, err) if verb == CHECK else (err, out)
    assert empty == ""
    assert verb == CHECK or words.startswith("error: ")
    return words


@pytest.mark.parametrize("as_json", [False, True], ids=["words", "json"])
@pytest.mark.parametrize(("kind", "verb", "fresh"), CASES)
def test_broken_input(place, capsys, monkeypatch, kind, verb, fresh, as_json):
    if fresh:
        for path in Path().glob(f"{LEDGER}*"):
            path.unlink()
    kind.change(monkeypatch)
    paid = spent(capsys) if kind.charged else None
    before = contents(place)
    code = call(*COMMANDS[verb].split(), *kind.more.split(), *(["--json"] if as_json else []))
    message = told(capsys, verb, as_json=as_json, code=code)
    after = contents(place)

    assert code == kind.code, message
    for words in kind.words:
        assert words in message
    if kind.charged:
        assert spent(capsys) == (paid[0] + 1, paid[1] + 1.0)
        books = {place / "here" / f"{LEDGER}{ending}" for ending in ("", ".head", ".lock")}
        assert {path for path in after if after[path] != before.get(path, b"")} <= books
    else:
        assert after == before  # the ledger, too, byte for byte: what it shows is what it showed


@pytest.mark.parametrize("verb", [*PAYERS, *LEDGER_VERBS])
def test_a_torn_last_line_is_recovered(place, capsys, verb):
    """Its writer died before it was acknowledged, so nothing was opened for it: it is not an error and not charged."""
    torn = '{"hash":"0123'
    with LEDGER.open("a") as file:
        file.write(torn)
    before = spent(capsys)
    assert before == (1, 1.0)
    assert call(*COMMANDS[verb].split(), "--json") == 0
    assert SECRET not in capsys.readouterr().out
    cost = {TRAIN: (1, 1.0), OWN: (1, 0.0)}.get(verb, (0, 0.0))  # answers to owners are recorded at no cost
    assert spent(capsys) == (before[0] + cost[0], before[1] + cost[1])
    if verb in (SHOW, VERIFY):
        assert LEDGER.read_text().endswith(torn)
    else:
        assert Path(f"{LEDGER}.torn").read_text() == torn + "\n"
        assert call("ledger", "verify", str(LEDGER), "--quiet") == 0


def test_the_table_covers_every_verb():
    assert len(KINDS) >= 20
    for verbs in ((TRAIN,), PREDICTORS, (CHECK,), LEDGER_VERBS):
        assert sum(any(verb in kind.verbs for verb in verbs) for kind in KINDS.values()) >= 4
    assert {kind.code for kind in KINDS.values()} == {2, 3, 4, 5, 6}
