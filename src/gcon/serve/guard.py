"""Around every request: how often, how long and how much somebody may ask; headers; one line in the log.

Plain ASGI, because it runs before anything of a request is understood.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Any

from gcon.serve.answers import Answering
from gcon.serve.incoming import Incoming, Receive, TooLargeError, TooOftenError, answered
from gcon.serve.limits import RateLimit, units
from gcon.serve.logs import Log
from gcon.serve.metrics import Metrics
from gcon.serve.protocol import AT_ONCE
from gcon.serve.replies import TOO_OFTEN, problem, retry_after
from gcon.serve.settings import Limits

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_CLOSING = (413, 503)  # after these nothing more is read from a connection
_MOST = {"/me": 4096}  # bytes of a body, where less than the general limit is enough
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"frame-ancestors 'none'"),
]


_Refusal = tuple[int, str, str] | tuple[int, str, str, float]


class Guard:
    """The limits of a service around its application.

    Args:
        application: what answers.
        limits: public numbers.
        addresses: how often one address may ask.
        routes: paths that are told apart in logs and counts; all others are one.
        aside: where long bodies are worked on.
        direct: by path, questions that are answered here: the way through the application would take longer than the answer.
        timed: whether times may be told. Where private edges are read, how long anybody waits may depend on them.
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
        aside: ThreadPoolExecutor,
        direct: Mapping[str, Answering],
        timed: bool,
        metrics: Metrics,
        log: Log,
    ) -> None:
        self._application, self._limits, self._addresses = application, limits, addresses
        self._aside = aside
        self._routes, self._direct, self._timed, self._metrics, self._log = routes, direct, timed, metrics, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        start, status = time.perf_counter(), 0
        route = scope["path"] if scope["path"] in self._routes else "other"
        address = caller(scope["client"][0] if scope.get("client") else "")
        declared = _declared(scope)
        body = Incoming(
            receive,
            most=self._most(route),
            declared=declared,
            pay=lambda cost: self._addresses.wait(address, cost),
        )

        async def answer(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *_HEADERS]
                if status in _CLOSING or body.unread:
                    message["headers"].append((b"connection", b"close"))
                if status == 429:  # who sends more than he may is not read to the end
                    scope[AT_ONCE] = True
            await send(message)

        try:
            refusal = self._refusal(address, declared, route)
            if refusal is not None:
                await _say(answer, *refusal)
                return
            async with asyncio.timeout(self._limits.seconds):
                if scope["method"] == "POST" and route in self._direct:
                    await self._answer(self._direct[route], scope, body, answer)
                else:
                    await self._application(scope, body, answer)
        except (TooLargeError, TooOftenError, TimeoutError) as error:
            if status == 0:
                await _say(answer, *self._cut_off(error, route))
        except Exception as error:  # the details may hold anything, so nothing but the kind is told
            self._log.event("failure", route=route, kind=type(error).__name__)
            if status == 0:
                await _say(answer, 500, "withheld", "Something failed. What failed is not told; nothing was answered.")
        finally:
            seconds = time.perf_counter() - start if self._timed else None
            self._metrics.request(route, status, seconds)
            self._log.request(route, status, seconds)

    async def _answer(self, work: Answering, scope: Scope, receive: Receive, send: Send) -> None:
        reply = await answered(work, receive, _header(scope, b"authorization").decode("latin-1"), self._aside)
        if reply is not None:
            given = [(name.encode(), value.encode()) for name, value in reply.headers]
            await _respond(send, reply.status, [(b"content-type", b"application/json"), *given], reply.body)

    def _refusal(self, address: str, declared: int | None, route: str) -> _Refusal | None:
        """What is refused before the body is read."""
        large = declared is not None and declared > self._most(route)
        wait = self._addresses.wait(address, 1 if large else units(declared or 0))
        if wait > 0:
            return _too_often(wait)
        return self._too_large(route) if large else None

    def _most(self, route: str) -> int:
        return min(self._limits.most_bytes, _MOST.get(route, self._limits.most_bytes))

    def _cut_off(self, error: Exception, route: str) -> _Refusal:
        """What is said to a request that is not read or answered to its end."""
        if isinstance(error, TooOftenError):
            return _too_often(error.seconds)
        if isinstance(error, TooLargeError):
            return self._too_large(route)
        return 503, "busy", f"The answer took longer than {self._limits.seconds:g} seconds. Try again later."

    def _too_large(self, route: str) -> _Refusal:
        most = self._most(route)
        return 413, "too large", f"body: must have at most {most} bytes. Send fewer neighbours, or their ids."


def _too_often(wait: float) -> _Refusal:
    return 429, "too many requests", TOO_OFTEN, wait


def caller(address: str) -> str:
    """Whom an address belongs to: one of IPv4, or a network of 64 bits of IPv6, which a single customer usually has."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        return str(found.ipv4_mapped or IPv6Network((int(found) >> 64 << 64, 64)))
    return str(found)


async def _say(send: Send, status: int, error: str, message: str, wait: float | None = None) -> None:
    headers = [(b"content-type", b"application/json")]
    if wait is not None:
        headers.append((b"retry-after", retry_after(wait).encode()))
    await _respond(send, status, headers, problem(error, message))


async def _respond(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _header(scope: Scope, wanted: bytes) -> bytes:
    return next((bytes(value) for name, value in scope["headers"] if name == wanted), b"")


def _declared(scope: Scope) -> int | None:
    """The length of a body as its header says; None for one that comes in chunks. What is no number is longer than anything."""
    if _header(scope, b"transfer-encoding"):
        return None
    declared = _header(scope, b"content-length") or b"0"
    return int(declared[:20]) if declared.isdigit() else 10**20
