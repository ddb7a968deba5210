"""Around every request: how often, how long and how much somebody may ask; headers; one line in the log.

Plain ASGI, because it runs before anything of a request is understood.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from gcon.serve.answers import Answering
from gcon.serve.limits import RateLimit
from gcon.serve.logs import Log
from gcon.serve.metrics import Metrics
from gcon.serve.settings import Limits
from gcon.serve.words import problem

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

FROM_EDGES = "/me"  # how long these take may depend on private edges
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


class TooLargeError(Exception):
    """A body has more bytes than are read."""


class Guard:
    """The limits of a service around its application.

    Args:
        application: what answers.
        limits: public numbers.
        addresses: how often one address may ask.
        routes: paths that are told apart in logs and counts; all others are one.
        direct: by path, questions that are answered here: the way through the application would take longer than the answer.
        metrics: counts.
        log: lines.
    """

    def __init__(
        self,
        application: Application,
        *,
        limits: Limits,
        addresses: RateLimit,
        routes: frozenset[str],
        direct: Mapping[str, Answering],
        metrics: Metrics,
        log: Log,
    ) -> None:
        self._application, self._limits, self._addresses = application, limits, addresses
        self._routes, self._direct, self._metrics, self._log = routes, direct, metrics, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        start, status = time.perf_counter(), 0
        route = scope["path"] if scope["path"] in self._routes else "other"

        async def answer(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        try:
            refusal = self._refusal(scope)
            if refusal is not None:
                await _say(answer, *refusal)
                return
            async with asyncio.timeout(self._limits.seconds):
                if scope["method"] == "POST" and route in self._direct:
                    await self._answer(self._direct[route], scope, self._measured(receive), answer)
                else:
                    await self._application(scope, self._measured(receive), answer)
        except (TooLargeError, TimeoutError) as error:
            if status == 0:
                refusal = self._too_large() if isinstance(error, TooLargeError) else self._too_slow()
                await _say(answer, *refusal)
        except Exception as error:  # the details may hold anything, so nothing but the kind is told
            self._log.event("failure", route=route, kind=type(error).__name__)
            if status == 0:
                await _say(answer, 500, "withheld", "Something failed. What failed is not told; nothing was answered.")
        finally:
            seconds = None if route == FROM_EDGES else time.perf_counter() - start
            self._metrics.request(route, status, seconds)
            self._log.request(route, status, seconds)

    async def _answer(self, work: Answering, scope: Scope, receive: Receive, send: Send) -> None:
        parts, more = [], True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        body, status, headers = work(b"".join(parts), _header(scope, b"authorization").decode("latin-1"))
        given = [(name.encode(), value.encode()) for name, value in headers]
        await _respond(send, status, [(b"content-type", b"application/json"), *given], body)

    def _refusal(self, scope: Scope) -> tuple[int, str, str] | tuple[int, str, str, float] | None:
        """What is refused before the body is read."""
        wait = self._addresses.wait(scope["client"][0] if scope.get("client") else "nowhere")
        if wait > 0:
            return 429, "too many requests", "This address asks too often. Wait, then try again.", wait
        declared = _header(scope, b"content-length") or b"0"
        if not declared.isdigit() or int(declared[:20]) > self._limits.most_bytes:
            return self._too_large()
        return None

    def _measured(self, receive: Receive) -> Receive:
        """The body, as long as it is short enough, whatever its header says."""
        got = 0

        async def next_part() -> MutableMapping[str, Any]:
            nonlocal got
            message = await receive()
            got += len(message.get("body", b""))
            if got > self._limits.most_bytes:
                raise TooLargeError
            return message

        return next_part

    def _too_large(self) -> tuple[int, str, str]:
        most = self._limits.most_bytes
        return 413, "too large", f"body: must have at most {most} bytes. Send fewer neighbours, or their ids."

    def _too_slow(self) -> tuple[int, str, str]:
        return 503, "busy", f"The answer took longer than {self._limits.seconds:g} seconds. Try again later."


async def _say(send: Send, status: int, error: str, message: str, wait: float | None = None) -> None:
    headers = [(b"content-type", b"application/json")]
    if wait is not None:
        headers.append((b"retry-after", str(max(1, round(wait + 0.5))).encode()))
    await _respond(send, status, headers, problem(error, message))


async def _respond(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _header(scope: Scope, wanted: bytes) -> bytes:
    return next((bytes(value) for name, value in scope["headers"] if name == wanted), b"")
