"""What the service says about its own running: one JSON object a line on standard error, without private values.

A line about a request holds its route, not its path, its status and, where no private edge was read, how long it took. No
address, token, id or body is written.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from datetime import UTC, datetime


class Log:
    """Structured lines.

    Args:
        requests: write a line for every request, and not only for what happens to the service itself.
    """

    def __init__(self, *, requests: bool = True) -> None:
        self._requests = requests

    def event(self, what: str, **facts: object) -> None:
        """Something happened to the service."""
        line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": what, **facts}
        with suppress(OSError, ValueError):  # whoever read it is gone; the service is not
            sys.stderr.write(json.dumps(line) + "\n")

    def request(self, route: str, status: int, seconds: float | None) -> None:
        """One request was answered or refused."""
        if self._requests:
            more = {} if seconds is None else {"milliseconds": round(1000 * seconds, 1)}
            self.event("request", route=route, status=status, **more)
