"""What a worker does by itself: bring the access log to the disk, take new releases, open files anew, end with its parent."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from gcon.errors import AccessRefusedError, GconError
from gcon.serve.served_release import Signature, read_served_release, signature
from gcon.serve.state import Service

_EVERY = 1.0  # second


class Releases:
    """Watches the folder of a service for a release that is not the one it answers with."""

    def __init__(self, service: Service) -> None:
        self._service, self._refused = service, service.seen

    def try_again(self) -> None:
        """What was refused may be taken the next time."""
        self._refused = self._service.seen

    def is_new(self) -> bool:
        """Whether there is something that was neither taken nor refused."""
        there: Signature = signature(self._service.folder)
        return bool(there) and there not in (self._service.seen, self._refused)

    def take(self) -> None:
        """Take it, or refuse it with an exception; then the service goes on as it is.

        A release without a promise does not take the place of one with a promise: whoever wants that starts the service anew.
        """
        service, self._refused = self._service, signature(self._service.folder)
        old = service.held
        held, seen = read_served_release(service.folder, table=old.table, owners=old.owners)
        if old.model.receipt.keeps_promise and not held.model.receipt.keeps_promise:
            raise AccessRefusedError("The new release keeps no promise. Start the service anew to serve it.")
        service.take(held, seen)


def upkeep(service: Service) -> Callable[[object], Any]:
    """For as long as an application runs."""

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        releases = Releases(service)
        if service.parent is not None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, _begin_anew, service, releases)
            _begin_anew(service, releases)  # what came before this worker could listen
        keeper = asyncio.create_task(_look_after(service, releases))
        try:
            yield
        finally:
            keeper.cancel()
            with suppress(asyncio.CancelledError):
                await keeper
            if service.access_log is not None:
                service.access_log.flush()

    return lifespan


def _begin_anew(service: Service, releases: Releases) -> None:
    """After SIGHUP: tokens and access log are opened anew, and a release that was refused is looked at again."""
    releases.try_again()
    for name, opened in (("tokens", service.token_store), ("access log", service.access_log)):
        try:
            if opened is not None:
                opened.reopen()
        except (GconError, OSError) as error:
            service.log.event("reload refused", file=name, kind=type(error).__name__)


async def _look_after(service: Service, releases: Releases) -> None:
    while True:
        await asyncio.sleep(_EVERY)
        try:
            if service.access_log is not None:
                await asyncio.to_thread(service.access_log.flush)
            if service.parent not in (None, os.getppid()):
                service.log.event("parent lost")
                os.kill(os.getpid(), signal.SIGTERM)
            if releases.is_new():
                await asyncio.to_thread(releases.take)
                receipt = service.held.model.receipt
                service.metrics.reload("taken")
                service.log.event(
                    "reload",
                    release=service.held.release,
                    epsilon=str(receipt.budget.epsilon),
                    promise=receipt.keeps_promise,
                )
        except GconError as error:
            service.metrics.reload("refused")
            service.log.event("reload refused", kind=type(error).__name__, message=str(error))
        except Exception as error:  # a full disk, say: the next second may be better
            service.log.event("upkeep failed", kind=type(error).__name__)
