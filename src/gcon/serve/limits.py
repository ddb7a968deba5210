"""How much somebody may ask for: leaky buckets in memory that all workers share, so that more workers do not mean more guesses.

A key (an address or a token) is hashed with a secret of this run onto one of many slots. Two keys may share a bucket: that
is rare, and on the strict side. No address or token can be read out of the memory.
"""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import secrets
import struct
import tempfile
import time
import weakref
from collections.abc import Callable

UNIT = 2**14  # bytes of a body that cost as much as one request more
_SLOT = struct.Struct("<dd")  # how full, and when that was
_SLOTS = 2**20  # 16 MB if all are ever used; one in a million shares the bucket of an attacker


def units(body: int) -> int:
    """What a request costs whose body has so many bytes."""
    return 1 + body // UNIT


class RateLimit:
    """So many units per minute for every key, and some at once after a pause.

    Args:
        per_minute: on average.
        burst: so many may come at once.
        clock: seconds, the same for all processes.
    """

    def __init__(self, *, per_minute: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = per_minute / 60, burst, clock
        self._secret = secrets.token_bytes(32)
        # Processes that are forked later share the memory, which no full disk can take away, and the locks, which need a
        # file, but nothing in it.
        self._memory = mmap.mmap(-1, _SLOTS * _SLOT.size)
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # closed with this object
        weakref.finalize(self, self._file.close)

    def wait(self, key: str, cost: int = 1) -> float:
        """Take what a request costs: 0 if it may go on, or the seconds until the next may.

        What costs more than all that may come at once goes on when there is nothing to pay off, and is paid off afterwards.
        """
        digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8, key=self._secret).digest()
        place = int.from_bytes(digest, "little") % _SLOTS * _SLOT.size
        fcntl.lockf(self._file, fcntl.LOCK_EX, _SLOT.size, place)
        try:
            level, then = _SLOT.unpack_from(self._memory, place)
            now = self._clock()
            level = max(0.0, level - (now - then) * self._rate)
            over = level + min(cost, self._burst) - self._burst
            if over > 0:
                return float(over / self._rate)
            _SLOT.pack_into(self._memory, place, level + cost, now)
            return 0.0
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, _SLOT.size, place)
