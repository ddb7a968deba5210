"""Read the graph that a verb was told of, and open the ledger that belongs to it.

Privacy:
    Private edges are wrapped on the way in; messages hold nothing from them.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from gcon.cli.checks import size_in_bytes
from gcon.cli.ledger_place import has_ledger, ledger_beside, state_folder, warn_of_copies
from gcon.cli.other_books import missing_spending
from gcon.cli.output import Output
from gcon.cli.source import GraphSource, NodeColumns, PredictionSource, TableSource, TrainingSource
from gcon.columns import FeatureColumns
from gcon.edges.edge_list import EdgeList
from gcon.edges.graph import LargeGraph, PrivateGraph, TrainableGraph
from gcon.edges.source import Edges
from gcon.edges.store_format import SUFFIX
from gcon.errors import AccessRefusedError, InputError
from gcon.files.datasets import facts_of, load, names
from gcon.files.store_files import ids_fingerprint, private_store
from gcon.files.tables import NodeTable, read_edges, read_node_features, read_nodes
from gcon.nodes import PublicNodes
from gcon.privacy.boundary import Private
from gcon.privacy.deferred_ledger import DeferredLedger
from gcon.privacy.ledger_file import FileLedger
from gcon.release.prediction_files import Ids
from gcon.release.recovery import recovery_folder, settle_kept


def load_graph(where: GraphSource, *, known: FeatureColumns | None = None) -> PrivateGraph:
    """Read a named data set or a pair of files. An edge store is read into memory.

    Args:
        where: the graph.
        known: what was done with the columns in training.
    """
    if (where.source is None) == (where.edges is None and where.nodes is None):
        raise InputError(
            "SOURCE",
            rule="name a data set, or pass both --edges and --nodes",
            got="both" if where.source is not None else "neither",
            fix=f"Data sets: {', '.join(names())}.",
        )
    if where.source is not None:
        for name, given in _columns(where).items():
            if given:
                rule, fix = "is about a nodes file", "Leave it out: a named data set has numbers only."
                raise InputError(f"--{name}", rule=rule, got=f"the data set {where.source}", fix=fix)
        if Path(where.source).suffix:
            rule, fix = "must be the name of a data set", "Files go with --nodes and --edges."
            raise InputError("SOURCE", rule=rule, got=repr(where.source), fix=fix)
        return load(where.source, split=where.split)
    if where.edges is None or where.nodes is None:
        raise InputError("--edges, --nodes", rule="belong together", got="one of them", fix="Pass both.")
    table = read_nodes(where.nodes, features_path=where.features, feature_columns=known, **_columns(where))
    private, hygiene = read_edges(where.edges, ids=table.ids, **where.edge_format.columns())
    return PrivateGraph(table.nodes, private, hygiene, where.edges.stem)


def load_nodes(where: GraphSource, *, known: FeatureColumns | None = None) -> PublicNodes:
    """The public side alone: no edges file is opened, if one was named at all. Args: those of `load_graph`."""
    if where.source is None and where.nodes is not None:
        return read_nodes(where.nodes, features_path=where.features, feature_columns=known, **_columns(where)).nodes
    return load_graph(where).nodes


def _columns(where: GraphSource) -> NodeColumns:
    return where.node_format.columns() if isinstance(where, TableSource) else {}


@dataclass(frozen=True, eq=False)
class LoadedFeatures:
    """What prediction needs: node ids for the output, public features, private edges if they are to be read."""

    ids: Ids
    features: Tensor
    edges: Private[EdgeList] | None


def load_features(where: GraphSource, *, read_edges_too: bool, known: FeatureColumns | None = None) -> LoadedFeatures:
    """Read a graph for prediction: labels may be missing, and an edges file is opened only if it is needed."""
    if where.source is None and where.nodes is None:
        fix = f"Pass --nodes FILE, or name a data set: {', '.join(names())}."
        raise InputError("--nodes", rule="are needed to predict", got="none", fix=fix)
    if where.source is not None or where.nodes is None:
        graph = load_graph(where)
        return LoadedFeatures(range(graph.nodes.num_nodes), graph.nodes.features, graph.edges)
    ids, features = read_node_features(where.nodes, features_path=where.features, feature_columns=known)
    if not read_edges_too:
        return LoadedFeatures(ids, features, None)
    if where.edges is None:
        raise InputError("--edges", rule="is needed for own-edges", got="nothing", fix="Pass the edges file.")
    return LoadedFeatures(ids, features, read_edges(where.edges, ids=ids, **where.edge_format.columns())[0])


def load_training(where: TrainingSource, *, until: ExitStack) -> TrainableGraph:
    """Read a graph to train on; an edge store stays where it is.

    Args:
        where: the graph.
        until: stops the workers that were started, when it ends.
    """
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
    table = read_nodes(where.nodes, features_path=where.features, **_columns(where))
    private: Private[Edges] = (
        _on_cluster(where, store, table, until)
        if on_cluster
        else private_store(store, ids=table.ids, buffer_bytes=room)[0]
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


def open_payment(
    where: GraphSource, output: Output, *, near: Path | None = None, name: str | None = None
) -> DeferredLedger:
    """The ledger of the data, to pay from: however the verb ends, its output says what was charged.

    Args:
        where: the data.
        output: warns if releases beside the edges, the ledger or `near` know of more spending than the ledger.
        near: a further folder to look for releases in.
        name: what the owner calls the data; a new ledger takes it, an old one must have it already.
    """
    ledger = open_ledger(where, name=name)
    if where.edges is not None:
        usual, places = None, [where.edges.parent, ledger.path.parent]
        with suppress(InputError):  # what these edges were converted with is gone, and another ledger was named
            usual = ledger_beside(where.edges)
        for words in missing_spending(ledger, usual=usual, places=places if near is None else [*places, near]):
            output.warn(f"warning: {words}")
    if recovery_folder(ledger.path).exists() and (settled := settle_kept(ledger)):
        numbers = ", ".join(map(str, settled))
        output.remark(f"Settled in {ledger.path} what an earlier command could not: entries {numbers}.")
    payment = DeferredLedger(ledger)
    output.payments.append(payment)
    return payment


def open_ledger(where: GraphSource, *, name: str | None = None) -> FileLedger:
    """The ledger of the data: the one that was named, or the one beside it. An existing one keeps its own name."""
    if where.source is not None:
        usual_name = facts_of(where.source).name
        usual = state_folder() / f"{usual_name}.ledger"
    elif where.edges is not None:
        usual_name, usual = where.edges.stem, where.ledger or ledger_beside(where.edges)
    else:
        raise InputError("--edges", rule="is needed for a ledger", got="nothing", fix="Pass the edges file.")
    target = usual if where.ledger is None else where.ledger
    if where.ledger is None:
        target.parent.mkdir(parents=True, exist_ok=True)
    if where.edges is not None:
        warn_of_copies(where.edges, target)
    books = FileLedger(target, data_set=None if target.exists() else name or usual_name)
    if name not in (None, books.data_set):
        rule = f"must be the name in the ledger {target.name}, {books.data_set!a}, which it got when it was made"
        fix = "Leave it out; gcon report and gcon site take a --name of their own."
        raise InputError("--name", rule=rule, got=f"{name!a}", fix=fix)
    return books
