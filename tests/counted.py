"""Small graphs have too few validation nodes for a count of right answers to tell anything; a test that needs it buys it."""

from contextlib import contextmanager

import pytest

import gcon.methods.moments
from gcon.methods.moments import MOST_COUNTED


@contextmanager
def counted():
    """Inside, every training with validation nodes counts right answers, at the highest price."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gcon.methods.moments, "counted_share", lambda epsilon, asked, **_: MOST_COUNTED if asked else 0.0)
        yield
