"""A body while it comes in: counted, paid for, looked at before it is whole, and worked on beside the others if it is long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from gcon.serve.answers import Answering, Reply
from gcon.serve.limits import units

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
LONG = 2**16  # bytes: what has more is looked at early, and answered in a thread of its own


class TooLargeError(Exception):
    """A body has more bytes than are read."""


class TooOftenError(Exception):
    """A body costs more than its sender has left."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds


class Incoming:
    """The messages of one request.

    Args:
        receive: the next message.
        most: bytes of its body.
        declared: its length as its header says; None for a body that comes in chunks.
        pay: takes so many units; gives the seconds to wait if there are not enough.
    """

    def __init__(self, receive: Receive, *, most: int, declared: int | None, pay: Callable[[int], float]) -> None:
        self._receive, self._most, self._pay = receive, most, pay
        self._got, self._paid = 0, units(declared or 0)
        self._long, self._ended = declared is None or declared > LONG, declared == 0

    @property
    def unread(self) -> bool:
        """Whether more may come that nobody wants to read. Of a short body the rest is let fall."""
        return self._long and not self._ended

    async def __call__(self) -> MutableMapping[str, Any]:
        """The next message, as long as the body is short enough and paid for, whatever its header says."""
        message = await self._receive()
        self._got += len(message.get("body", b""))
        self._ended = not message.get("more_body", False)
        if self._got > self._most:
            raise TooLargeError
        owed = units(self._got) - self._paid
        if owed > 0:
            wait = self._pay(owed)
            if wait > 0:
                raise TooOftenError(wait)
            self._paid += owed
        return message


async def answered(work: Answering, receive: Receive, authorization: str, aside: ThreadPoolExecutor) -> Reply | None:
    """The reply to a body that is read here; None if its sender is gone.

    A body whose first 64 KiB are wrong is refused before its end. Later parts are not looked at early: that would cost the others
    more than it saves.
    """
    parts, got, looked, more = [], 0, False, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        got, more = got + len(parts[-1]), message.get("more_body", False)
        if more and got >= LONG and not looked:
            looked, refusal = True, work.refusal(b"".join(parts))
            if refusal is not None:
                return refusal
    body = b"".join(parts)
    if len(body) <= LONG:
        return work.reply(body, authorization)
    return await asyncio.get_running_loop().run_in_executor(aside, work.reply, body, authorization)
