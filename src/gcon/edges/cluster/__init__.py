"""Edges spread over a cluster: the same statistics, walks and releases, computed by many machines (extra `cluster`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcon.errors import MissingExtraError
from gcon.privacy.boundary import Private

if TYPE_CHECKING:
    from gcon.edges.cluster.edges import ClusterEdges


def cluster_edges(
    address: str, path: str | Path, *, num_nodes: int | None = None, node_ids: str | None = None, security: Any = None
) -> Private[ClusterEdges]:
    """Private edges in a store that all workers of a Dask cluster can read. Everything is checked here, before any charge.

    Args:
        address: of the scheduler, `tls://HOST:PORT` (or `tcp://` in a network of your own).
        path: of an edge store (`gcon data convert --format csr`), the same on every worker.
        num_nodes: how many nodes it must have; None: any.
        node_ids: the fingerprint of the public ids that it must be made for (`gcon.files.store_files`); None: any.
        security: a `distributed.Security`; None: what Dask's own configuration says.

    Raises:
        MissingExtraError: Dask is not installed.
        InputError: no scheduler, no workers, another version on a worker, no store, not the same one everywhere, or other nodes.

    Privacy:
        Workers open the store. Nothing about edges comes back to the client: not even a checksum (the scheduler sees one).
    """
    try:
        from gcon.edges.cluster.edges import open_cluster
    except ModuleNotFoundError as error:
        if error.name not in ("distributed", "dask", "cloudpickle"):
            raise
        raise MissingExtraError("distributed", extra="cluster") from None
    edges = open_cluster(address, path, num_nodes=num_nodes, node_ids=node_ids, security=security)
    return Private(edges, "edges of a simple undirected graph on a cluster", run=edges.run, check=edges.check)
