"""How `gcon` starts: help from the table alone, verbs when they are called, and the laboratory where it is installed."""

import importlib.metadata
import json
import subprocess
import sys

import pytest

from gcon.cli.app import LABORATORY, OWN, VERBS, command
from gcon.version import __version__

AFTER = """
import sys
from gcon.cli import main
sys.argv = ["gcon", *sys.argv[1:]]
try:
    main()
finally:
    heavy = {"torch", "numpy", "scipy", "polars", "gcon_lab"} & set(sys.modules)
    print("heavy:", *sorted(heavy), file=sys.stderr)
"""


STOPPED = """
import os, signal, sys
from gcon.cli import main

class Impatient:
    def find_spec(self, name, *_):
        if name == "gcon.cli.train":
            try:
                os.kill(os.getpid(), getattr(signal, sys.argv[-1]))
            except BaseException:  # as libraries do while they are loaded
                pass

sys.meta_path.insert(0, Impatient())
sys.argv[1:1] = ["train"]
main()
"""


@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
@pytest.mark.parametrize("as_json", [False, True])
def test_stopped_while_it_loads_it_says_that_nothing_was_read(number, code, as_json):
    call = [sys.executable, "-c", STOPPED, *(["--json"] if as_json else []), number]
    done = subprocess.run(call, check=False, capture_output=True, text=True)
    words = f"stopped by {number}. Nothing was read or charged."
    assert done.returncode == code
    if as_json:
        assert json.loads(done.stdout) == {"error": "StoppedError", "message": words, "exit_code": code}
    else:
        assert (done.stdout, done.stderr) == ("", f"error: {words}\n")


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["version"], ["trian"], []], ids=" ".join)
def test_what_needs_no_verb_imports_nothing_heavy(words):
    done = subprocess.run([sys.executable, "-c", AFTER, *words], check=False, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == "heavy:"
    assert done.returncode == (2 if words in ([], ["trian"]) else 0)


@pytest.mark.slow
def test_a_verb_is_loaded_when_it_is_called():
    done = subprocess.run([sys.executable, "-c", AFTER, "plan", "--help"], check=False, capture_output=True, text=True)
    assert "torch" in done.stderr.splitlines()[-1]  # so the test above can fail


def test_help_names_every_verb(run):
    shown = run("--help")[1]
    for name in VERBS:
        assert f" {name} " in shown


@pytest.mark.parametrize("name", OWN)
def test_the_tables_help_is_the_verbs_own(name):
    assert command(name).help.splitlines()[0] == VERBS[name]


@pytest.mark.parametrize("words", [(), ("train",), ("data", "make"), ("serve", "tokens", "issue")], ids=" ".join)
def test_help_shows_no_type_beside_a_flag(run, words):
    code, out, _ = run(*words, "--help")
    assert code == 0
    assert "--help" in out
    assert "<bool>" not in out


@pytest.mark.parametrize("words", [(), ("ledger",), ("data",)])
def test_without_a_verb_help_is_printed_and_nothing_else(run, words):
    code, out, err = run(*words)
    assert (code, err) == (2, "")
    assert "Usage: " in out
    assert "COMMAND" in out


def test_no_verb_after_options_is_an_error(run):
    code, out, err = run("--")
    assert (code, out, err) == (2, "", "error: Missing command. See gcon --help.\n")


def test_a_wrong_call_points_to_the_help_of_its_verb(run, tmp_path):
    assert run("train", "--epsilon", "one")[2].endswith("; got 'one'. See gcon train --help.\n")
    (tmp_path / "defaults.toml").write_text("epsilom = 1.0")
    said = run("train", "--config", tmp_path / "defaults.toml")[2]
    assert said.endswith("epsilom. Keys are the verb's long options. See gcon train --help.\n")
    said = run("train", "graph.csv", "--epsilon", 1, "--out", "model")[2]
    assert "SOURCE: must be the name of a data set; got 'graph.csv'. Files go with --nodes and --edges." in said


def test_the_version_in_both_ways(run):
    assert run("--version")[:2] == (0, f"gcon {__version__}\n")
    assert run("version")[1].startswith(f"gcon {__version__}, torch ")
    assert set(json.loads(run("version", "--json")[1])) == {"gcon", "torch", "python"}


@pytest.mark.parametrize("name", LABORATORY)
def test_without_the_laboratory_its_verbs_name_the_package(run, monkeypatch, name):
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: importlib.metadata.EntryPoints())
    code, out, err = run(name, "--help")
    assert (code, out) == (2, "")
    assert f"gcon {name}: is a verb of the laboratory" in err
    assert "pip install gcon-lab" in err
    assert "pip install -e lab" in err
    code, out, _ = run(name, "--json")
    found = json.loads(out)
    assert (code, found["exit_code"], found["error"]) == (2, 2, "InputError")
    assert "pip install gcon-lab" in found["message"]
