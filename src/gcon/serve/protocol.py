"""Uvicorn's protocol, with an end to headers: one that never ends is cut off instead of collected."""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD = 2**16  # bytes


class BoundedProtocol(HttpToolsProtocol):
    """Closes a connection whose request has more than 64 KiB before its body."""

    def connection_made(self, transport: Any) -> None:
        """Somebody connects."""
        self._in_head, self._head = True, 0
        super().connection_made(transport)

    def on_message_begin(self) -> None:
        """A request begins."""
        self._in_head, self._head = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Its headers have ended."""
        self._in_head = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Some of it is there."""
        super().data_received(data)
        if self._in_head:
            self._head += len(data)
            if self._head > MOST_HEAD:
                self.transport.close()
