"""Which rows a model was trained on, as short digests: parts and other orders of its node table are no public graph.

The node table is public, and so are digests of it. They are there against mistakes: a table with every feature moved a little
is not recognised.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcon.nodes import row_slices

MOST = (
    2**20
)  # digests that are kept, the smallest ones: of larger tables they are a sample, the same for every part of the table
_RECOGNISED = 0.1  # of the rows: so many are no coincidence
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def known_rows(features: Tensor) -> Tensor:
    """The sum of all rows' digests, then the digests of rows that occur once, rising: int64, at most 2^20 and one.

    A row that many nodes share says nothing about which table it is from.
    """
    digests, counts = np.unique(_digests(features), return_counts=True)
    total = (digests * counts).sum(dtype=np.int64)  # wraps, in any order to the same
    return torch.from_numpy(np.concatenate([[total], digests[counts == 1][:MOST]]))


def recognises(known: Tensor, features: Tensor) -> bool:
    """Whether a table is the known one in another order, or has a tenth of its rows from there."""
    digests, kept = _digests(features), known[1:].numpy()
    if int(digests.sum(dtype=np.int64)) == int(known[0]) and len(digests):
        return True
    if len(kept) == MOST:
        digests = digests[digests <= kept[-1]]
    if not len(digests) or not len(kept):
        return False
    found = kept[np.minimum(np.searchsorted(kept, digests), len(kept) - 1)] == digests
    return bool(found.mean() >= _RECOGNISED)


def nothing_known() -> Tensor:
    """Of a model that was made by hand."""
    return torch.zeros(1, dtype=torch.int64)


def _digests(features: Tensor) -> NDArray[np.int64]:
    """One number per row, from its values as float32 (as the table's checksum has them).

    The words of a row go, one after the other, through the finaliser of splitmix64. Batches of rows take turns on all threads.
    """
    num_rows, width = features.shape

    def digested(rows: slice) -> NDArray[np.int64]:
        values = features[rows].detach().cpu().float().add(0.0).contiguous().numpy()  # -0 becomes 0
        state = np.full(len(values), width, dtype=np.uint64)
        for word in values.view(np.uint32).T:
            state += np.uint64(0x9E3779B97F4A7C15)
            state ^= word
            state = (state ^ (state >> np.uint64(30))) * _FIRST
            state = (state ^ (state >> np.uint64(27))) * _SECOND
            state ^= state >> np.uint64(31)
        return state.view(np.int64)

    with ThreadPoolExecutor(torch.get_num_threads()) as threads:
        parts = list(threads.map(digested, row_slices(num_rows, width=width)))
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
