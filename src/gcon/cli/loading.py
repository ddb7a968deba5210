"""Read the graph that a verb was told of.

Privacy:
    Private edges are wrapped on the way in; messages hold nothing from them.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from torch import Tensor

from gcon.cli.checks import size_in_bytes
from gcon.cli.ledger_place import has_ledger
from gcon.cli.options import GraphSource, PredictionSource, TableSource, TrainingSource
from gcon.cli.output import Output
from gcon.columns import FeatureColumns
from gcon.edges.edge_list import EdgeList
from gcon.edges.graph import LargeGraph, PrivateGraph, TrainableGraph
from gcon.edges.source import Edges
from gcon.edges.store_format import SUFFIX
from gcon.edges.stored import BUFFER_BYTES
from gcon.errors import AccessRefusedError, InputError
from gcon.files.datasets import load, names
from gcon.files.store_files import ids_fingerprint, private_store
from gcon.files.tables import read_edges, read_node_features, read_nodes
from gcon.methods.model import Model
from gcon.nodes import PublicNodes, features_fingerprint
from gcon.privacy.boundary import Private
from gcon.release.prediction_files import Ids


def load_graph(where: GraphSource, *, known: FeatureColumns | None = None) -> PrivateGraph:
    """Read a named data set or a pair of files. An edge store is read into memory. `known`: the columns in training."""
    if (where.source is None) == (where.edges is None and where.nodes is None):
        raise InputError(
            "SOURCE",
            rule="name a data set, or pass both --edges and --nodes",
            got="both" if where.source is not None else "neither",
            fix=f"Data sets: {', '.join(names())}.",
        )
    drop, categorical = (where.drop, where.categorical) if isinstance(where, TableSource) else ([], [])
    if where.source is not None:
        for name, given in (("drop", drop), ("categorical", categorical)):
            if given:
                rule, fix = "is about a nodes file", "Leave it out: a named data set has numbers only."
                raise InputError(f"--{name}", rule=rule, got=f"the data set {where.source}", fix=fix)
        if Path(where.source).suffix:
            rule, fix = "must be the name of a data set", "Files go with --nodes and --edges."
            raise InputError("SOURCE", rule=rule, got=repr(where.source), fix=fix)
        return load(where.source, split=where.split)
    if where.edges is None or where.nodes is None:
        got = "--edges alone" if where.nodes is None else "--nodes alone"
        raise InputError("--edges, --nodes", rule="belong together", got=got, fix="Pass both.")
    columns: dict[str, Any] = {"feature_columns": known, "drop": drop, "categorical": categorical}
    table = read_nodes(where.nodes, features_path=where.features, **columns)
    private, hygiene = read_edges(where.edges, ids=table.ids, **where.columns())
    return PrivateGraph(table.nodes, private, hygiene, where.edges.stem)


def load_nodes(where: GraphSource, *, known: FeatureColumns | None = None) -> PublicNodes:
    """The public side alone: no edges file is opened, if one was named at all."""
    if where.source is not None:
        return load_graph(where).nodes
    if where.nodes is None:
        raise _no_nodes()
    drop, categorical = (where.drop, where.categorical) if isinstance(where, TableSource) else ([], [])
    columns: dict[str, Any] = {"feature_columns": known, "drop": drop, "categorical": categorical}
    return read_nodes(where.nodes, features_path=where.features, **columns).nodes


def _no_nodes() -> InputError:
    fix = f"Pass --nodes FILE, or name a data set: {', '.join(names())}."
    return InputError("--nodes", rule="are needed", got="none", fix=fix)


def load_features(
    where: GraphSource, *, read_edges_too: bool, known: FeatureColumns | None = None
) -> tuple[Ids, Tensor, Private[EdgeList] | None]:
    """What prediction needs: ids for the output, public features, and private edges if they are to be read.

    Labels may be missing, and an edges file is opened only if it is needed.
    """
    if where.source is None and where.nodes is None:
        raise _no_nodes()
    if where.source is not None or where.nodes is None:
        graph = load_graph(where)
        return range(graph.nodes.num_nodes), graph.nodes.features, graph.edges
    ids, features = read_node_features(where.nodes, features_path=where.features, feature_columns=known)
    if not read_edges_too:
        return ids, features, None
    if where.edges is None:
        raise InputError("--edges", rule="is needed for own-edges", got="nothing", fix="Pass the edges file.")
    return ids, features, read_edges(where.edges, ids=ids, **where.columns())[0]


def tell_of_cached(output: Output, model: Model, features: Tensor) -> None:
    """Say that nodes of the training table can be answered better, and as publicly, where that is so."""
    if model.best_public_access == "cached" and features_fingerprint(features) == model.training_nodes:
        words = "These are nodes of the training table: --access cached uses the counts released of them too, and is as public."
        output.progress.print(words, highlight=False, soft_wrap=True)


def load_training(where: TrainingSource, *, until: ExitStack) -> TrainableGraph:
    """Read a graph to train on; an edge store stays where it is, and workers that were started stop when `until` ends."""
    room = BUFFER_BYTES if where.buffer is None else size_in_bytes("--buffer", where.buffer, least="KiB")
    if where.scheduler is not None and where.workers is not None:
        raise InputError("--scheduler, --workers", rule="exclude each other", got="both", fix="Pass one of them.")
    store = where.edges if where.edges is not None and where.edges.suffix.lower() == SUFFIX else None
    on_cluster = where.scheduler is not None or where.workers is not None
    if on_cluster and store is None:
        raise InputError(
            "--edges",
            rule="must be an edge store (.csr) that every worker can read, with --scheduler or --workers",
            got="none" if where.edges is None else where.edges.name,
            fix="Make one: gcon data convert --format csr.",
        )
    if where.source is not None or where.nodes is None or where.edges is None:
        return load_graph(where)  # a data set by name, or something is missing
    table = read_nodes(where.nodes, features_path=where.features, drop=where.drop, categorical=where.categorical)
    if store is None:
        edges, hygiene = read_edges(where.edges, ids=table.ids, **where.columns())
        return PrivateGraph(table.nodes, edges, hygiene, where.edges.stem)
    private: Private[Edges]
    if on_cluster:
        from gcon.edges.cluster import cluster_edges
        from gcon.edges.cluster.local import local_cluster

        address, security = where.scheduler, None
        if address is None:
            started = until.enter_context(local_cluster(where.workers or 1))
            address, security = started.address, started.security
        node_ids = ids_fingerprint(table.ids)
        private = cluster_edges(address, store, num_nodes=table.nodes.num_nodes, node_ids=node_ids, security=security)
    else:
        private = private_store(store, ids=table.ids, buffer_bytes=room)
    return LargeGraph(table.nodes, private, store.stem)


def public_files(access: str, where: PredictionSource) -> tuple[Path, Path]:
    """The nodes and edges of a public graph, where --public-edges or --access asks for one.

    Edges are read as public only where you say that they are, and nothing says otherwise.

    Privacy:
        Looks at options and at names of files, links followed; opens none. A ledger elsewhere is not seen.
    """
    if access != "public-graph":
        rule, fix = "go with --access public-graph", "Private edges go with --edges."
        raise InputError("--public-edges", rule=rule, got=f"--access {access}", fix=fix)
    if where.source is not None or where.edges is not None:
        raise AccessRefusedError(
            "access='public-graph' reads all edges, and those of a SOURCE or of --edges are private. Pass edges that "
            "everybody may know with --public-edges and --nodes, or use access='own-edges' or 'none'."
        )
    nodes, edges = where.nodes, where.public_edges
    if nodes is None or edges is None:
        rule = "are needed for public-graph"
        raise InputError("--public-edges, --nodes", rule=rule, got="one of them or none", fix="Pass both.")
    if has_ledger(edges):
        raise AccessRefusedError(
            f"A ledger lies beside {edges.name}: its edges have been used as private ones, and edges do not become "
            "public by being called so. Use access='own-edges' or 'none'."
        )
    return nodes, edges
