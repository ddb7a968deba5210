"""Where the heavy sums run, and on how many threads: the one place that knows.

Devices are the processor, or a GPU by name; the code is the same. As many threads as torch may use (OMP_NUM_THREADS decides, or
`keep_to_one_thread`) are used everywhere, except where matrices are small (`threads_for`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import torch
from threadpoolctl import threadpool_limits

from gcon.errors import InputError

T = TypeVar("T")

# A block for many small products of numpy, scipy and scikit-learn. They gain nothing from a second thread, and their pool and
# torch's would wait for each other. Sums come in one order.
one_thread = partial(threadpool_limits, limits=1)

# Up to so many nodes, and so many numbers in their features, training is a long row of small products.
_SMALL_NODES, _SMALL_FEATURES = 20_000, 4_000_000

_CUDA = re.compile(r"cuda(?::(\d+))?")


def chosen_device(device: str) -> str:
    """`auto` as the device that it stands for: a GPU if there is one, else the processor; others are checked.

    Args:
        device: `auto`, `cpu`, `cuda`, or `cuda:NUMBER` where there are several.
    """
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":  # asks no driver: a process that has asked hands a broken GPU to those that it forks
        return device
    match = _CUDA.fullmatch(device) if isinstance(device, str) else None
    if match is None:
        rule = "must be 'auto', 'cpu', 'cuda' or 'cuda:NUMBER'"
        raise InputError("device", rule=rule, got=repr(device), fix="Use 'auto'.")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if int(match[1] or 0) >= count:
        rule = "must be there, and torch must be able to use it"
        raise InputError("device", rule=rule, got=f"{device!r} with {count} usable GPUs", fix="Use 'auto' or 'cpu'.")
    return device


def leave_gpus_alone(optimizer: torch.optim.Optimizer, device: str) -> None:
    """Keep an optimizer on the processor from asking, before every step, whether a GPU is recording it.

    The question starts CUDA: it takes memory on a GPU that nobody chose, and fails in a process that was forked after another
    had asked.
    """
    if device == "cpu":
        optimizer._accelerator_graph_capture_health_check = bool  # type: ignore[assignment]  # an answer that nobody reads


@contextmanager
def threads_for(num_nodes: int, num_features: int) -> Iterator[None]:
    """A block that trains on a table of this size: one thread if it is small, else as many as there are. Public numbers decide.

    Threads of torch's pool spin while they wait for each other; where a processor is busy with something else they wait
    thousands of times, and a second of work becomes a minute (benchmarks/threads.py).
    """
    if num_nodes > _SMALL_NODES or num_nodes * num_features > _SMALL_FEATURES:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with one_thread():
            yield
    finally:
        torch.set_num_threads(before)


def side_by_side(work: Callable[[T], None], parts: Iterable[T]) -> None:
    """Do independent parts on as many threads as torch may use; each has one of its own for products, so bits stay the same.

    For long rows of operations on little numbers, which gain nothing from threads inside them.
    """
    threads = torch.get_num_threads()
    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        try:
            for _ in pool.map(work, parts):
                pass
        finally:
            torch.set_num_threads(threads)  # pools of products are shared


def keep_to_one_thread() -> None:
    """For processes that work side by side, each on a core of its own."""
    torch.set_num_threads(1)
