"""The worker that computes with all the edges: it hands out blocks, puts the results together, and draws the noise.

It runs on a worker, not at the client, so that nothing but the finished result of a computation leaves the cluster.
"""

from __future__ import annotations

import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar, final

import distributed
import torch
from torch import Tensor

from gcon.edges.cluster.packing import Package, pack, states
from gcon.edges.cluster.tasks import (
    FAILED,
    NO_CERTIFICATE,
    BlockWork,
    Failure,
    check_chunks,
    check_store,
    filled,
    mapped,
    store_at,
    work_on_block,
)
from gcon.edges.source import Edges, block_slices
from gcon.errors import BoundaryError, NoCertificateError, PrivateComputationError

T = TypeVar("T")
ATTEMPTS = 5  # at one pass: each loses at least one worker
BLOCKS_PER_WORKER = 4  # workers differ: one that is done early takes another
MOST_ENTRIES = 2**26  # neighbours and nodes of a block: 256 MiB to read
WAIT_SECONDS = 1.0  # then look whether the result is still wanted
Task = Callable[..., "Package | Failure"]


class _UnwantedError(Exception):
    """The result is not wanted any more."""


@final
class CoordinatedEdges(Edges):
    """The edges of a store, worked on by all workers of a cluster; lives in the coordinator.

    Blocks, workers, their order and their loss change no bit of a result: all arithmetic is exact or rounded row by row. A block
    whose worker was lost is computed again by another; where a shared matrix was lost with it, the rest of the pass is repeated.

    Args:
        client: of Dask, on this worker.
        path: of the store, for all workers.
        is_wanted: asked now and then; if not, the computation stops.

    Privacy:
        As private as the edges. It cannot be pickled.
    """

    def __init__(self, client: Any, path: Path, is_wanted: Callable[[], bool]) -> None:
        self._client, self._path, self._is_wanted = client, path, is_wanted
        store = store_at(path)
        self._identity, self._header = store.identity, store.edges.header
        self.num_nodes = store.edges.num_nodes
        # A node counts like a neighbour: rows of results take memory too.
        weights = store.edges.row_pointers + torch.arange(self.num_nodes + 1)
        hands = BLOCKS_PER_WORKER * max(1, len(client.nthreads()))
        most = min(max(-(-int(weights[-1]) // hands), 1), MOST_ENTRIES)
        self._blocks = [(nodes.start, nodes.stop) for nodes in block_slices(weights, most)]
        self._sent: list[tuple[weakref.ref[Tensor], int, Any]] = []
        self._checked = False

    def __reduce__(self) -> NoReturn:
        raise BoundaryError("Edges on a cluster stay there.")

    def map_blocks(self, work: Callable[..., T], *shared: Tensor) -> Iterator[T]:
        """Blocks on all workers; results as they are needed, in the order of the nodes."""
        for _, results in self._pass(partial(mapped, work=work), shared):
            yield from results

    def fill(self, out: Tensor, work: Callable[..., None], *shared: Tensor) -> None:
        """Blocks on all workers; their rows are put together here."""
        for (start, stop), rows in self._pass(partial(filled, work=work, width=out.shape[1:], dtype=out.dtype), shared):
            out[start:stop] = rows

    def _pass(self, work: Callable[..., Any], shared: Sequence[Tensor]) -> Iterator[tuple[tuple[int, int], Any]]:
        order = pack(BlockWork(self._path, self._identity, work))
        if not self._checked:  # like the first pass of stored edges
            chunks = len(self._header.columns)
            size = max(1, -(-chunks // (BLOCKS_PER_WORKER * max(1, len(self._client.nthreads())))))
            pieces = [(first, min(first + size, chunks)) for first in range(0, chunks, size)]
            if sum(balance for _, balance in self._results(check_chunks, pieces, order, ())) % 2**64:
                raise PrivateComputationError(FAILED)  # an edge that does not stand in the rows of both its ends
            self._checked = True
        yield from self._results(work_on_block, self._blocks, order, shared)

    def _results(
        self, task: Task, pieces: Sequence[tuple[int, int]], order: Package, shared: Sequence[Tensor]
    ) -> Iterator[tuple[tuple[int, int], Any]]:
        """The result of every piece, in order; what the loss of workers took away is computed again."""
        done, attempts = 0, 0
        while done < len(pieces):
            try:
                waiting = self._submit(task, pieces[done:], order, shared)
                while waiting:
                    answer = self._answer(waiting.pop())
                    if not isinstance(answer, Package):
                        raise PrivateComputationError(FAILED)
                    yield pieces[done], answer.unpack()
                    done += 1
            except (PrivateComputationError, _UnwantedError):
                raise
            except Exception:
                attempts += 1
                self._sent = []  # it may be lost: send it again
                if attempts == ATTEMPTS:
                    raise

    def _submit(
        self, task: Task, pieces: Sequence[tuple[int, int]], order: Package, shared: Sequence[Tensor]
    ) -> list[Any]:
        """Futures of all pieces, the last first."""
        name = uuid.uuid4().hex  # Dask's own keys are checksums of arguments
        return list(
            self._client.map(
                task,
                [pack(piece) for piece in pieces],
                key=[f"gcon-{name}-{place}" for place in range(len(pieces))],
                pure=False,
                order=order,
                shared=self._scattered(shared),
            )
        )[::-1]

    def _scattered(self, shared: Sequence[Tensor]) -> list[Any]:
        """Shared matrices, a copy on every worker. What the pass before sent, and was not changed since, is there already."""
        known, self._sent = self._sent, []
        for matrix in shared:
            future = next(
                (
                    future
                    for sent, version, future in known + self._sent
                    if sent() is matrix and version == matrix._version
                ),
                None,
            )
            if future is None:
                future = self._client.scatter(pack(matrix.cpu()), broadcast=True, hash=False)
            self._sent.append((weakref.ref(matrix), matrix._version, future))
        return [future for _, _, future in self._sent]

    def _answer(self, future: Any) -> Any:
        while True:
            if not self._is_wanted():
                raise _UnwantedError
            try:
                distributed.wait([future], timeout=WAIT_SECONDS)  # type: ignore[no-untyped-call]
            except TimeoutError:
                continue
            return future.result()


def coordinate(order: Package) -> Package | Failure:
    """Run a computation on all the edges, as a task on one worker.

    Args:
        order: ((computation, path of the store), seeded sources of randomness in it).

    Returns:
        (result, states of these sources), or why there is none in a fixed word.

    Privacy:
        What the computation returns leaves the cluster: a release with its noise, and nothing else, if a gate asked.
    """
    try:
        (compute, path), seeded = order.unpack()
        worker = distributed.get_worker()
        key = worker.get_current_task()
        with distributed.worker_client() as client:
            result = compute(CoordinatedEdges(client, path, partial(_is_wanted, worker, key)))
        return pack((result, states(seeded)))
    except NoCertificateError:
        return NO_CERTIFICATE
    except Exception:
        return FAILED


def _is_wanted(worker: Any, key: Any) -> bool:
    """Whether the task with this key is still wanted: a client that was interrupted or lost wants nothing."""
    task = worker.state.tasks.get(key)
    return task is not None and task.state in ("executing", "long-running", "resumed")


def check_everywhere(path: Path, version: str) -> tuple[str, int, str]:
    """Whether all workers read one and the same store with this version of gcon, as a task on one worker.

    Returns:
        Words of a problem or nothing; the number of nodes, and the fingerprint of their ids.

    Privacy:
        Reads headers and row pointers. What leaves the cluster is public: checksums of the edges are compared here.
    """
    with distributed.worker_client() as client:
        found = client.run(check_store, path)
    problems = sorted(problem for problem, _, _ in found.values() if problem)
    if problems:
        return problems[0], 0, ""
    if {found_version for _, found_version, _ in found.values()} != {version}:
        return f"must be read by version {version} of gcon, as here; got others", 0, ""
    if len({identity for _, _, identity in found.values()}) != 1:
        return "must be the same store; got different ones", 0, ""
    header = store_at(path).edges.header
    return "", header.num_nodes, header.node_ids
