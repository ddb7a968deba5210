"""What a worker does by itself: bring the access log to the disk, and take new releases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from gcon.errors import GconError
from gcon.serve.held import Signature, read_held, signature
from gcon.serve.state import Service

_EVERY = 1.0  # second


def upkeep(service: Service) -> Callable[[object], Any]:
    """For as long as an application runs."""

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        keeper = asyncio.create_task(_look_after(service))
        yield
        keeper.cancel()
        with suppress(asyncio.CancelledError):
            await keeper
        if service.access_log is not None:
            service.access_log.flush()

    return lifespan


async def _look_after(service: Service) -> None:
    refused: Signature | None = None
    while True:
        await asyncio.sleep(_EVERY)
        if service.access_log is not None:
            await asyncio.to_thread(service.access_log.flush)
        try:
            there = signature(service.folder)
        except GconError:
            continue  # between two releases
        if there in (service.seen, refused):
            continue
        old = service.held
        try:
            held, seen = await asyncio.to_thread(read_held, service.folder, table=old.table, owners=old.owners)
            service.take(held, seen)
        except GconError as error:
            refused = there
            service.metrics.reload("refused")
            service.log.event("reload refused", kind=type(error).__name__, message=str(error))
        else:
            service.metrics.reload("taken")
            service.log.event("reload", release=held.release)
