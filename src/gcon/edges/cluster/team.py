"""The workers of one computation, for those who speak to all of them: the client before it, and the coordinator during it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, final

import distributed
import torch
from torch import Tensor

from gcon.edges.cluster.nearby import Segment, borrow
from gcon.edges.cluster.packing import LostError, Package, ask, pack, pieces
from gcon.edges.cluster.placed import Matrix, Partition

WAIT_SECONDS = 1.0  # then look whether all are still there


@final
class Team:
    """Workers, each with its part of the rows.

    Args:
        client: of Dask.
        run: the random name of the computation.
        addresses: of the workers, part by part.
        num_nodes: of the graph.
        path: of the store.
        is_wanted: asked now and then; if not, the computation stops.
    """

    def __init__(
        self,
        client: Any,
        run: str,
        addresses: Sequence[str],
        num_nodes: int,
        path: Path,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        self._client, self.run, self.addresses, self.path = client, run, tuple(addresses), path
        self.partition, self._is_wanted = Partition(num_nodes, len(self.addresses)), is_wanted
        self.near: tuple[bool, ...] = (False,) * len(self.addresses)  # who is on this machine

    @property
    def packed(self) -> tuple[object, ...]:
        """What another member needs to build the same team."""
        return self.run, self.addresses, self.partition.num_nodes, self.path

    def meet(self) -> None:
        """See that all desks are there, and which of them are near."""
        self.near = tuple(borrow(sign) is not None for sign in self.ask_all("ready"))

    def start(self, task: Callable[..., Any], orders: Sequence[object]) -> list[Any]:
        """One task on every worker, each with its order; they stay there."""
        name = uuid.uuid4().hex  # Dask's own keys are checksums of arguments
        return [
            self._client.submit(
                task,
                pack(order),
                key=f"gcon-{name}-{part}",
                pure=False,
                workers=[address],
                allow_other_workers=False,
            )
            for part, (address, order) in enumerate(zip(self.addresses, orders, strict=True))
        ]

    def finish(self, futures: Sequence[Any]) -> None:
        """Wait for all.

        Raises:
            LostError: a worker is gone, or the result is not wanted any more.
        """
        while True:
            try:
                with self._client.as_current():
                    distributed.wait(futures, timeout=WAIT_SECONDS)  # type: ignore[no-untyped-call]
            except TimeoutError:
                if self._is_wanted() and set(self.addresses) <= set(self._client.nthreads()):
                    continue
                raise LostError from None
            if any(future.status != "finished" for future in futures):
                raise LostError
            return

    def outcomes(self, task: Callable[..., Any], order: object) -> list[Any]:
        """What the same task on every worker leaves on its desk: Dask would wait for a worker that is lost after its work."""
        name = uuid.uuid4().hex
        self.finish(self.start(task, [(self.run, name, order)] * len(self.addresses)))
        return self.ask_all("outcome", name)

    def ask_all(self, method: str, *given: object) -> list[Any]:
        """The answers of all workers to one question."""
        return self.ask_some(range(len(self.addresses)), method, *given)

    def ask_some(self, parts: Sequence[int], method: str, *given: object) -> list[Any]:
        """The same of some of them, in their order."""

        async def all_of_them() -> list[Any]:
            return await asyncio.gather(*(self._ask(part, method, *given) for part in parts))

        return self._client.sync(all_of_them)  # type: ignore[no-any-return]

    def results(self, parts: Sequence[int], name: str, place: int) -> list[Package]:
        """What came out for one chunk of each of these workers.

        Raises:
            LostError: one has ended before its memory was opened.
        """

        async def all_of_them() -> list[Any]:
            return await asyncio.gather(*(self._ask(part, "result", name, place, self.near[part]) for part in parts))

        found = self._client.sync(all_of_them)
        if None in found:
            raise LostError
        return found  # type: ignore[no-any-return]

    def keep(self, name: str, rows: Tensor) -> None:
        """Send every worker its rows of a matrix."""
        row_bytes = rows[:1].nbytes

        segment = Segment(rows.nbytes if any(self.near) else 0)
        if any(self.near):
            segment.write(0, rows.contiguous().view(torch.uint8).numpy().reshape(-1))

        async def to_one(part: int) -> None:
            if self.near[part] and segment.lent is not None:
                await self._ask(part, "keep_lent", name, segment.lent, tuple(rows.shape), rows.dtype)
                return
            await self._ask(part, "keep", name, 0, rows[:0])
            for chunk in self.partition.chunks(part):
                for some in pieces(chunk.nodes, row_bytes):
                    first = chunk.rows.start + some.start - chunk.nodes.start
                    await self._ask(part, "keep", name, first, rows[some])

        self._each(to_one)

    def all_rows(self, matrix: Matrix) -> Tensor:
        """The rows of all nodes."""
        width = self._client.sync(self._ask, 0, "rows", matrix, slice(0, 0)).shape[1:]
        found = torch.empty(self.partition.num_nodes, *width, dtype=matrix.dtype)

        async def from_one(part: int) -> None:
            for chunk in self.partition.chunks(part):
                for some in pieces(chunk.rows, found[:1].nbytes):
                    first = chunk.nodes.start + some.start - chunk.rows.start
                    rows = await self._ask(part, "rows", matrix, some)
                    found[first : first + len(rows)] = rows

        self._each(from_one)
        return found

    def rows(self, matrix: Matrix, nodes: slice | Tensor) -> Tensor:
        """Rows of consecutive nodes, or of any, in their order."""
        if isinstance(nodes, slice):
            if nodes == slice(0, self.partition.num_nodes):
                return self.all_rows(matrix)
            nodes = torch.arange(nodes.start, nodes.stop)
        owners, places = self.partition.owners(nodes), self.partition.places(nodes)
        width = self._client.sync(self._ask, 0, "rows", matrix, slice(0, 0)).shape[1:]
        found = torch.empty(len(nodes), *width, dtype=matrix.dtype)

        async def from_one(part: int) -> None:
            here = (owners == part).nonzero()[:, 0]
            for some in pieces(slice(0, len(here)), found[:1].nbytes):
                found[here[some]] = await self._ask(part, "rows", matrix, places[here[some]])

        self._each(from_one)
        return found

    def ends(self, matrix: Matrix) -> tuple[Tensor, Tensor]:
        """The largest and the smallest entry of every column."""
        found = [each for each in self.ask_all("ends", matrix) if each is not None]
        most, least = zip(*found, strict=True)
        return torch.stack(most).amax(dim=0), torch.stack(least).amin(dim=0)

    async def _ask(self, part: int, method: str, *given: object) -> Any:
        return await ask(self._client.rpc, self.addresses[part], self.run, method, *given)

    def _each(self, of_one: Callable[[int], Any]) -> None:
        async def all_of_them() -> None:
            await asyncio.gather(*(of_one(part) for part in range(len(self.addresses))))

        self._client.sync(all_of_them)
