"""The laboratory's verbs in the table of `gcon`: the same names, and the same first lines of help."""

import tomllib
from pathlib import Path

import pytest

from gcon.cli.app import ENTRY_POINTS, LABORATORY, command

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
NAMES = list(LABORATORY)


def test_the_table_has_the_verbs_that_the_laboratory_brings():
    entries = tomllib.loads(PROJECT.read_text())["project"]["entry-points"][ENTRY_POINTS]
    assert sorted(entries) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_tables_help_is_the_verbs_own(name):
    assert command(name).help.splitlines()[0] == LABORATORY[name]
