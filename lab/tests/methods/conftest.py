"""What methods release: listened to, or replaced."""

from itertools import cycle

import pytest

import gcon.privacy.account
from gcon.privacy.account import transcript


@pytest.fixture
def released():
    """Everything that is released from now on, in order."""
    with transcript() as lines:
        yield lines


@pytest.fixture
def force(monkeypatch):
    """From now on these values are released, one after the other and again; no edge is opened for them."""

    def force(values):
        known = cycle(values)
        monkeypatch.setattr(gcon.privacy.account, "apply_private", lambda *_: next(known))

    return force
