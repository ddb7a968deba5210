"""Around every request: how often, how long and how much somebody may ask; headers; one line in the log.

Plain ASGI, because it runs before anything of a request is understood.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Any, NamedTuple

from gcon.serve.answers import Answering, Reply
from gcon.serve.incoming import LONG, Incoming, Receive, TooLargeError, TooOftenError, answered
from gcon.serve.limits import RateLimit, units
from gcon.serve.logs import Log
from gcon.serve.metrics import Metrics
from gcon.serve.protocol import AT_ONCE, CONNECTION, BoundedProtocol
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


_JSON = (b"content-type", b"application/json")
_JSON_LINE = b"%s: %s\r\n" % _JSON
_LINES = b"".join(b"%s: %s\r\n" % header for header in _HEADERS)
_LONGEST_KEPT = 64  # characters of an address: a proxy may hand on longer words, which nobody has to remember


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
        start, connection = time.perf_counter(), scope.pop(CONNECTION, None)
        head = _head(scope, self._routes)
        work = self._direct.get(head.route) if scope["method"] == "POST" else None
        refusal = self._refusal(head)
        body = None if work is None or connection is None else self._whole(connection, scope, head)
        if work is None or body is None:
            await self._wait_and_answer(head, refusal, work, scope, receive, send, start)
            return
        reply = refusal or self._at_once(work, body, head)
        connection.say(reply.status, _lines(reply), reply.body)
        self._count(head.route, reply.status, start)

    def _whole(self, connection: BoundedProtocol, scope: Scope, head: _Head) -> bytes | None:
        """A short body that is there to its end: nothing has to be waited for, so nobody can be too slow."""
        short = head.declared is not None and head.declared <= min(LONG, self._most(head.route))
        body = connection.whole_body(scope) if short else None
        # Of a length with many zeros in front less is read than comes: what was not paid for goes the way of long bodies.
        return body if body is not None and len(body) == head.declared else None

    def _at_once(self, work: Answering, body: bytes, head: _Head) -> Reply:
        try:
            return work.reply(body, head.authorization)
        except Exception as error:
            return self._withheld(error, head.route)

    async def _wait_and_answer(
        self,
        head: _Head,
        refusal: Reply | None,
        work: Answering | None,
        scope: Scope,
        receive: Receive,
        send: Send,
        start: float,
    ) -> None:
        """A request whose body is still to come, or that the application answers."""
        status = 0
        body = Incoming(
            receive,
            most=self._most(head.route),
            declared=head.declared,
            pay=lambda cost: self._addresses.wait(head.address, cost),
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
            if refusal is not None:
                await _say(answer, refusal)
                return
            async with asyncio.timeout(self._limits.seconds):
                if work is None:
                    await self._application(scope, body, answer)
                elif (reply := await answered(work, body, head.authorization, self._aside)) is not None:
                    await _say(answer, reply)
        except (TooLargeError, TooOftenError, TimeoutError) as error:
            if status == 0:
                await _say(answer, self._cut_off(error, head.route))
        except Exception as error:
            withheld = self._withheld(error, head.route)
            if status == 0:
                await _say(answer, withheld)
        finally:
            self._count(head.route, status, start)

    def _count(self, route: str, status: int, start: float) -> None:
        seconds = time.perf_counter() - start if self._timed else None
        self._metrics.request(route, status, seconds)
        self._log.request(route, status, seconds)

    def _refusal(self, head: _Head) -> Reply | None:
        """What is refused before the body is read."""
        large = head.declared is not None and head.declared > self._most(head.route)
        wait = self._addresses.wait(head.address, 1 if large else units(head.declared or 0))
        if wait > 0:
            return _too_often(wait)
        return self._too_large(head.route) if large else None

    def _most(self, route: str) -> int:
        return min(self._limits.most_bytes, _MOST.get(route, self._limits.most_bytes))

    def _cut_off(self, error: Exception, route: str) -> Reply:
        """What is said to a request that is not read or answered to its end."""
        if isinstance(error, TooOftenError):
            return _too_often(error.seconds)
        if isinstance(error, TooLargeError):
            return self._too_large(route)
        message = f"The answer took longer than {self._limits.seconds:g} seconds. Try again later."
        return Reply(problem("busy", message), 503)

    def _too_large(self, route: str) -> Reply:
        message = f"body: must have at most {self._most(route)} bytes. Send fewer neighbours, or their ids."
        return Reply(problem("too large", message), 413)

    def _withheld(self, error: Exception, route: str) -> Reply:
        """The details may hold anything, so nothing but the kind is told, and that to the operator alone."""
        self._log.event("failure", route=route, kind=type(error).__name__)
        message = "Something failed. What failed is not told; nothing was answered."
        return Reply(problem("withheld", message), 500)


class _Head(NamedTuple):
    """What a request says before its body.

    Attributes:
        route: its path, or one word for all that are not told apart.
        address: whom it comes from.
        declared: the length of its body; None for one that comes in chunks.
        authorization: the header of that name.
    """

    route: str
    address: str
    declared: int | None
    authorization: str


def _head(scope: Scope, routes: frozenset[str]) -> _Head:
    headers = dict(reversed(scope["headers"]))  # of several with one name the first counts
    route = scope["path"] if scope["path"] in routes else "other"
    address = scope["client"][0] if scope.get("client") else ""
    authorization = headers.get(b"authorization", b"").decode("latin-1")
    return _Head(route, caller(address), _declared(headers), authorization)


def _declared(headers: Mapping[bytes, bytes]) -> int | None:
    """The length of a body as its header says; None for one that comes in chunks. What is no number is longer than anything."""
    if headers.get(b"transfer-encoding"):
        return None
    declared = headers.get(b"content-length") or b"0"
    return int(declared[:20]) if declared.isdigit() else 10**20


def caller(address: str) -> str:
    """Whom an address belongs to: one of IPv4, or a network of 64 bits of IPv6, which a single customer usually has."""
    return _kept(address) if len(address) <= _LONGEST_KEPT else _caller(address)


def _caller(address: str) -> str:
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        return str(found.ipv4_mapped or IPv6Network((int(found) >> 64 << 64, 64)))
    return str(found)


_kept = lru_cache(maxsize=1024)(_caller)


def _too_often(wait: float) -> Reply:
    return Reply(problem("too many requests", TOO_OFTEN), 429, (("retry-after", retry_after(wait)),))


async def _say(send: Send, reply: Reply) -> None:
    await send({"type": "http.response.start", "status": reply.status, "headers": _headers(reply)})
    await send({"type": "http.response.body", "body": reply.body})


def _headers(reply: Reply) -> list[tuple[bytes, bytes]]:
    given = [(name.encode(), value.encode()) for name, value in reply.headers]
    return [_JSON, *given, (b"content-length", str(len(reply.body)).encode())]


def _lines(reply: Reply) -> bytes:
    """All headers as they are sent."""
    if not reply.headers:
        return b"%scontent-length: %d\r\n%s" % (_JSON_LINE, len(reply.body), _LINES)
    return b"".join(b"%s: %s\r\n" % header for header in _headers(reply)) + _LINES
