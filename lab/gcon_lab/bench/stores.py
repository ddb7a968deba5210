"""A made-up graph as an edge store, and the same work on local Dask workers that read it by themselves.

The store is written row by row: nothing is sorted, and memory stays small.

    python -m gcon_lab.bench.stores --nodes 4000000 --entries 200000000 [--device cuda] FOLDER
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from gcon.edges.schemes import Schemes, propagate
from gcon.edges.source import Edges
from gcon.edges.store_format import (
    CHUNK_BYTES,
    COLUMNS,
    HEADER,
    POINTERS,
    ChunkChecksums,
    StoreHeader,
    as_bytes,
    file_checksum,
    render_header,
)
from gcon.files.store_files import numbers_fingerprint
from gcon.privacy.boundary import Private
from gcon.writing import whole_folder
from gcon_lab.bench.contenders import RESTART, STEPS, Walk, features_of
from gcon_lab.bench.graphs import MadeRows

if TYPE_CHECKING:
    from gcon.edges.cluster.edges import ClusterEdges

_ROWS = 1000


def write_rows(rows: MadeRows, target: Path) -> None:
    """Write the store; under its own name once it is whole."""
    with whole_folder(target) as folder:
        checksums, entries = ChunkChecksums(CHUNK_BYTES), 0
        with (folder / COLUMNS).open("wb") as columns, (folder / POINTERS).open("wb") as pointers:
            pointers.write(as_bytes(np.zeros(1, dtype="<i8")))
            for chunk in rows.chunks():
                degrees, part = (each.cpu() for each in chunk)
                pointers.write(as_bytes((degrees.cumsum(0).numpy() + entries).astype("<i8")))
                piece = as_bytes(part.numpy().astype("<i4"))
                columns.write(piece)
                checksums.update(piece)
                entries += len(part)
        header = StoreHeader(
            num_nodes=rows.num_nodes,
            num_entries=entries,
            node_ids=numbers_fingerprint(np.arange(rows.num_nodes)),
            cleaned={"given": entries // 2, "self_loops": 0, "duplicates": 0, "kept": entries // 2},
            row_pointers=file_checksum(folder / POINTERS),
            chunk_bytes=CHUNK_BYTES,
            columns=checksums.all(),
        )
        (folder / HEADER).write_text(render_header(header))


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--entries", type=int, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    write_rows(MadeRows(given.nodes, given.entries, given.device), given.folder)


if __name__ == "__main__":
    main()
