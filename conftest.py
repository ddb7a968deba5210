"""Settings for all tests, and the command line in this process."""

import sys

import pytest
from hypothesis import settings

# A slow machine is not a failure: examples have no deadline.
settings.register_profile("gcon", deadline=None)
settings.load_profile("gcon")


@pytest.fixture
def run(capsys, monkeypatch):
    """Run `gcon ...` in this process; returns exit code, standard output and standard error."""
    from gcon.cli import app as cli  # tests on a GPU machine, which lacks its libraries, do without

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["gcon", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        printed = capsys.readouterr()
        return stopped.value.code, printed.out, printed.err

    return call
