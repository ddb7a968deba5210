"""The command line on neighbouring graphs with one seed and a stopped clock: only what is released with noise differs.

For the paper's mechanism these are the weights; for moments, the noisy statistics and what is computed from them.
"""

import json
import re
import shutil
import struct
import sys
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import polars
import pytest

from gcon.cli import app as cli
from gcon.methods.scores import Scores

pytestmark = pytest.mark.slow

SCORES = {field.name for field in fields(Scores)}
LEDGER = "edges.csv.ledger"
FILES = ["--edges", "edges.csv", "--nodes", "nodes.csv"]
TRAIN = ["train", *FILES, "--epsilon", "4", "--out", "model", "--seed", "11", "--method"]  # far from where counts begin


@pytest.fixture(params=["moments", "paper"])
def train(request):
    """The call that trains, by either mechanism."""
    return [*TRAIN, request.param]


class Stopped(datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz=None):
        return cls(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def run(capfd, monkeypatch):
    """Run `gcon ...` inside a folder; gives exit code, standard output and standard error."""
    monkeypatch.setattr("gcon.privacy.ledger_file.datetime", Stopped)
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):  # a spinner's pictures depend on time
        monkeypatch.delenv(name, raising=False)

    def run(folder, *arguments):
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["gcon", *arguments])
        capfd.readouterr()
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        printed = capfd.readouterr()
        return stopped.value.code, printed.out, printed.err

    return run


def missing(lines: list[str], position: int) -> list[str]:
    return lines[:position] + lines[position + 1 :]


def one_more(lines: list[str]) -> list[str]:
    linked = {frozenset(line.split(",")) for line in lines}
    return [*lines, next(f"0,{node}" for node in range(1, 200) if frozenset({"0", str(node)}) not in linked)]


PAIRS = {
    "the first edge missing": (lambda lines: lines, lambda lines: missing(lines, 0)),
    "the last edge missing": (lambda lines: lines, lambda lines: missing(lines, len(lines) - 1)),
    "one edge more": (lambda lines: lines, one_more),
    "no edge and one": (lambda lines: [], lambda lines: lines[:1]),
}


FIRST, *OTHERS = PAIRS


@pytest.fixture(params=[FIRST, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)])
def pair(request, run, tmp_path):
    """Two folders with the same names and nodes; the edges differ in one."""
    made = tmp_path / "made"
    made.mkdir()
    assert run(made, "data", "make", "--out", ".", "--nodes", "200", "--quiet")[0] == 0
    header, *lines = (made / "edges.csv").read_text().splitlines()
    folders = []
    for name, change in zip(("one", "other"), PAIRS[request.param], strict=True):
        folder = tmp_path / name
        folder.mkdir()
        shutil.copy(made / "nodes.csv", folder)
        (folder / "edges.csv").write_text("\n".join([header, *change(lines)]) + "\n")
        folders.append(folder)
    assert (folders[0] / "edges.csv").read_bytes() != (folders[1] / "edges.csv").read_bytes()
    return folders


def written(folder: Path) -> dict[str, bytes]:
    """Everything in the folder but the private input, by name; folders end in a slash."""
    found = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder)) + "/" * path.is_dir()
        found[name] = b"" if path.is_dir() else path.read_bytes()
    del found["edges.csv"]
    return found


def without_noisy_numbers(files: dict[str, bytes], mechanism: str) -> dict[str, object]:
    """The files less what is released with noise, what is computed from it, and the checksums that follow from it.

    For moments that is every tensor but the public labels, some settings, and what the card says of these. How many
    regressions there are is chosen from released counts, and so their number is the first length of two tensors.
    """
    content, document = files["model/model.safetensors"], json.loads(files["model/release.json"])
    (length,) = struct.unpack("<Q", content[:8])
    tensors = json.loads(content[8 : 8 + length])
    names = ["weights"] if mechanism == "paper" else [name for name in tensors if name != "labels"]
    kept = {
        name: (entry["dtype"], entry["shape"], content[8 + length :][slice(*entry["data_offsets"])])
        for name, entry in tensors.items()
    }
    for name in names:
        kind, shape, _ = kept[name]
        chosen = mechanism == "moments" and name in ("weights", "regressions")
        kept[name] = (kind, shape[1:] if chosen else shape, None)
    del document["checksum"], document["files"]["model.safetensors"]["sha256"]
    card = files["model/README.md"]
    if mechanism == "moments":
        for name in ("homophily", "right", "own_edges", "gain", "lean", "voice", "regressions"):
            del document["settings"][name]
        del document["files"]["model.safetensors"]["size"]
        document["files"]["README.md"] = None
        card, count = re.subn(rb"(edges inside a class, cautiously estimated: )0\.\d\d\.", rb"\1?", card)
        assert count == 1
        card = card.replace(OWN_EDGES_LEFT_OUT, b"")
    return files | {"model/model.safetensors": kept, "model/release.json": document, "model/README.md": card}


OWN_EDGES_LEFT_OUT = b"\nOwn edges were no help here: `own-edges` gives what `cached` gives."


def sizes(files: dict[str, bytes]) -> dict[str, int]:
    return {name: len(content) for name, content in files.items()}


@pytest.mark.parametrize("form", [[], ["--json"], ["--quiet"]], ids=["words", "json", "quiet"])
def test_training_writes_and_tells_the_same(run, pair, train, form):
    told = [run(folder, *train, *form) for folder in pair]
    one, other = map(written, pair)
    assert told[0] == told[1]
    assert told[0][0] == 0
    if train[-1] == "paper":  # the homophily of moments may have one digit more
        assert sizes(one) == sizes(other)
    assert set(one) == {"nodes.csv", LEDGER, f"{LEDGER}.head", f"{LEDGER}.lock", "model/"} | {
        f"model/{name}" for name in ("README.md", "model.safetensors", "privacy.json", "privacy.md", "release.json")
    }
    assert without_noisy_numbers(one, train[-1]) == without_noisy_numbers(other, train[-1])
    assert one["model/model.safetensors"] != other["model/model.safetensors"]  # the test can see a difference
    assert b"2030-01-02T03:04:05+00:00" in one[LEDGER]


def test_without_edges_a_model_says_the_same_on_both_graphs(run, pair, train):
    """Without edges, predictions and scores of one model do not depend on the graph's edges, nor touch its ledger."""
    assert run(pair[0], *train, "--quiet")[0] == 0
    shutil.copytree(pair[0] / "model", pair[1] / "model")
    for path in pair[0].glob(f"{LEDGER}*"):
        shutil.copy(path, pair[1])
    before = written(pair[0])
    access = "cached" if train[-1] == "moments" else "none"
    for form in ([], ["--json"]):
        kind = "json" if form else "words"
        verbs = (
            ["predict", "model", *FILES, "--access", "none", "--out", f"{kind}.csv"],
            ["predict", "model", *FILES, "--access", access, "--out", f"{kind}.parquet"],
            ["evaluate", "model", *FILES, "--access", access],
        )
        for verb in verbs:
            told = [run(folder, *verb, *form) for folder in pair]
            assert told[0] == told[1]
            assert told[0][0] == 0
    one, other = map(written, pair)
    assert one == other
    assert {"words.csv", "words.parquet", "json.csv", "json.parquet"} == set(one) - set(before)
    assert before.items() <= one.items()


def test_with_own_edges_only_the_answers_differ(run, pair, train):
    """What is recorded and told about a delivery and a diagnosis is the same; the answers are for their owners."""
    rows = []
    for folder in pair:
        assert run(folder, *train, "--quiet")[0] == 0
        predict = run(folder, "predict", "model", *FILES, "--access", "own-edges", "--out", "own.parquet", "--json")
        code, out, err = run(folder, "evaluate", "model", *FILES, "--access", "own-edges", "--json")
        scores = {name: value for name, value in json.loads(out).items() if name not in SCORES}
        answers = polars.read_parquet(folder / "own.parquet")
        books = {path.name: path.read_bytes() for path in folder.glob(f"{LEDGER}*")}
        rows.append((predict, code, scores, err, books, answers.schema, answers.select("id", "audience").rows()))
    assert rows[0] == rows[1]
    assert (predict[0], code) == (0, 0)


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["words", "json"])
def test_a_failed_run_writes_and_tells_the_same(run, pair, train, form, monkeypatch):
    if train[-1] == "paper":
        monkeypatch.setattr("gcon.mechanisms.perturbed_objective.MOST_ITERATIONS", 0)
        train = [*train, "--ridge", "0.01"]
    else:

        def failing(statistic, edges):
            raise ArithmeticError(f"{edges.num_edges} edges")  # such words must not get out

        monkeypatch.setattr("gcon.mechanisms.edge_moments.EdgeMoments.precisely", failing)
    told = [run(folder, *train, *form) for folder in pair]
    one, other = (
        (code, *(words.replace(str(folder), "HERE") for words in said))
        for folder, (code, *said) in zip(pair, told, strict=True)
    )
    assert one == other
    assert one[0] == (4 if "paper" in train else 7)
    assert "entry 0 (withheld) of HERE" in "".join(one[1:])
    one, other = map(written, pair)
    assert one == other
    assert set(one) == {"nodes.csv", LEDGER, f"{LEDGER}.head", f"{LEDGER}.lock"}
