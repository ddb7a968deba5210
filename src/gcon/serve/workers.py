"""Several processes that answer on one socket, and one that replaces those that die.

All are forked from one that has read everything, so they share its memory and answer from the same edges. Before that nothing may
have begun that a worker needs threads of: torch is set to one thread before anything is read.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from gcon.errors import GconError, InputError
from gcon.serve.app import application
from gcon.serve.metrics import MOST_WORKERS
from gcon.serve.protocol import BoundedProtocol
from gcon.serve.state import Service
from gcon.serve.upkeep import Releases

_SHORT, _MOST_SHORT = 2.0, 5  # a worker that lives no longer than that is not replaced more often than that
_LOOK = 0.1  # seconds
_STOPS = (signal.SIGTERM, signal.SIGINT)
_TAKEN = (*_STOPS, signal.SIGHUP)


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

    SIGHUP opens tokens and access log anew, and looks again at a release that was refused.

    Args:
        service: what to answer with.
        listener: where to listen.
        count: how many workers.
        proxies: addresses whose word about a caller's address is believed; empty for none.
        ready: called when the first workers have been started.

    Returns:
        An exit code: 0 after a stop, 1 if workers could not be kept alive.
    """
    service.parent = (
        os.getpid()
    )  # known before any worker is there: one whose parent is gone by then would find another
    # What was read stays: nobody has to wait while it is searched for garbage, and workers go on sharing its pages.
    gc.collect()
    gc.freeze()
    workers = _Workers(service, listener, proxies)
    with workers.until_stopped():
        for _ in range(count):
            workers.start()
        if not workers.stopping:
            ready()
        return workers.keep(count)


class _Workers:
    def __init__(self, service: Service, listener: socket.socket, proxies: str) -> None:
        self._service, self._listener, self._proxies = service, listener, proxies
        self._alive: dict[int, tuple[float, int]] = {}  # since when, and which number
        self.stopping = self._anew = False

    @contextmanager
    def until_stopped(self) -> Iterator[None]:
        """Take signals; whatever happens inside, no worker is left behind."""
        before = {number: signal.signal(number, self._stop) for number in _STOPS}
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._begin_anew)
        try:
            yield
        finally:
            self._stop(signal.SIGTERM, None)
            end = time.monotonic() + self._service.limits.stop_seconds + 5
            while self._alive and time.monotonic() < end:
                self._reap()
                time.sleep(_LOOK)
            self._kill(signal.SIGKILL)
            for number, handler in before.items():
                signal.signal(number, handler)

    def start(self) -> None:
        """One more worker, unless somebody has said stop."""
        # No signal between the fork and writing it down: the new one would miss it, or take it as its parent would.
        signal.pthread_sigmask(signal.SIG_BLOCK, _TAKEN)
        try:
            if not self.stopping:
                taken = {number for _, number in self._alive.values()}
                number = next(each for each in range(MOST_WORKERS) if each not in taken)
                worker = os.fork()
                if worker == 0:
                    self._service.metrics.worker = number
                    self._run()
                self._alive[worker] = time.monotonic(), number
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _TAKEN)

    def keep(self, count: int) -> int:
        """Replace workers that die, by ones that know the newest release, until somebody says stop."""
        releases, short = Releases(self._service), 0
        while not self.stopping:
            if self._anew:
                self._anew = False
                releases.try_again()
                self._reopen()
            with suppress(GconError):  # workers say why it was refused
                if releases.is_new():
                    releases.take()
            for lived, code in self._reap():
                short = short + 1 if lived < _SHORT else 0
                self._service.log.event("worker lost", exit=code)
            if short > _MOST_SHORT:
                self._service.log.event("giving up", reason="workers end as soon as they have begun")
                return 1
            while len(self._alive) < count and not self.stopping:
                self.start()
            time.sleep(_LOOK)
        return 0

    def _reap(self) -> list[tuple[float, int]]:
        """How long the workers lived that have ended since, and their exit codes."""
        found = []
        for worker in list(self._alive):
            done, status = os.waitpid(worker, os.WNOHANG)
            if done:
                found.append((time.monotonic() - self._alive.pop(worker)[0], os.waitstatus_to_exitcode(status)))
        return found

    def _stop(self, _: int, __: FrameType | None) -> None:
        self.stopping = True
        self._kill(signal.SIGTERM)

    def _begin_anew(self, _: int, __: FrameType | None) -> None:
        self._anew = True
        self._kill(signal.SIGHUP)

    def _reopen(self) -> None:
        """For workers that are started from now on."""
        if self._service.access_log is not None:
            with suppress(GconError, OSError):  # workers say why
                self._service.access_log.reopen()

    def _kill(self, number: signal.Signals) -> None:
        for worker in list(self._alive):
            with suppress(ProcessLookupError):
                os.kill(worker, number)

    def _run(self) -> None:
        """The life of a worker."""
        code = 1
        try:
            for number in _STOPS:
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to open anew
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _TAKEN)
            _serve(self._service, self._listener, self._proxies)
            code = 0
        except BaseException as error:  # whatever it is, this process must not go on as a second parent
            self._service.log.event("worker failed", kind=type(error).__name__)
        finally:
            os._exit(code)


def _serve(service: Service, listener: socket.socket, proxies: str) -> None:
    import uvicorn

    config = uvicorn.Config(
        application(service),
        http=BoundedProtocol,
        access_log=False,  # it would write addresses and paths
        log_level="critical",  # what happens to requests is in our own log
        lifespan="on",
        ws="none",
        limit_concurrency=service.limits.concurrent,
        timeout_keep_alive=service.limits.idle_seconds,
        timeout_graceful_shutdown=service.limits.stop_seconds,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies or None,
        server_header=False,
        date_header=False,
    )
    uvicorn.Server(config).run(sockets=[listener])
