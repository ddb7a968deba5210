"""`gcon completion`: the scripts in the shells that are here."""

import shutil
import subprocess

import pytest

# Each prints what the shell offers for a line, after the script is read.
ASK = {
    "bash": """source "$1"; COMP_WORDS=($2 "$3"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _gcon; echo "${COMPREPLY[@]}" """,
    "zsh": """compdef() { }; compadd() { shift; print -r -- $@ }; _files() { }
        source "$1"; words=(${=2} "$3"); CURRENT=$#words; _gcon""",
    "fish": """source $argv[1]; complete --do-complete "$argv[2] $argv[3]" """,
}


@pytest.fixture(params=ASK)
def offered(request, run, tmp_path):
    shell = request.param
    code, script, _ = run("completion", shell)
    assert code == 0
    (tmp_path / "script").write_text(script)
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")

    def ask(line, beginning):
        before = ["--no-config"] if shell == "fish" else []
        between = [] if shell == "fish" else ["-"]
        command = [shell, *before, "-c", ASK[shell], *between, tmp_path / "script", line, beginning]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        words = {word for each in done.stdout.splitlines() for word in each.split("\t")[0].split()}
        return {word for word in words if word.startswith(beginning)}  # zsh leaves that to its own compadd

    return ask


def test_verbs_verbs_of_verbs_and_options(offered):
    assert offered("gcon", "tr") == {"train"}
    assert offered("gcon train --out model", "--eps") == {"--epsilon"}
    assert offered("gcon ledger", "sh") == {"show"}
    assert "--help" in offered("gcon ledger show", "--")
    assert "--epsilon" not in offered("gcon ledger show", "--")


def test_an_unknown_shell_is_refused_with_those_that_there_are(run):
    code, _, err = run("completion", "tcsh")
    assert code == 2
    assert "fish" in err
