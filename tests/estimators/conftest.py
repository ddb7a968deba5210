"""The same small graph as for the methods."""

from tests.methods.conftest import other_parts, parts  # noqa: F401
