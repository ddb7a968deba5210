"""Randomness that knows what was taken from it."""

from gcon.privacy.randomness import SystemRandomness


class Counting:
    """System randomness that knows what was taken from this very object."""

    source, keeps_promise = "counting", True

    def __init__(self):
        self.taken = []

    def take(self, count):
        self.taken.append(count)
        return SystemRandomness().take(count)
