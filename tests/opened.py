"""What is inside a private value: tests know the graphs that they made."""

from gcon.privacy.opening import apply_private


def open_private(private):
    return apply_private(lambda value: value, private)
