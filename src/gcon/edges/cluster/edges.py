"""Edges that are spread over a cluster: the client holds an address and a path, and never an edge."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TypeVar, final

import distributed
from torch import Tensor

from gcon.edges.cluster.coordinator import check_everywhere, coordinate
from gcon.edges.cluster.nearby import Segment
from gcon.edges.cluster.packing import Package, pack, pack_with_randomness, take_over
from gcon.edges.cluster.tasks import LOST, NO_CERTIFICATE, open_desk
from gcon.edges.cluster.team import Team
from gcon.edges.source import Edges
from gcon.errors import BoundaryError, InputError, NoCertificateError, PrivateComputationError
from gcon.version import __version__

T = TypeVar("T")
ATTEMPTS = 5  # at a computation: each loses at least one worker
WORKER_SECONDS = 60
REACH_SECONDS = 10
CONNECT_SECONDS = 10


@final
class ClusterEdges(Edges):
    """A simple undirected graph in an edge store that all workers of a Dask cluster can read.

    Computations go to the edges: `run` sends one to a worker, which tells all of them what to do with their rows, and sends its
    result back. If a worker is lost, the others start over; the noise of the lost run was never seen.

    Args:
        address: of the scheduler.
        path: of the store, the same on every worker.
        num_nodes: the public number of nodes.
        security: of Dask (`distributed.Security`); by default what Dask's own configuration says.

    Privacy:
        Holds nothing private. What leaves the cluster is what the computation returns.
    """

    def __init__(self, address: str, path: Path, num_nodes: int, *, security: Any = None) -> None:
        self.address, self.path, self.num_nodes = address, path, num_nodes
        self._security = security

    def run(self, compute: Callable[[Edges], T]) -> T:
        """`compute(edges)` on a worker.

        Raises:
            NoCertificateError: a solver could not prove its answer.
            PrivateComputationError: anything else went wrong there; in fixed words.
        """
        order, seeded, rows = pack_with_randomness(compute)
        with connected(self.address, self._security) as client:
            answer = self._coordinated(client, order, rows)
        if isinstance(answer, Package):
            result, elsewhere = answer.unpack()
            take_over(seeded, elsewhere)
            return result  # type: ignore[no-any-return]
        if answer == NO_CERTIFICATE:
            raise NoCertificateError("The solver on the cluster could not prove its answer.")
        raise PrivateComputationError("A computation on the cluster failed. What failed is not told.")

    def check(self) -> None:
        """Look whether the cluster is still there: some worker, that is; a computation goes on without lost ones.

        Raises:
            InputError: no scheduler, or no workers within reach.
        """
        with connected(self.address, self._security) as client:
            _check_reachable(client, any)

    def _coordinated(self, client: Any, order: Package, rows: Mapping[str, Tensor]) -> Any:
        """The answer of the coordinator, started again with those who are left where a worker was lost."""
        own = Segment(0)  # by which the coordinator sees whether it is near
        for _ in range(ATTEMPTS):
            futures: list[Any] = []
            try:
                client.wait_for_workers(1, timeout=WORKER_SECONDS)
            except TimeoutError:
                break  # all are gone, and none came back
            except Exception:
                continue
            try:
                addresses = _address_book(client)
                team = Team(client, uuid.uuid4().hex, addresses, self.num_nodes, self.path)
                orders = [(team.run, part, *team.packed[1:]) for part in range(len(addresses))]
                futures += team.start(open_desk, orders)
                team.finish(futures)
                team.meet()
                for name, matrix in rows.items():
                    team.keep(name, matrix)
                given = pack((team.packed, own.lent, order))
                given = given.lend() if all(team.near) else given  # any of them may become the coordinator
                futures.append(client.scatter(given, hash=False))
                key = f"gcon-{uuid.uuid4().hex}"
                futures.append(client.submit(coordinate, futures[-1], key=key, pure=False))
                answer = futures[-1].result()
                if answer not in (LOST, None):  # None: its memory has ended with the coordinator
                    return answer
            except Exception:
                continue
            finally:
                # After an interruption the coordinator sees that nobody waits, and stops; desks are cleared.
                client.cancel(futures)
        raise PrivateComputationError("Workers were lost again and again.")

    def map_blocks(self, work: Callable[..., T], *shared: Tensor) -> Iterator[T]:
        """Refused: results for single blocks are private, and stay where the edges are."""
        self._refuse()

    def steps(
        self, origin: Tensor, begin: Callable[[Tensor], Tensor], work: Callable[..., None], count: int
    ) -> Iterator[Tensor]:
        """Refused: rows of nodes are private, and stay where the edges are."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise BoundaryError("Edges on a cluster stay there: send a whole computation to them (`run`).")


def open_cluster(
    address: str, path: str | Path, *, num_nodes: int | None = None, node_ids: str | None = None, security: Any = None
) -> ClusterEdges:
    """See `gcon.edges.cluster.cluster_edges`."""
    folder = Path(path)
    with connected(address, security) as client:
        _check_reachable(client)
        try:
            future = client.submit(check_everywhere, folder, __version__, key=f"gcon-{uuid.uuid4().hex}", pure=False)
            problem, found_nodes, found_ids = future.result()
        except Exception:
            if client.status != "running":
                raise _no_answer(address) from None
            raise _refused(
                "its workers must have the same versions of gcon, Python and Dask as this process",
                got="workers that could not run a check, or were lost",
                fix="Use one image or environment for all, and look into the workers' logs.",
            ) from None
    parameter = f"edges file {folder.name!r}"
    if problem:
        rule, _, got = problem.partition("; got ")
        raise InputError(parameter, rule=f"on every worker: {rule}", got=got, fix="Use a path that all workers share.")
    fix = "Use the nodes file that was written beside it, or convert the edges again."
    rule = "must be made for the nodes of the nodes file"
    if num_nodes is not None and num_nodes != found_nodes:
        raise InputError(parameter, rule=rule, got="another number of nodes", fix=fix)
    if node_ids is not None and node_ids != found_ids:
        raise InputError(parameter, rule=rule, got="other ids, or another order of them", fix=fix)
    return ClusterEdges(address, folder, found_nodes, security=security)


def _address_book(client: Any) -> list[str]:
    """The workers that the scheduler knows, in a fixed order."""
    return sorted(client.nthreads())


def _check_reachable(client: Any, enough: Callable[[list[bool]], bool] = all) -> None:
    """Rows of public matrices go straight from here to the workers, so there must be some, and they must answer."""
    addresses = _address_book(client)
    if not addresses:
        fix = "Start some: dask worker ADDRESS --nthreads 1."
        raise _refused("must have workers", got=f"none at {client.scheduler.address}", fix=fix)

    async def answers(address: str) -> bool:
        try:
            await asyncio.wait_for(client.rpc(address).identity(), REACH_SECONDS)
        except Exception:
            return False
        return True

    async def all_answers() -> list[bool]:
        return await asyncio.gather(*map(answers, addresses))

    if not enough(client.sync(all_answers)):
        raise _refused(
            "its workers must be within reach of this process, not only of the scheduler",
            got="one that did not answer",
            fix="Start training inside the network of the cluster, and look whether the worker is still there.",
        )


def _no_answer(address: str) -> InputError:
    return _refused(
        "must be the address of a running Dask scheduler, with its protocol, and with its certificates",
        got=f"no answer from {address}",
        fix="For example tls://HOST:8786; start one with: dask scheduler.",
    )


def _refused(rule: str, *, got: str, fix: str) -> InputError:
    """What is wrong with a cluster is found out before a charge, or not told."""
    return InputError("scheduler", rule=rule, got=got, fix=f"{fix} Nothing was charged for it.")


@contextmanager
def connected(address: str, security: Any) -> Iterator[Any]:
    """A client of the scheduler.

    Raises:
        InputError: it does not answer.
    """
    log = logging.getLogger("distributed.client")
    level = log.level
    log.setLevel(logging.CRITICAL)  # what goes wrong is told by our own errors
    try:
        try:
            client = distributed.Client(  # type: ignore[no-untyped-call]
                address,
                security=security,
                timeout=CONNECT_SECONDS,
                set_as_default=False,
                direct_to_workers=True,  # orders and releases do not go through the scheduler
                name="gcon",
            )
        except Exception:
            raise _no_answer(address) from None
        with client:
            yield client
    finally:
        log.setLevel(level)
