"""Tools that try to break the promise."""
