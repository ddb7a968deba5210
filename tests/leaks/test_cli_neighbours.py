"""The command line on neighbouring graphs with one seed and a stopped clock: no byte but the weights may differ."""

import json
import shutil
import struct
import sys
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import polars
import pytest

from gcon.cli import app as cli
from gcon.evaluate.scores import Scores

SCORES = {field.name for field in fields(Scores)}
LEDGER = "edges.csv.ledger"
FILES = ["--edges", "edges.csv", "--nodes", "nodes.csv"]
TRAIN = ["train", *FILES, "--epsilon", "1", "--out", "model", "--seed", "11"]


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


@pytest.fixture(params=PAIRS)
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


def without_weights(files: dict[str, bytes]) -> dict[str, object]:
    """The files less the bytes of the weights and the two checksums that follow from them."""
    content = files["model/model.safetensors"]
    (length,) = struct.unpack("<Q", content[:8])
    start, stop = json.loads(content[8 : 8 + length])["weights"]["data_offsets"]
    blank = content[: 8 + length + start] + bytes(stop - start) + content[8 + length + stop :]
    text = files["model/release.json"].decode()
    document = json.loads(text)
    for checksum in (document["files"]["model.safetensors"]["sha256"], document["checksum"]):
        assert text.count(checksum) == 1
        text = text.replace(checksum, "0" * len(checksum))
    return files | {"model/model.safetensors": blank, "model/release.json": text.encode()}


def sizes(files: dict[str, bytes]) -> dict[str, int]:
    return {name: len(content) for name, content in files.items()}


@pytest.mark.parametrize("form", [[], ["--json"], ["--quiet"]], ids=["words", "json", "quiet"])
def test_training_writes_and_tells_the_same(run, pair, form):
    told = [run(folder, *TRAIN, *form) for folder in pair]
    one, other = map(written, pair)
    assert told[0] == told[1]
    assert told[0][0] == 0
    assert sizes(one) == sizes(other)
    assert set(one) == {"nodes.csv", LEDGER, f"{LEDGER}.head", f"{LEDGER}.lock", "model/"} | {
        f"model/{name}" for name in ("README.md", "model.safetensors", "privacy.json", "privacy.md", "release.json")
    }
    assert without_weights(one) == without_weights(other)
    assert one["model/model.safetensors"] != other["model/model.safetensors"]  # the test can see a difference
    assert b"2030-01-02T03:04:05+00:00" in one[LEDGER]


def test_without_edges_a_model_says_the_same_on_both_graphs(run, pair):
    """Access none: predictions and scores of one model do not depend on the graph's edges, nor touch its ledger."""
    assert run(pair[0], *TRAIN, "--quiet")[0] == 0
    shutil.copytree(pair[0] / "model", pair[1] / "model")
    for path in pair[0].glob(f"{LEDGER}*"):
        shutil.copy(path, pair[1])
    before = written(pair[0])
    for form in ([], ["--json"]):
        kind = "json" if form else "words"
        verbs = (
            ["predict", "model", *FILES, "--access", "none", "--out", f"{kind}.csv"],
            ["predict", "model", *FILES, "--access", "none", "--out", f"{kind}.parquet"],
            ["evaluate", "model", *FILES, "--access", "none"],
        )
        for verb in verbs:
            told = [run(folder, *verb, *form) for folder in pair]
            assert told[0] == told[1]
            assert told[0][0] == 0
    one, other = map(written, pair)
    assert one == other
    assert {"words.csv", "words.parquet", "json.csv", "json.parquet"} == set(one) - set(before)
    assert before.items() <= one.items()


def test_with_own_edges_only_the_answers_differ(run, pair):
    """What is recorded and told about a delivery and a diagnosis is the same; the answers are for their owners."""
    rows = []
    for folder in pair:
        assert run(folder, *TRAIN, "--quiet")[0] == 0
        predict = run(folder, "predict", "model", *FILES, "--access", "own-edges", "--out", "own.parquet", "--json")
        code, out, err = run(folder, "evaluate", "model", *FILES, "--access", "own-edges", "--json")
        scores = {name: value for name, value in json.loads(out).items() if name not in SCORES}
        answers = polars.read_parquet(folder / "own.parquet")
        books = {path.name: path.read_bytes() for path in folder.glob(f"{LEDGER}*")}
        rows.append((predict, code, scores, err, books, answers.schema, answers.select("id", "audience").rows()))
    assert rows[0] == rows[1]
    assert (predict[0], code) == (0, 0)


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["words", "json"])
def test_a_failed_run_writes_and_tells_the_same(run, pair, form, monkeypatch):
    monkeypatch.setattr("gcon.solve.newton.MOST_ITERATIONS", 0)
    told = [run(folder, *TRAIN, "--ridge", "0.01", *form) for folder in pair]
    assert told[0] == told[1]
    assert told[0][0] == 4
    one, other = map(written, pair)
    assert one == other
    assert set(one) == {"nodes.csv", LEDGER, f"{LEDGER}.head", f"{LEDGER}.lock"}
