"""Small graphs of every kind."""

from tests.small_graphs import edges, features

__all__ = ["edges", "features"]  # fixtures
