"""Where a verb's graph comes from, and which ledger belongs to it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol

import typer
from torch import Tensor

from gcon.edges.edge_list import EdgeList
from gcon.edges.graph import PrivateGraph
from gcon.errors import AccessRefusedError, InputError
from gcon.files.datasets import load, names
from gcon.files.tables import read_edges, read_node_features, read_nodes
from gcon.nodes import PublicNodes
from gcon.privacy.boundary import Private
from gcon.privacy.ledger_file import FileLedger

Source = Annotated[str | None, typer.Argument(help="A data set by name (gcon data list); or pass --edges and --nodes.")]
Edges = Annotated[
    Path | None, typer.Option(help="Edges: CSV, TSV, Parquet with columns source and target, .npz or .csr.")
]
Nodes = Annotated[Path | None, typer.Option(help="Nodes: CSV or Parquet with columns id, label, split and features.")]
Features = Annotated[Path | None, typer.Option(help="Features as .npy or .npz, one row a node, beside --nodes.")]
IgnoreColumn = Annotated[list[str], typer.Option(help="A further column of the edges file to leave unread; repeat.")]
SourceColumn = Annotated[str, typer.Option(help="The column of the edges file with one end of each edge.")]
TargetColumn = Annotated[str, typer.Option(help="The column of the edges file with the other end.")]
NoHeader = Annotated[bool, typer.Option("--no-header", help="The edges file has two columns and no header.")]
Split = Annotated[int, typer.Option(help="Which split of a named data set; 0 is the paper's.")]
PublicEdges = Annotated[
    Path | None,
    typer.Option(help="Edges that everybody may know, with --access public-graph: nothing is promised about them."),
]
LedgerPath = Annotated[Path | None, typer.Option("--ledger", help="Ledger file; by default beside the edges.")]


@dataclass(frozen=True, kw_only=True)
class EdgeFormat:
    """How an edges file is written: for `**vars(...)`, with the names of `read_edges`."""

    source_column: str = "source"
    target_column: str = "target"
    header: bool = True
    ignore_columns: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class LoadedGraph:
    """A graph for training or scoring, and where its ledger lies by default."""

    graph: PrivateGraph
    ledger_path: Path

    @property
    def name(self) -> str:
        """The owner's name for the data."""
        return self.graph.name


@dataclass(frozen=True, eq=False)
class LoadedFeatures:
    """What prediction needs: node ids for the output, public features, private edges if they are to be read."""

    ids: Sequence[object]
    features: Tensor
    edges: Private[EdgeList] | None
    name: str
    ledger_path: Path


def load_features(
    source: str | None,
    *,
    edges: Path | None,
    nodes: Path | None,
    features: Path | None = None,
    source_column: str = "source",
    target_column: str = "target",
    header: bool = True,
    ignore_columns: Sequence[str] = (),
    split: int = 0,
    read_edges_too: bool,
) -> LoadedFeatures:
    """Read a graph for prediction: labels may be missing, and edges are opened as a file only if they are needed."""
    if source is not None or nodes is None:
        loaded = load_source(source, edges=edges, nodes=nodes, split=split)
        graph = loaded.graph
        return LoadedFeatures(
            range(graph.nodes.num_nodes), graph.nodes.features, graph.edges, graph.name, loaded.ledger_path
        )
    ids, table = read_node_features(nodes, features_path=features)
    private = None
    if read_edges_too:
        if edges is None:
            raise InputError("--edges", rule="is needed for own-edges", got="nothing", fix="Pass the edges file.")
        private = read_edges(
            edges,
            ids=ids,
            source_column=source_column,
            target_column=target_column,
            header=header,
            ignore_columns=ignore_columns,
        )[0]
    place = nodes if edges is None else edges
    return LoadedFeatures(ids.tolist(), table, private, place.stem, ledger_beside(place))


def load_source(
    source: str | None,
    *,
    edges: Path | None,
    nodes: Path | None,
    features: Path | None = None,
    source_column: str = "source",
    target_column: str = "target",
    header: bool = True,
    ignore_columns: Sequence[str] = (),
    split: int = 0,
) -> LoadedGraph:
    """Read a named data set or a pair of files. An edge store is read into memory.

    Privacy:
        The edges are wrapped on the way in; messages hold nothing from them.
    """
    if (source is None) == (edges is None and nodes is None):
        raise InputError(
            "SOURCE",
            rule="name a data set, or pass both --edges and --nodes",
            got="both" if source is not None else "neither",
            fix=f"Data sets: {', '.join(names())}.",
        )
    if source is not None:
        graph = load(source, split=split)
        return LoadedGraph(graph, _state_folder() / f"{graph.name}.ledger")
    if edges is None or nodes is None:
        raise InputError("--edges, --nodes", rule="belong together", got="one of them", fix="Pass both.")
    table = read_nodes(nodes, features_path=features)
    private, hygiene = read_edges(
        edges,
        ids=table.ids,
        source_column=source_column,
        target_column=target_column,
        header=header,
        ignore_columns=ignore_columns,
    )
    graph = PrivateGraph(table.nodes, private, hygiene, edges.stem)
    return LoadedGraph(graph, ledger_beside(edges))


def load_nodes(
    source: str | None, *, edges: Path | None, nodes: Path | None, features: Path | None = None, split: int = 0
) -> PublicNodes:
    """The public side alone: no edges file is opened, if one was named at all."""
    if source is None and nodes is not None:
        return read_nodes(nodes, features_path=features).nodes
    return load_source(source, edges=edges, nodes=nodes, features=features, split=split).graph.nodes


def public_files(
    kind: str, *, source: str | None, edges: Path | None, nodes: Path | None, public_edges: Path | None
) -> tuple[Path, Path] | None:
    """The nodes and edges of a public graph; None if the access is another one.

    Edges are read as public only where somebody says that they are, and nothing says otherwise.

    Privacy:
        Looks at options and at names of files, links followed; opens none. A ledger elsewhere is not seen.
    """
    if kind != "public-graph":
        if public_edges is not None:
            rule, fix = "go with --access public-graph", "Private edges go with --edges."
            raise InputError("--public-edges", rule=rule, got=f"--access {kind}", fix=fix)
        return None
    if source is not None or edges is not None:
        raise AccessRefusedError(
            "access='public-graph' reads all edges, and those of a SOURCE or of --edges are private. Pass edges that "
            "everybody may know with --public-edges and --nodes, or use access='own-edges' or 'none'."
        )
    if nodes is None or public_edges is None:
        rule = "are needed for public-graph"
        raise InputError("--public-edges, --nodes", rule=rule, got="one of them or none", fix="Pass both.")
    beside = public_edges.with_name(f"{public_edges.name}.ledger")
    if beside.exists() or ledger_beside(public_edges.resolve()).exists():
        raise AccessRefusedError(
            f"A ledger lies beside {public_edges.name}: its edges have been used as private ones, and edges do not become "
            "public by being called so. Use access='own-edges' or 'none'."
        )
    return nodes, public_edges


def ledger_beside(edges: Path) -> Path:
    """Where the ledger of an edges file lies by default: beside the file itself, also if a link led there."""
    place = edges.resolve() if edges.is_symlink() or edges.parent.is_symlink() else edges
    return place.with_name(f"{place.name}.ledger")


class Loaded(Protocol):
    """Data with a ledger."""

    @property
    def name(self) -> str:
        """The owner's name for it."""

    @property
    def ledger_path(self) -> Path:
        """Where its ledger lies by default."""


def open_ledger(loaded: Loaded, path: Path | None) -> FileLedger:
    """The ledger of the data: the one that was named, or the one beside it. An existing one keeps its own name."""
    target = loaded.ledger_path if path is None else path
    if path is None:
        target.parent.mkdir(parents=True, exist_ok=True)
    return FileLedger(target, data_set=None if target.exists() else loaded.name)


def _state_folder() -> Path:
    """Where ledgers of named data sets are kept: the user's state folder."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "gcon"
