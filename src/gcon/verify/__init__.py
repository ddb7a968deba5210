"""The independent checker of a release folder."""
