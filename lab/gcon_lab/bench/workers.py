"""The same work on local Dask workers that read the edge store by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gcon.edges.schemes import Schemes, propagate
from gcon.edges.source import Edges
from gcon.privacy.boundary import Private
from gcon_lab.bench.contenders import RESTART, STEPS, Walk, features_of
from gcon_lab.bench.graphs import MadeRows
from gcon_lab.bench.stores import write_rows

if TYPE_CHECKING:
    from gcon.edges.cluster.edges import ClusterEdges

_ROWS = 1000


@contextmanager
def _on_workers(store: Path, workers: int) -> Iterator[ClusterEdges]:
    """The edges, on workers that have loaded what they need and compiled their kernels."""
    from gcon.edges.cluster.edges import open_cluster
    from gcon.edges.cluster.local import local_cluster

    with local_cluster(workers) as cluster:
        small = store.with_name("small.csr")
        if not small.exists():
            write_rows(MadeRows(1009, 10_000), small)
        open_cluster(cluster.address, small, security=cluster.security).run(partial(_some_rows, features_of(1009)))
        yield open_cluster(cluster.address, store, security=cluster.security)


@contextmanager
def walk_on_workers(store: Path, features: Tensor, workers: int) -> Iterator[Walk]:
    """Ten steps; a few rows of the result come back."""
    with _on_workers(store, workers) as edges:
        yield partial(edges.run, partial(_some_rows, features))


@contextmanager
def stored_on_workers(store: Path, workers: int) -> Iterator[Private[Edges]]:
    """Private edges for a training."""
    with _on_workers(store, workers) as edges:
        yield Private(edges, "made-up edges on a cluster", run=edges.run, check=edges.check)


def _some_rows(features: Tensor, edges: Edges) -> Tensor:
    wanted = torch.arange(len(features)) < _ROWS
    return propagate(edges, features, Schemes(restart=RESTART, steps=(STEPS,)), rows=wanted)
