"""The ten steps on local Dask workers that read the edge store by themselves; a few rows of the result come back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from gcon.edges.schemes import Schemes, propagate
from gcon.edges.source import Edges
from gcon_lab.bench.contenders import RESTART, STEPS, Walk
from gcon_lab.bench.graphs import MadeRows
from gcon_lab.bench.stores import write_rows

WORKERS, _ROWS = 2, 1000


@contextmanager
def walk_on_workers(store: Path, features: Tensor) -> Iterator[Walk]:
    """The walk, on workers that have loaded what they need and compiled their kernels."""
    from gcon.edges.cluster.edges import open_cluster
    from gcon.edges.cluster.local import local_cluster

    with local_cluster(WORKERS) as cluster:
        small = store.with_name("small.csr")
        if not small.exists():
            write_rows(MadeRows(1009, 10_000), small)
        open_cluster(cluster.address, small, security=cluster.security).run(partial(_some_rows, features[:1009]))
        edges = open_cluster(cluster.address, store, security=cluster.security)
        yield partial(edges.run, partial(_some_rows, features))


def _some_rows(features: Tensor, edges: Edges) -> Tensor:
    wanted = torch.arange(len(features)) < _ROWS
    return propagate(edges, features, Schemes(restart=RESTART, steps=(STEPS,)), rows=wanted)
