"""Seeded releases are the same bytes as in golden.json, which a refactoring leaves as it is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.once import once

HERE = Path(__file__).parent
GOLDEN = json.loads((HERE / "golden.json").read_text())
WHAT_TO_DO = (
    "A seeded release changed. If that is meant, rewrite the file with `python tests/golden/make.py --write`, in a commit of "
    "its own that says why the promise is untouched."
)


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """All entries, computed once; the workers of a parallel run share them."""

    def make():
        done = subprocess.run([sys.executable, HERE / "make.py"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return json.loads(once(tmp_path_factory, "golden.json", make))


def test_the_same_entries(made):
    assert sorted(made) == sorted(GOLDEN), WHAT_TO_DO


@pytest.mark.parametrize("name", GOLDEN)
def test_the_same_bytes(made, name):
    assert made.get(name) == GOLDEN[name], f"{name}: {WHAT_TO_DO}"


@pytest.mark.parametrize("name", [name for name in GOLDEN if "-numba/" in name])
def test_kernels_agree(name):
    assert GOLDEN[name] == GOLDEN[name.replace("-numba/", "-torch/")]


@pytest.mark.parametrize("name", [name for name in GOLDEN if "-stored-" in name])
def test_edges_on_disk_give_what_edges_in_memory_give(name):
    in_memory = {"moments-stored": "moments-dense", "paper-stored": "paper-soft-margin"}
    kind = name[: name.index("-stored-") + len("-stored")]
    assert GOLDEN[name] == GOLDEN[name.replace(kind, in_memory[kind])]
