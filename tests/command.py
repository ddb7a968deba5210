"""The command line in this process, for fixtures that several tests share."""

import sys

import pytest

from gcon.cli import app as cli


def gcon(*words):
    """Run `gcon ...`; returns the exit code. What it prints is not kept: for that there is the fixture `run`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["gcon", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
    return stopped.value.code
