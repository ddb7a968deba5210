"""Several processes that answer on one socket, and one that replaces those that die.

All are forked from one that has read everything, so they share its memory and answer from the same edges. Before that nothing may
have begun that a worker needs threads of: torch is set to one thread before anything is read.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from gcon.errors import InputError
from gcon.serve.app import application
from gcon.serve.state import Service

_SHORT, _MOST_SHORT = 2.0, 5  # a worker that lives no longer than that is not replaced more often than that


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that is bound, so that a wrong address is told before anything else happens; port 0 takes a free one."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        got = f"{host}:{port} ({error.strerror or type(error).__name__})"
        raise InputError("host, port", rule="must be free to listen on", got=got, fix="Choose another port.") from None
    listener.set_inheritable(True)
    return listener


def run_workers(
    service: Service, listener: socket.socket, *, count: int, proxies: str, ready: Callable[[], None]
) -> int:
    """Answer until somebody says stop (SIGTERM or SIGINT); requests that are being answered are finished.

    Args:
        service: what to answer with.
        listener: where to listen.
        count: how many workers.
        proxies: addresses whose word about a caller's address is believed; empty for none.
        ready: called when the first workers have been started.

    Returns:
        An exit code: 0 after a stop, 1 if workers could not be kept alive.
    """
    alive: dict[int, float] = {}
    stopping = False

    def stop(number: int, _: FrameType | None) -> None:
        nonlocal stopping
        stopping = True
        for worker in list(alive):
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGTERM)

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        for _ in range(count):
            alive[_start(service, listener, proxies)] = time.monotonic()
        ready()
        short = 0
        while alive:
            worker, status = os.wait()
            lived = time.monotonic() - alive.pop(worker, 0.0)
            if stopping:
                continue
            short = short + 1 if lived < _SHORT else 0
            service.log.event("worker lost", exit=os.waitstatus_to_exitcode(status))
            if short > _MOST_SHORT:
                service.log.event("giving up", reason="workers end as soon as they have begun")
                stop(signal.SIGTERM, None)
                return 1
            alive[_start(service, listener, proxies)] = time.monotonic()
        return 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _start(service: Service, listener: socket.socket, proxies: str) -> int:
    worker = os.fork()
    if worker:
        return worker
    code = 1
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        _serve(service, listener, proxies)
        code = 0
    except BaseException as error:  # whatever it is, this process must not go on as a second parent
        service.log.event("worker failed", kind=type(error).__name__)
    finally:
        os._exit(code)


def _serve(service: Service, listener: socket.socket, proxies: str) -> None:
    import uvicorn

    config = uvicorn.Config(
        application(service),
        access_log=False,  # it would write addresses and paths
        log_level="warning",
        lifespan="on",
        limit_concurrency=service.limits.concurrent,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=service.limits.stop_seconds,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies or None,
        server_header=False,
        date_header=False,
    )
    uvicorn.Server(config).run(sockets=[listener])
