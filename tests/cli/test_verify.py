"""`gcon statement --verify`: steps in words, a verdict, one JSON object, and an exit code."""

import hashlib
import json

import pytest
from tests.command import gcon

from gcon.release import read
from gcon.release.layout import canonical


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    train = ["train", "--edges", folder / "edges.csv", "--nodes", folder / "nodes.csv", "--epsilon", 2, "-q"]
    paper = [*train, "--method", "paper", "--hidden", 4]
    assert gcon("data", "make", "--out", folder, "--nodes", 120, "-q") == 0
    assert gcon(*train, "--out", folder / "moments") == 0
    assert gcon(*paper, "--out", folder / "paper") == 0
    assert gcon(*paper, "--seed", 1, "--out", folder / "seeded") == 0
    return folder


@pytest.mark.parametrize("method", ["moments", "paper"])
def test_an_honest_release(world, run, method):
    code, out, _ = run("statement", world / method, "--verify")
    first, *lines, last = out.strip().splitlines()
    assert code == 0
    assert first == "To verify: this release is (2, 1e-05)-differentially private for one undirected edge."
    steps = [line for line in lines if line.lstrip()[:1].isdigit()]
    assert [int(line.split(".")[0]) for line in steps] == list(range(1, len(steps) + 1))
    assert all(line.endswith(": holds") for line in steps)
    assert "A folder cannot show, and nothing above checks:" in lines
    assert last.startswith(f"Verdict: verified. All {len(steps)} steps hold.")
    code, out, _ = run("statement", world / method, "--verify", "--json")
    said = json.loads(out)
    assert (code, said["verified"], said["epsilon"], said["delta"], said["method"]) == (0, True, 2.0, 1e-5, method)
    assert len(said["steps"]) == len(steps)
    assert "exit_code" not in said
    assert run("statement", world / method, "--verify", "--quiet")[:2] == (0, "")


def test_a_changed_number(world, run, monkeypatch):
    path = world / "paper" / "release.json"
    honest = path.read_bytes()
    document = json.loads(honest)
    document["receipt"]["plan"]["noise_rate"] *= 2
    del document["checksum"]
    path.write_bytes(canonical(document | {"checksum": hashlib.sha256(canonical(document)).hexdigest()}))
    try:
        assert run("statement", world / "paper", "--verify")[0] == 6  # the words do not fit already
        monkeypatch.setattr(read, "texts", lambda model: {})
        code, out, _ = run("statement", world / "paper", "--verify")
        assert code == 6
        assert any("noise rate" in line and line.endswith("FAILS") for line in out.splitlines())
        assert "Verdict: NOT VERIFIED." in out
        code, out, _ = run("statement", world / "paper", "--verify", "--json")
        assert (code, json.loads(out)["verified"], json.loads(out)["exit_code"]) == (6, False, 6)
        assert run("statement", world / "paper")[0] == 0  # the words alone are only read
    finally:
        path.write_bytes(honest)


def test_a_release_without_a_promise(world, run):
    code, out, _ = run("statement", world / "seeded", "--verify")
    assert code == 6
    assert out.startswith("To verify: this release makes no promise.")
    assert "1. The receipt claims a promise: there is noise and no seed, or no edge matters: FAILS" in out


def test_a_folder_that_is_none(tmp_path, run):
    code, out, _ = run("statement", tmp_path / "nothing", "--verify", "--json")
    assert (code, json.loads(out)["exit_code"]) == (6, 6)
