"""How often somebody may ask: leaky buckets in memory that all workers share, so that more workers do not mean more guesses.

A key (an address or a token) is hashed with a secret of this run onto one of many slots. Two keys may share a bucket: that
is rare, and on the strict side. No address or token can be read out of the memory.
"""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import os
import secrets
import struct
import tempfile
import time
import weakref
from collections.abc import Callable

_SLOT = struct.Struct("<dd")  # how full, and when that was
_SLOTS = 2**16


class RateLimit:
    """So many requests per minute for every key, and some at once after a pause.

    Args:
        per_minute: on average.
        burst: so many may come at once.
        clock: seconds, the same for all processes.
    """

    def __init__(self, *, per_minute: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = per_minute / 60, burst, clock
        self._secret = secrets.token_bytes(32)
        # A nameless file: processes that are forked later share it, and respect each other's locks.
        self._file, name = tempfile.mkstemp()
        os.unlink(name)
        weakref.finalize(self, os.close, self._file)
        os.truncate(self._file, _SLOTS * _SLOT.size)
        self._memory = mmap.mmap(self._file, _SLOTS * _SLOT.size)

    def wait(self, key: str) -> float:
        """Take one request: 0 if it may go on, or the seconds until the next may."""
        digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8, key=self._secret).digest()
        place = int.from_bytes(digest, "little") % _SLOTS * _SLOT.size
        fcntl.lockf(self._file, fcntl.LOCK_EX, _SLOT.size, place)
        try:
            level, then = _SLOT.unpack_from(self._memory, place)
            now = self._clock()
            level = max(0.0, level - (now - then) * self._rate)
            if level + 1 > self._burst:
                return float((level + 1 - self._burst) / self._rate)
            _SLOT.pack_into(self._memory, place, level + 1, now)
            return 0.0
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, _SLOT.size, place)
