"""The time as it is written down."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache


def timestamp() -> str:
    """Now, in UTC, to the millisecond, as ISO 8601 has it. Every request asks, so the text of a second is kept."""
    milliseconds = time.time_ns() // 1_000_000
    return f"{_second(milliseconds // 1000)}.{milliseconds % 1000:03d}+00:00"


@lru_cache(maxsize=2)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
