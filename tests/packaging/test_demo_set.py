"""`make demo` installs the extra `demo` alone: the demo runs without anything that other extras bring."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IMPORTED = {"prometheus-client": "prometheus_client"}  # where the name of the module is another
SCRIPT = """
import sys
sys.modules.update(dict.fromkeys(sys.argv.pop(1).split(",")))  # None: as if they were not there
from gcon.cli import demo, main
demo.NUM_NODES = 300
main()
"""


def names(extras, extra):
    """What an extra brings, also by way of others."""
    found = set()
    for line in extras[extra]:
        others = re.fullmatch(r"gcon\[(.+)\]", line)
        found |= (
            set().union(*(names(extras, each) for each in others[1].split(","))) if others else {line.split(">")[0]}
        )
    return found


def missing_from_demo():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return sorted(IMPORTED.get(name, name) for name in names(extras, "all") - names(extras, "demo"))


def test_the_demo_set_is_small_and_the_command_reads_tables():
    assert {"numba", "torch_geometric", "distributed", "fastapi"} <= set(missing_from_demo())
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert (
        {"typer", "polars"} <= names(extras, "cli") <= names(extras, "demo")
    )  # who has seen the demo goes on with tables
    assert '-e ".[demo]"' in (ROOT / "Makefile").read_text()


@pytest.mark.slow
def test_the_demo_runs_on_its_set(tmp_path):
    # networkx comes with torch.
    absent = ",".join(name for name in missing_from_demo() if name != "networkx")
    words = [sys.executable, "-c", SCRIPT, absent, "demo", "--runs", "1", "--out", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").exists()
