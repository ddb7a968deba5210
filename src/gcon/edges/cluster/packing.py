"""How things travel between the machines of a cluster: as bytes that say nothing of themselves when a log prints them.

Questions go from machine to machine, straight to the worker that knows, past the scheduler. A question names a run, a method of
the worker's desk, and what that is given; all of it packed, so that no log can print it.
"""

from __future__ import annotations

import io
import pickle
import uuid
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, cast, final

import cloudpickle  # type: ignore[import-untyped]
import numpy as np
import torch
from distributed.protocol.serialize import Serialize
from numpy.typing import NDArray
from torch import Tensor

from gcon.edges.cluster.nearby import Lent, Segment, borrow
from gcon.edges.cluster.placed import TYPES, RowsElsewhere
from gcon.edges.source import HoldsRows
from gcon.errors import BoundaryError
from gcon.privacy.randomness import SeededRandomness, SystemRandomness

PIECE_BYTES = 2**25  # of rows in one answer
LEAST_LENT = 2**16  # bytes: less than that is sent as it is


@final
class Package:
    """A packed value. Its matrices are views of the memory that they came from, and travel as they are, without a copy.

    Privacy:
        As private as what is in it. Printing, sizes aside, and Dask's keys tell nothing of it.
    """

    __slots__ = ("_buffers", "_head", "_segment")

    def __init__(self, head: bytes, buffers: Sequence[NDArray[np.uint8]]) -> None:
        self._head, self._buffers, self._segment = head, list(buffers), cast(Segment | None, None)

    def lend(self) -> Package:
        """The same for somebody near: only where its matrices lie travels. It must be kept until that one has unpacked it."""
        if sum(buffer.nbytes for buffer in self._buffers) < LEAST_LENT:
            return self
        package = Package(self._head, self._buffers)
        *starts, end = _starts([len(buffer) for buffer in self._buffers])
        package._segment = Segment(end)
        for place, (start, buffer) in enumerate(zip(starts, self._buffers, strict=True)):
            package._buffers[place] = package._segment.bytes[start : start + len(buffer)]
            package._segment.write(start, buffer)
        return package

    def unpack(self) -> Any:
        return pickle.loads(self._head, buffers=self._buffers)

    def __repr__(self) -> str:
        return "<package>"

    def __sizeof__(self) -> int:
        return len(self._head) + sum(buffer.nbytes for buffer in self._buffers)

    def __reduce__(self) -> tuple[object, ...]:
        """Matrices are kept apart, so that Dask sends them out of band; lent ones stay where they are."""
        if self._segment is not None and self._segment.lent is not None:
            return (_borrowed, (self._head, self._segment.lent, [len(buffer) for buffer in self._buffers]))
        return (Package, (self._head, self._buffers))

    def __dask_tokenize__(self) -> str:
        """Dask names things after a checksum of what they are; this one is private."""
        return uuid.uuid4().hex


def _borrowed(head: bytes, lent: Lent, sizes: Sequence[int]) -> Package | None:
    """A package whose matrices lie in the memory of a process on this machine; None if that has ended meanwhile."""
    found = borrow(lent)
    if found is None:
        return None
    *starts, _ = _starts(sizes)
    return Package(head, [found[start : start + size] for start, size in zip(starts, sizes, strict=True)])


def _starts(sizes: Sequence[int]) -> list[int]:
    """Where buffers of these sizes begin one after another, each at a line of memory; and the end of the last."""
    return [0, *accumulate(-(-size // 64) * 64 for size in sizes)]


def pack(value: object) -> Package:
    """Anything that can be pickled, functions of no module too."""
    return _pack(value, [])


def pack_with_randomness(value: object) -> tuple[Package, list[SeededRandomness], dict[str, Tensor]]:
    """A package of (value, seeded sources of randomness in it), these sources as they are here, and what is not in it.

    The process that draws from the sources elsewhere sends their state back (`take_over`): no byte is drawn twice.

    Returns:
        Last, by their names, the public matrices that computations only hand to edges (`HoldsRows`): their rows go to workers.
    """
    found: list[SeededRandomness] = []
    rows: dict[str, Tensor] = {}
    # The list is filled while the value before it is packed; in the package its members are those of the value.
    return _pack((value, found), found, rows), found, rows


def states(sources: Sequence[SeededRandomness]) -> list[np.random.Generator]:
    """How far the sources have come."""
    return [source._generator for source in sources]


def take_over(sources: Sequence[SeededRandomness], elsewhere: Sequence[np.random.Generator]) -> None:
    """Go on where the copies of these sources stopped elsewhere."""
    for source, generator in zip(sources, elsewhere, strict=True):
        source._generator = generator


def _pack(value: object, found: list[SeededRandomness], rows: dict[str, Tensor] | None = None) -> Package:
    file, buffers = io.BytesIO(), []

    def keep(buffer: pickle.PickleBuffer) -> None:
        buffers.append(np.frombuffer(buffer.raw(), dtype=np.uint8))

    _Pickler(file, found, rows, keep).dump(value)
    return Package(file.getvalue(), buffers)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Matrices of torch as numpy has them; randomness of known kinds alone."""

    def __init__(
        self, file: io.BytesIO, found: list[SeededRandomness], rows: dict[str, Tensor] | None, keep: Any
    ) -> None:
        super().__init__(file, protocol=5, buffer_callback=keep)
        self._found, self._rows = found, rows

    def reducer_override(self, thing: Any) -> Any:
        if type(thing) is Tensor and _is_plain(thing):
            return _tensor, (thing.contiguous().numpy(),)
        if isinstance(thing, SeededRandomness):
            self._found.append(thing)
            return _seeded, (thing._generator,)
        if (
            hasattr(thing, "keeps_promise")
            and hasattr(thing, "take")
            and not isinstance(thing, type | SystemRandomness)
        ):
            raise BoundaryError("This source of randomness cannot be moved: the same noise might be drawn twice.")
        if self._rows is not None and isinstance(thing, HoldsRows):
            return _holder, (type(thing), {**vars(thing), **self._without_rows(thing)})
        return super().reducer_override(thing)

    def _without_rows(self, holder: HoldsRows) -> dict[str, RowsElsewhere]:
        assert self._rows is not None
        left_out = {}
        for field in holder.row_fields:
            rows = vars(holder)[field]
            if rows.dim() == 2 and rows.dtype in TYPES and _is_plain(rows):
                name = uuid.uuid4().hex
                self._rows[name], left_out[field] = rows, RowsElsewhere(name, rows)
        return left_out


def _is_plain(tensor: Tensor) -> bool:
    """Whether numpy can show it without a copy that matters."""
    at_home = tensor.device.type == "cpu" and tensor.layout == torch.strided and not tensor.requires_grad
    return at_home and tensor.dtype != torch.bfloat16 and not tensor.is_conj() and not tensor.is_neg()


def _tensor(array: NDArray[Any]) -> Tensor:
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _holder(kind: type[HoldsRows], fields: dict[str, object]) -> HoldsRows:
    holder = kind.__new__(kind)
    vars(holder).update(fields)
    return holder


def _seeded(generator: np.random.Generator) -> SeededRandomness:
    randomness = SeededRandomness.__new__(SeededRandomness)
    randomness._generator = generator
    return randomness


class LostError(Exception):
    """A worker is gone, or has forgotten the run: start over with those that are left."""


def tensor_of(found: NDArray[np.uint8], shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """These bytes as a matrix, without a copy."""
    return torch.from_numpy(found).view(dtype).view(shape)


async def ask(rpc: Any, address: str, run: str, method: str, *given: object) -> Any:
    """The answer of a worker.

    Raises:
        LostError: there is none.
    """
    try:
        question = Serialize(pack((run, method, given)))  # type: ignore[no-untyped-call]
        answer = await rpc(address).gcon_ask(order=question)
    except (OSError, TimeoutError):
        answer = None
    if not isinstance(answer, Package):
        raise LostError
    return answer.unpack()


def pieces(rows: slice, row_bytes: int) -> list[slice]:
    """Consecutive rows in pieces that fit into one answer."""
    step = max(1, PIECE_BYTES // max(row_bytes, 1))
    return [slice(start, min(start + step, rows.stop)) for start in range(rows.start, rows.stop, step)]
