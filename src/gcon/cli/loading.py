"""Read the graph that a verb was told of.

Privacy:
    Private edges are wrapped on the way in; messages hold nothing from them.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from gcon.cli.checks import size_in_bytes
from gcon.cli.ledger_place import has_ledger
from gcon.cli.output import Output
from gcon.cli.source import GraphSource, PredictionSource, TableSource, TrainingSource
from gcon.columns import FeatureColumns
from gcon.edges.edge_list import EdgeList
from gcon.edges.graph import LargeGraph, PrivateGraph, TrainableGraph
from gcon.edges.source import Edges
from gcon.edges.store_format import SUFFIX
from gcon.errors import AccessRefusedError, InputError
from gcon.files.datasets import load, names
from gcon.files.store_files import ids_fingerprint, private_store
from gcon.files.tables import NodeTable, read_edges, read_node_features, read_nodes
from gcon.methods.model import Model
from gcon.methods.moments import MomentsModel
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
    choices = vars(where.node_format) if isinstance(where, TableSource) else {}
    if where.source is not None:
        for name, given in choices.items():
            if given:
                rule, fix = "is about a nodes file", "Leave it out: a named data set has numbers only."
                raise InputError(f"--{name}", rule=rule, got=f"the data set {where.source}", fix=fix)
        if Path(where.source).suffix:
            rule, fix = "must be the name of a data set", "Files go with --nodes and --edges."
            raise InputError("SOURCE", rule=rule, got=repr(where.source), fix=fix)
        return load(where.source, split=where.split)
    if where.edges is None or where.nodes is None:
        raise InputError("--edges, --nodes", rule="belong together", got="one of them", fix="Pass both.")
    table = read_nodes(where.nodes, features_path=where.features, feature_columns=known, **choices)
    private, hygiene = read_edges(where.edges, ids=table.ids, **where.edge_format.columns())
    return PrivateGraph(table.nodes, private, hygiene, where.edges.stem)


def load_nodes(where: GraphSource, *, known: FeatureColumns | None = None) -> PublicNodes:
    """The public side alone: no edges file is opened, if one was named at all."""
    if where.source is None and where.nodes is not None:
        choices = vars(where.node_format) if isinstance(where, TableSource) else {}
        return read_nodes(where.nodes, features_path=where.features, feature_columns=known, **choices).nodes
    if where.source is None:
        raise _no_nodes()
    return load_graph(where).nodes


def _no_nodes() -> InputError:
    fix = f"Pass --nodes FILE, or name a data set: {', '.join(names())}."
    return InputError("--nodes", rule="are needed", got="none", fix=fix)


@dataclass(frozen=True, eq=False)
class LoadedFeatures:
    """What prediction needs: node ids for the output, public features, private edges if they are to be read."""

    ids: Ids
    features: Tensor
    edges: Private[EdgeList] | None


def load_features(where: GraphSource, *, read_edges_too: bool, known: FeatureColumns | None = None) -> LoadedFeatures:
    """Read a graph for prediction: labels may be missing, and an edges file is opened only if it is needed."""
    if where.source is None and where.nodes is None:
        raise _no_nodes()
    if where.source is not None or where.nodes is None:
        graph = load_graph(where)
        return LoadedFeatures(range(graph.nodes.num_nodes), graph.nodes.features, graph.edges)
    ids, features = read_node_features(where.nodes, features_path=where.features, feature_columns=known)
    if not read_edges_too:
        return LoadedFeatures(ids, features, None)
    if where.edges is None:
        raise InputError("--edges", rule="is needed for own-edges", got="nothing", fix="Pass the edges file.")
    return LoadedFeatures(ids, features, read_edges(where.edges, ids=ids, **where.edge_format.columns())[0])


def tell_of_cached(output: Output, model: Model, features: Tensor) -> None:
    """Say that the nodes of the training can be answered better, and as publicly, where that is so."""
    knows_more = isinstance(model, MomentsModel) and model.tables
    if knows_more and features_fingerprint(features) == model.training_nodes:
        words = "These are the nodes of the training: --access cached uses the counts released of them too, and is as public."
        output.progress.print(words, highlight=False, soft_wrap=True)


def load_training(where: TrainingSource, *, until: ExitStack) -> TrainableGraph:
    """Read a graph to train on; an edge store stays where it is, and workers that were started stop when `until` ends."""
    room = size_in_bytes("--buffer", where.buffer, least="KiB")
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
    if store is None or where.nodes is None or where.source is not None:
        return load_graph(where)
    table = read_nodes(where.nodes, features_path=where.features, **vars(where.node_format))
    private: Private[Edges] = (
        _on_cluster(where, store, table, until)
        if on_cluster
        else private_store(store, ids=table.ids, buffer_bytes=room)
    )
    return LargeGraph(table.nodes, private, store.stem)


def _on_cluster(where: TrainingSource, store: Path, table: NodeTable, until: ExitStack) -> Private[Edges]:
    from gcon.edges.cluster import cluster_edges
    from gcon.edges.cluster.local import local_cluster

    num_nodes, node_ids = table.nodes.num_nodes, ids_fingerprint(table.ids)
    if where.scheduler is not None:
        return cluster_edges(where.scheduler, store, num_nodes=num_nodes, node_ids=node_ids)
    started = until.enter_context(local_cluster(where.workers or 1))
    security = started.security
    return cluster_edges(started.address, store, num_nodes=num_nodes, node_ids=node_ids, security=security)


def public_files(access: str, where: PredictionSource) -> tuple[Path, Path] | None:
    """The nodes and edges of a public graph; None if the access is another one.

    Edges are read as public only where you say that they are, and nothing says otherwise.

    Privacy:
        Looks at options and at names of files, links followed; opens none. A ledger elsewhere is not seen.
    """
    if access != "public-graph":
        if where.public_edges is not None:
            rule, fix = "go with --access public-graph", "Private edges go with --edges."
            raise InputError("--public-edges", rule=rule, got=f"--access {access}", fix=fix)
        return None
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
