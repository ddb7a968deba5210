"""Where the edges of a training are: in memory, in a store on disk, or on the workers of a cluster."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from gcon.cli.sizes import size_in_bytes
from gcon.cli.source import ledger_beside, load_source
from gcon.edges.graph import LargeGraph, TrainableGraph
from gcon.edges.source import Edges
from gcon.errors import InputError
from gcon.files.store_files import ids_fingerprint, is_store, private_store
from gcon.files.tables import NodeTable, read_nodes
from gcon.privacy.boundary import Private

Buffer = Annotated[str, typer.Option(help="How much memory an edge store (.csr) is read through, for example 256MiB.")]
DEFAULT_BUFFER = "256MiB"
Scheduler = Annotated[
    str | None,
    typer.Option(help="A Dask scheduler, tcp://HOST:PORT or tls://HOST:PORT: its workers read the edge store (.csr)."),
]
Workers = Annotated[int | None, typer.Option(min=1, help="Start so many Dask workers on this machine for the time.")]


@dataclass(frozen=True, eq=False)
class LoadedTraining:
    """A graph for training, and where its ledger lies by default."""

    graph: TrainableGraph
    name: str
    ledger_path: Path


def load_training(
    source: str | None,
    *,
    edges: Path | None,
    nodes: Path | None,
    features: Path | None,
    split: int,
    buffer: str,
    scheduler: str | None,
    workers: int | None,
    until: ExitStack,
    **edge_format: Any,
) -> LoadedTraining:
    """Read the nodes; an edge store stays where it is.

    Args:
        source: a data set by name.
        edges: the edges file or store.
        nodes: the nodes file.
        features: beside the nodes.
        split: of a data set.
        buffer: for a store that is read here.
        scheduler: of a cluster that reads the store.
        workers: start a cluster of so many on this machine.
        until: stops what was started, when it ends.
        edge_format: how an edges file is written.

    Privacy:
        The edges are wrapped on the way in; messages hold nothing from them.
    """
    room = size_in_bytes("--buffer", buffer, least="1KiB")
    if scheduler is not None and workers is not None:
        raise InputError("--scheduler, --workers", rule="exclude each other", got="both", fix="Pass one of them.")
    on_cluster = scheduler is not None or workers is not None
    stored = edges is not None and is_store(edges)
    if on_cluster and not stored:
        raise InputError(
            "--edges",
            rule="must be an edge store (.csr) that every worker can read, with --scheduler or --workers",
            got="none" if edges is None else edges.name,
            fix="Make one: gcon data convert --format csr.",
        )
    if edges is None or nodes is None or source is not None or not stored:
        loaded = load_source(source, edges=edges, nodes=nodes, features=features, split=split, **edge_format)
        return LoadedTraining(loaded.graph, loaded.name, loaded.ledger_path)
    table = read_nodes(nodes, features_path=features)
    private: Private[Edges] = (
        _on_cluster(scheduler, workers, edges, table, until)
        if on_cluster
        else private_store(edges, ids=table.ids, buffer_bytes=room)[0]
    )
    return LoadedTraining(LargeGraph(table.nodes, private, edges.stem), edges.stem, ledger_beside(edges))


def _on_cluster(
    scheduler: str | None, workers: int | None, store: Path, table: NodeTable, until: ExitStack
) -> Private[Edges]:
    from gcon.edges.cluster import cluster_edges
    from gcon.edges.cluster.local import local_cluster

    num_nodes, node_ids = table.nodes.num_nodes, ids_fingerprint(table.ids)
    if scheduler is not None:
        return cluster_edges(scheduler, store, num_nodes=num_nodes, node_ids=node_ids)
    started = until.enter_context(local_cluster(workers or 1))
    security = started.security
    return cluster_edges(started.address, store, num_nodes=num_nodes, node_ids=node_ids, security=security)
