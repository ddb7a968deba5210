"""Questions from machine to machine of a cluster: straight to the worker that knows, past the scheduler.

A question names a run, a method of the worker's desk, and what that is given; all of it packed, so that no log can print it.
"""

from __future__ import annotations

from typing import Any

from distributed.protocol.serialize import Serialize

from gcon.edges.cluster.packing import Package, pack

PIECE_BYTES = 2**25  # of rows in one answer


class LostError(Exception):
    """A worker is gone, or has forgotten the run: start over with those that are left."""


async def ask(rpc: Any, address: str, run: str, method: str, *given: object) -> Any:
    """The answer of a worker.

    Raises:
        LostError: there is none.
    """
    try:
        question = Serialize(pack((run, method, given)))  # type: ignore[no-untyped-call]
        answer = await rpc(address).gcon_ask(order=question)
    except (OSError, TimeoutError):
        answer = None
    if not isinstance(answer, Package):
        raise LostError
    return answer.unpack()


def pieces(rows: slice, row_bytes: int) -> list[slice]:
    """Consecutive rows in pieces that fit into one answer."""
    step = max(1, PIECE_BYTES // max(row_bytes, 1))
    return [slice(start, min(start + step, rows.stop)) for start in range(rows.start, rows.stop, step)]
