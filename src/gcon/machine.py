"""Where the heavy sums run, and on how many threads: the one place that knows.

Devices are the processor, or a GPU by name; the code is the same. As many threads as torch may use (OMP_NUM_THREADS decides, or
`keep_to_one_thread`) are used everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
from threadpoolctl import threadpool_limits

from gcon.errors import InputError

# A block for many small products of numpy, scipy and scikit-learn. They gain nothing from a second thread, and their pool and
# torch's would wait for each other. Sums come in one order.
one_thread = partial(threadpool_limits, limits=1)

SMALL = 2**20  # numbers in a feature table: below it threads wait for each other longer than they compute

_CUDA = re.compile(r"cuda(?::(\d+))?")


def chosen_device(device: str) -> str:
    """`auto` as the device that it stands for: a GPU if there is one, else the processor; others are checked.

    Args:
        device: `auto`, `cpu`, `cuda`, or `cuda:NUMBER` where there are several.
    """
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    match = _CUDA.fullmatch(device) if isinstance(device, str) else None
    if device != "cpu" and match is None:
        rule = "must be 'auto', 'cpu', 'cuda' or 'cuda:NUMBER'"
        raise InputError("device", rule=rule, got=repr(device), fix="Use 'auto'.")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if match is not None and int(match[1] or 0) >= count:
        rule = "must be there, and torch must be able to use it"
        raise InputError("device", rule=rule, got=f"{device!r} with {count} usable GPUs", fix="Use 'auto' or 'cpu'.")
    return device


@contextmanager
def threads_for(entries: int) -> Iterator[None]:
    """One thread where all matrices are small, whatever else the machine does; else as many as there are.

    Args:
        entries: numbers in the public feature table.
    """
    if entries >= SMALL:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with one_thread():
            yield
    finally:
        torch.set_num_threads(before)


def keep_to_one_thread() -> None:
    """For processes that work side by side, each on a core of its own."""
    torch.set_num_threads(1)
