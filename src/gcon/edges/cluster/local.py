"""A cluster of processes on this machine: for tests, and to use all cores with edges that stay on disk."""

from __future__ import annotations

import logging
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcon.errors import MissingExtraError, check_number
from gcon.writing import work_folder

HERE = "127.0.0.1"
# Dask's workers give freed memory back at once, and take it again for every block: that was a third of their time.
_KEPT_MEMORY = {
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**28,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**25,
}


@dataclass(frozen=True, repr=False)
class LocalCluster:
    """Where it is, and the certificates that let people in.

    Attributes:
        address: of the scheduler.
        security: for `cluster_edges`.
        dask: Dask's own object.
    """

    address: str
    security: Any
    dask: Any


@contextmanager
def local_cluster(workers: int) -> Iterator[LocalCluster]:
    """Start workers with one thread each; they end with the block.

    Certificates that exist in memory only keep other users of the machine out: people who reach a Dask scheduler can run code in
    its name. There is no dashboard, nothing listens beyond this machine, and nothing is spilled to disk.

    Raises:
        MissingExtraError: Dask, or what makes certificates, is not installed.
    """
    rule, fix = "must be from 1 to 1024", "One per core is usual."
    check_number("workers", workers, allowed=lambda count: 1 <= count <= 1024, rule=rule, fix=fix, whole=True)
    try:
        import cryptography  # noqa: F401
        import dask
        import distributed
    except ImportError:
        raise MissingExtraError("distributed or cryptography", extra="cluster") from None
    security = distributed.Security.temporary()  # type: ignore[no-untyped-call]
    # Dask's servers answer HTTP in any case, by default to everybody: here only, and with nothing to see.
    common = {"host": HERE, "protocol": "tls://", "security": security}
    common |= {"dashboard": False, "dashboard_address": f"{HERE}:0"}
    quiet: dict[str, object] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
    quiet["distributed.worker.profile.enabled"] = False
    with (
        # Those of killed processes are removed by the next one.
        work_folder(Path(tempfile.gettempdir()) / f"gcon-cluster-{secrets.token_hex(8)}") as folder,
        dask.config.set({**quiet, **_KEPT_MEMORY, "temporary-directory": str(folder)}),
    ):
        worker = {
            **common,
            "nthreads": 1,
            "memory_limit": 0,
            "local_directory": str(folder),
            "silence_logs": logging.CRITICAL,
        }
        with distributed.SpecCluster(  # type: ignore[no-untyped-call]
            scheduler={"cls": distributed.Scheduler, "options": {**common, "port": 0}},
            workers={place: {"cls": distributed.Nanny, "options": worker} for place in range(workers)},
            security=security,
            silence_logs=logging.CRITICAL,
        ) as cluster:
            yield LocalCluster(cluster.scheduler_address, security, cluster)
