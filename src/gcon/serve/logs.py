"""What the service says about its own running: one JSON object a line on standard error, without private values.

A line about a request holds its route, not its path, its status and, where no private edge was read, how long it took. No
address, token, id or body is written. Nobody waits for whoever reads the lines: what does not go through at once is lost, and
the next line that does says how many were.
"""

from __future__ import annotations

import json
import os
import select
import socket
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache

_STANDARD_ERROR = 2
_MOST = select.PIPE_BUF  # bytes that a pipe takes as a whole, or not at all


class Log:
    """Structured lines.

    Args:
        requests: write a line for every request, and not only for what happens to the service itself.
    """

    def __init__(self, *, requests: bool = True) -> None:
        self._requests, self._lost = requests, 0
        self._write: Callable[[bytes], object] | None = None

    def event(self, what: str, **facts: object) -> None:
        """Something happened to the service."""
        self._own_up()
        self._say(what, facts, 0)

    def request(self, route: str, status: int, seconds: float | None) -> None:
        """One request was answered or refused."""
        if not self._requests:
            return
        self._own_up()
        # By hand, as `json.dumps` would: this is written for every request.
        more = "" if seconds is None else f', "milliseconds": {round(1000 * seconds, 1)!r}'
        line = f'{{"time": "{timestamp()}", "event": "request", "route": {_quoted(route)}, "status": {status}{more}}}\n'
        self._write_line(line.encode(), 0)

    def _own_up(self) -> None:
        if self._lost:
            self._say("lines lost", {"count": self._lost}, self._lost)

    def _say(self, what: str, facts: dict[str, object], settles: int) -> None:
        line = {"time": timestamp(), "event": what, **facts}
        self._write_line((json.dumps(line) + "\n").encode(), settles)

    def _write_line(self, content: bytes, settles: int) -> None:
        try:
            if len(content) > _MOST:
                raise BlockingIOError
            if self._write is None:
                self._write = unblocked(_STANDARD_ERROR)
            self._write(content)
            self._lost -= settles
        except (OSError, ValueError):  # whoever reads is gone or busy; the service is neither
            self._lost += 0 if settles else 1


@lru_cache(maxsize=256)
def _quoted(text: str) -> str:
    return json.dumps(text)


def unblocked(file: int) -> Callable[[bytes], object]:
    """A way to write to an open file that raises instead of waiting, and changes nothing for others who have it open."""
    kind = os.fstat(file).st_mode
    if stat.S_ISFIFO(kind):
        with suppress(OSError):  # opened anew, because the flag belongs to everybody who shares it
            anew = os.open(f"/proc/self/fd/{file}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            return lambda content: os.write(anew, content)
    if stat.S_ISSOCK(kind):
        return lambda content: _send(file, content)

    def write(content: bytes) -> None:
        if not stat.S_ISREG(kind) and not select.select([], [file], [], 0)[1]:
            raise BlockingIOError
        os.write(file, content)

    return write


def _send(file: int, content: bytes) -> None:
    with socket.socket(fileno=os.dup(file)) as other:
        other.send(content, socket.MSG_DONTWAIT)


def timestamp() -> str:
    """Now, in UTC, to the millisecond, as ISO 8601 has it. Every request asks, so the text of a second is kept."""
    milliseconds = time.time_ns() // 1_000_000
    return f"{_second(milliseconds // 1000)}.{milliseconds % 1000:03d}+00:00"


@lru_cache(maxsize=2)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
