"""Uvicorn's protocol, with an end to everything that is not a body: to headers, trailers, tiny chunks and silence."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

MOST_BESIDE = 2**16  # bytes of a request that are not its body
_LINE = 64  # what a header or a trailer costs beside its letters
_PIECE = 8  # what a chunk costs beside its content
_LINGER = 2.0  # seconds
_MOST_LATE = 2**23  # bytes that are let fall after the last answer
AT_ONCE = "gcon.at_once"  # in a scope: the connection is closed with no regard for what else is sent
CONNECTION = "gcon.connection"  # in a scope: the connection, for requests that are answered without waiting


class TooMuchBesideError(Exception):
    """A request has too much beside its body."""


class BoundedProtocol(HttpToolsProtocol):
    """Closes a connection that sends more than 64 KiB beside a body, or nothing whole for as long as it may be idle.

    Trailers are counted and dropped: nothing here reads them, and as headers they would come after all checks.
    """

    def connection_made(self, transport: Any) -> None:
        """Somebody connects."""
        self._in_head, self._beside, self._late = True, 0, 0
        self._deadline: asyncio.TimerHandle | None = None
        super().connection_made(_Transport(transport, self.loop, self))  # type: ignore[arg-type]
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._expected()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """A request begins."""
        self._in_head, self._beside = True, 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """One line of its head, or one that comes after its body."""
        self._count(len(name) + len(value) + _LINE)
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Its headers have ended."""
        self._in_head = False
        self._expected()
        self.scope[CONNECTION] = self  # type: ignore[literal-required]
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of its body."""
        self._count(_PIECE)
        super().on_body(body)

    def data_received(self, data: bytes) -> None:
        """Some of it is there."""
        if self.transport.is_closing():  # answered already: what else comes is let fall, so that the answer arrives
            self._late += len(data)
            if self._late > _MOST_LATE:
                self.transport.abort()
            return
        super().data_received(data)
        if self._in_head:
            self._beside += len(data)
            if self._beside > MOST_BESIDE:
                self.transport.close()
        if self._deadline is None and (self.cycle is None or self.cycle.response_complete):
            self._expect_request()

    def whole_body(self, scope: MutableMapping[str, Any]) -> bytes | None:
        """The body of a request that is there to its end and can be answered at once; None for all others."""
        cycle = self.cycle
        if cycle.scope is not scope or cycle.more_body or cycle.waiting_for_100_continue:
            return None
        return None if cycle.disconnected or cycle.flow.write_paused else bytes(cycle.body)

    def say(self, status: int, headers: bytes, body: bytes) -> None:
        """The whole answer to such a request, in one write: as uvicorn says it in two, after a look at every header.

        Args:
            status: its number.
            headers: lines with their ends, all but those of the connection itself.
            body: as long as the headers say.
        """
        cycle = self.cycle
        end = b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n"
        cycle.response_started = True
        self.transport.write(b"".join((STATUS_LINE[status], headers, end, body)))
        cycle.response_complete = True
        cycle.message_event.set()
        if not cycle.keep_alive:
            self.transport.close()
        cycle.on_response()

    def send_400_response(self, msg: str) -> None:
        """Something that is no request; an answer that has begun is not spoilt by a second one."""
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            super().send_400_response(msg)
        else:
            self.transport.close()

    def _count(self, bytes_beside: int) -> None:
        self._beside += bytes_beside
        if self._beside > MOST_BESIDE:
            raise TooMuchBesideError  # the parser stops, and uvicorn refuses

    def _expect_request(self) -> None:
        """From now on a whole head must come within the time that a connection may be idle."""
        self._deadline = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def _expected(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _Transport:
    """A connection whose end lets the other side read the last answer, and waits for nobody longer than two seconds.

    A socket that is closed while bytes arrive resets the connection, and the answer that says why is lost.
    """

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop, protocol: BoundedProtocol) -> None:
        self._transport, self._loop, self._protocol, self._closing = transport, loop, protocol, False
        # As they are: they are called for every request.
        self.write, self.get_extra_info = transport.write, transport.get_extra_info
        self.pause_reading, self.resume_reading = transport.pause_reading, transport.resume_reading
        self.abort = transport.abort

    def is_closing(self) -> bool:
        """Whether nothing more is said."""
        return self._closing or bool(self._transport.is_closing())

    def close(self) -> None:
        """Say nothing more, and let go when the other side does, at the latest in two seconds."""
        if self.is_closing():
            return
        self._closing = True
        cycle = self._protocol.cycle
        unread = cycle is not None and cycle.more_body and AT_ONCE not in cycle.scope
        if unread and self._transport.can_write_eof():
            self._transport.write_eof()
            self._transport.resume_reading()
        else:
            self._transport.close()
            if not self._transport.get_write_buffer_size():
                return
        self._loop.call_later(_LINGER, self._transport.abort)
