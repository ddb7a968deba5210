"""The worker that computes with all the edges: it tells the others what to do, and draws the noise.

It runs on a worker, not at the client, so that nothing but the finished result of a computation leaves the cluster. Rows of nodes
stay on the workers that have them; here are only those that a computation asks for.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast, final

import distributed
import torch
from torch import Tensor

from gcon.edges.cluster.desk import Pass
from gcon.edges.cluster.nearby import borrow
from gcon.edges.cluster.packing import LostError, Package, pack, states
from gcon.edges.cluster.placed import Matrix, PlacedRows, keeper
from gcon.edges.cluster.tasks import (
    FAILED,
    LOST,
    NO_CERTIFICATE,
    Failure,
    at_desk,
    check_store,
    is_wanted,
    pass_over,
    prepare,
    store_at,
)
from gcon.edges.cluster.team import Team
from gcon.edges.source import Edges
from gcon.errors import BoundaryError, NoCertificateError, PrivateComputationError

T = TypeVar("T")


@final
class CoordinatedEdges(Edges):
    """The edges of a store, worked on by all workers of a team; lives in the coordinator.

    Workers, their number, their order and their loss change no bit of a result: all arithmetic is exact or rounded row by row.

    Args:
        team: the workers.

    Privacy:
        As private as the edges. It cannot be pickled.
    """

    def __init__(self, team: Team) -> None:
        self._team, self._checked = team, False
        self._forget: tuple[str, ...] = ()  # matrices that nobody needs any more: told with the next order
        self.num_nodes = team.partition.num_nodes

    def __reduce__(self) -> NoReturn:
        raise BoundaryError("Edges on a cluster stay there.")

    def map_blocks(self, work: Callable[..., T], *shared: Tensor) -> Iterator[T]:
        """Blocks on all workers; results as they are needed, in the order of the nodes."""
        inputs, workers = [], len(self._team.addresses)
        for matrix in shared:
            inputs.append(self._placed(matrix) if len(matrix) == self.num_nodes else matrix)
        result = self._order(work, tuple(inputs), (True,) * len(inputs), width=None, dtype=torch.float64)
        sent = zip(inputs, shared, strict=True)
        given = (each.name for each, matrix in sent if isinstance(each, Matrix) and isinstance(matrix, Tensor))
        self._forget = (*self._forget, *given)
        for place, first in enumerate(range(0, self._team.partition.num_chunks, workers)):
            # Consecutive chunks are with different workers, who answer at the same time.
            asked = range(min(workers, self._team.partition.num_chunks - first))
            for package in self._team.results(asked, result, place):
                yield from package.unpack()

    def steps(
        self, origin: Tensor, begin: Callable[[Tensor], Tensor], work: Callable[..., None], count: int
    ) -> Iterator[Tensor]:
        """Rows stay on the workers, which exchange what their blocks need."""
        start = self._placed(origin)
        name = self._order(begin, (start,), (False,), width=None, dtype=torch.int64, reads_edges=False)
        shape = tuple(origin.shape)
        state = PlacedRows(self._team, Matrix(name, slice(0, shape[1]), torch.int64), shape)
        yield cast(Tensor, state)
        for _ in range(count):
            before = state.matrix
            name = self._order(work, (before, start), (True, False), width=shape[1:], dtype=torch.int64)
            state = PlacedRows(self._team, before._replace(name=name), shape)
            self._forget = (*self._forget, before.name)
            yield cast(Tensor, state)
        self._forget = (*self._forget, name, *((start.name,) if isinstance(origin, Tensor) else ()))

    def _placed(self, matrix: Any) -> Matrix:
        """A matrix of the workers; one that is here is sent to them, each its rows."""
        if isinstance(matrix, PlacedRows):
            return matrix.matrix
        name = uuid.uuid4().hex
        self._team.keep(name, in_bytes(matrix.cpu()))
        return Matrix(name, slice(None), matrix.dtype)

    def _order(
        self,
        work: Callable[..., Any],
        inputs: tuple[Matrix | Tensor, ...],
        exchanged: tuple[bool, ...],
        *,
        width: tuple[int, ...] | None,
        dtype: torch.dtype,
        reads_edges: bool = True,
    ) -> str:
        """Have all workers do it; returns the name of what came out."""
        if reads_edges and not self._checked:  # like the first pass of stored edges
            identity = store_at(self._team.path).identity
            if sum(self._all(prepare, identity)) % 2**64:
                raise PrivateComputationError(FAILED)  # an edge that does not stand in the rows of both its ends
            self._checked = True
        forget, self._forget = self._forget, ()
        result = uuid.uuid4().hex
        order = Pass(work, inputs, exchanged, result, width, dtype, reads_edges, forget)
        self._all(pass_over, order)
        return result

    def _all(self, function: Callable[..., Any], given: object) -> list[Any]:
        outcomes = self._team.outcomes(at_desk, (function, given))
        if FAILED in outcomes:
            raise PrivateComputationError(FAILED)
        if LOST in outcomes:
            raise LostError
        return outcomes


def in_bytes(matrix: Tensor) -> Tensor:
    """The same whole numbers in one byte each where they fit, such as the columns of codes that counts are made of."""
    if matrix.dtype not in (torch.int32, torch.int64) or not matrix.numel():
        return matrix
    least, most = (int(end) for end in torch.aminmax(matrix))
    return matrix.to(torch.int8) if -128 <= least <= most <= 127 else matrix


def coordinate(order: Package | None) -> Package | Failure:
    """Run a computation on all the edges, as a task on one worker.

    Args:
        order: (team, by which the client is known to be near, package of (computation, seeded sources of randomness in it)).

    Returns:
        (result, states of these sources), or why there is none in a fixed word.

    Privacy:
        What the computation returns leaves the cluster: a release with its noise, and nothing else, if a gate asked.
    """
    if order is None:
        return LOST
    try:
        (run, addresses, num_nodes, path), sign, package = order.unpack()
        worker = distributed.get_worker()
        key = worker.get_current_task()
        with distributed.worker_client() as client:
            team = Team(client, run, addresses, num_nodes, path, partial(is_wanted, worker, key))
            team.meet()
            keeper.set(team)
            compute, seeded = package.unpack()
            result = compute(CoordinatedEdges(team))
        answer = pack((result, states(seeded)))
        return answer if borrow(sign) is None else answer.lend()  # Dask keeps it until the client has it
    except NoCertificateError:
        return NO_CERTIFICATE
    except LostError:
        return LOST
    except Exception:
        return FAILED


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
