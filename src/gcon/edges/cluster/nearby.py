"""Memory that processes on one machine lend each other, so that rows need no copy through encryption and the network.

What is lent lies in memory that has no name (Linux: memfd), never in a file. Only processes of the same user on the same machine
can open it (and the administrator), also where a system lets them debug none but their own children (Yama). Everybody else
notices that it cannot be opened, and asks for the rows.
"""

from __future__ import annotations

import mmap
import os
import secrets
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from gcon.errors import BoundaryError

Bytes = NDArray[np.uint8]
_PIECE, _WRITERS = 2**24, 4  # bytes that are written at a time, and by how many threads at most
_SIGN = 64  # random bytes before what is lent: machines that were set up alike have the same numbers for other memory


class Lent(NamedTuple):
    """Where some memory of another process is: all that travels of it. Says nothing of what lies there but its size."""

    process: int
    descriptor: int
    sign: bytes
    size: int


@final
class Segment:
    """Memory of this process that others can be shown; it is there as long as this object, and as they hold on to it.

    Args:
        size: in bytes.

    Privacy:
        As private as what is written into it. It cannot be pickled; `lent` can.
    """

    def __init__(self, size: int) -> None:
        self.lent: Lent | None = None
        self._descriptor = -1
        with suppress(AttributeError, OSError):  # not on Linux, or forbidden there
            self._descriptor = os.memfd_create("gcon")
        if self._descriptor < 0:  # nothing is lent, and all rows travel
            self.bytes: Bytes = np.empty(size, dtype=np.uint8)
            return
        os.fchmod(self._descriptor, 0o600)
        os.ftruncate(self._descriptor, _SIGN + size)
        mapped = _mapped(self._descriptor, _SIGN + size, mmap.ACCESS_WRITE)
        self.lent = Lent(os.getpid(), self._descriptor, secrets.token_bytes(_SIGN), size)
        mapped[:_SIGN] = np.frombuffer(self.lent.sign, dtype=np.uint8)
        self.bytes = mapped[_SIGN:]

    def write(self, place: int, given: Bytes) -> None:
        """Put bytes into it: by the system, which takes half as long as touching new pages one by one."""
        if self._descriptor < 0:
            self.bytes[place : place + len(given)] = given
            return
        starts = range(0, len(given), _PIECE)
        with ThreadPoolExecutor(max(1, min(_WRITERS, len(os.sched_getaffinity(0)), len(starts)))) as pool:
            list(pool.map(lambda start: self._write(place + start, given[start : start + _PIECE]), starts))

    def _write(self, place: int, given: Bytes) -> None:
        done = 0
        while done < len(given):  # the system may take less at a time
            done += os.pwrite(self._descriptor, given[done:].data, _SIGN + place + done)

    def __reduce__(self) -> NoReturn:
        raise BoundaryError("Memory that is lent stays where it is.")

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)


def borrow(lent: Lent | None) -> Bytes | None:
    """What another process lends, without a copy; what is written into it is seen here only. None: it is not near."""
    if lent is None:
        return None
    with suppress(OSError):
        # Another machine has another process of this number, or none. What it has open may be anything: nothing may wait for it.
        how = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # nor may it become the terminal of this process
        descriptor = os.open(f"/proc/{lent.process}/fd/{lent.descriptor}", how)
        try:
            if os.fstat(descriptor).st_size == _SIGN + lent.size and os.pread(descriptor, _SIGN, 0) == lent.sign:
                return _mapped(descriptor, _SIGN + lent.size, mmap.ACCESS_COPY)[_SIGN:]
        finally:
            os.close(descriptor)
    return None


def _mapped(descriptor: int, size: int, access: Any) -> Bytes:
    return np.frombuffer(mmap.mmap(descriptor, size, access=access), dtype=np.uint8)
