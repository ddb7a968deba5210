"""The corpus again, without atheris: every input keeps the contract, and so do a few changes of it."""

import importlib
import sys
from pathlib import Path
from random import Random

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))  # the folder fuzz/ lies beside src/ and tests/

from fuzz.run import TARGETS, starting_inputs  # noqa: E402

INPUTS = sorted((ROOT / "fuzz" / "corpus").glob("*/*"))
CHANGES = 60


@pytest.mark.filterwarnings("ignore")  # what numpy and scipy warn of is not what is tried here
@pytest.mark.parametrize("path", INPUTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_input_of_the_corpus(path):
    importlib.import_module(f"fuzz.{path.parent.name}").one(path.read_bytes())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TARGETS)
def test_changed_inputs(name):
    target, random = importlib.import_module(f"fuzz.{name}"), Random(0)
    known = starting_inputs(target)
    for _ in range(CHANGES):
        target.one(target.change(random.choice(known), random)[: 1 << 14])


def test_the_corpus_is_small_and_covers_every_target():
    assert {path.parent.name for path in INPUTS} == set(TARGETS)
    assert sum(path.stat().st_size for path in INPUTS) < 500_000
