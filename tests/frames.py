"""Data frames for tests: those of pandas where it is installed, and a stand-in with what we ask of a frame."""

import importlib.util

import numpy as np
import pytest


class StandIn:
    """Values in columns with names, and rows with ids."""

    def __init__(self, values, *, index=None, columns=None):
        self.values = np.asarray(values)
        self.shape = self.values.shape
        self.index = np.arange(self.shape[0]) if index is None else np.asarray(index)
        if self.values.ndim == 2:
            self.columns = list(range(self.shape[1])) if columns is None else columns

    def __len__(self):
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        return self.values.astype(dtype or self.values.dtype)

    def to_numpy(self):
        return self.values


def frame_of_pandas(values, *, index=None, columns=None):
    import pandas

    values = np.asarray(values)
    if values.ndim == 1:
        return pandas.Series(values, index=index)
    return pandas.DataFrame(values, index=index, columns=columns)


without_pandas = pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="pandas is not installed")
EVERY_FRAME = [
    pytest.param(StandIn, id="stand-in"),
    pytest.param(frame_of_pandas, id="pandas", marks=without_pandas),
]
