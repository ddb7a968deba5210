"""Where a verb's graph comes from: the options that say it, each written once, in records that verbs take whole.

Every option has the name of its field, with hyphens.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gcon.files.edge_files import EdgeOptions

Nodes = Annotated[Path | None, typer.Option(help="Nodes: CSV or Parquet with columns id, label, split and features.")]
Features = Annotated[Path | None, typer.Option(help="Features as .npy or .npz, one row per node, beside --nodes.")]
Edges = Annotated[
    Path | None, typer.Option(help="Edges: CSV, TSV, Parquet with columns source and target, .npz or .csr.")
]
LedgerPath = Annotated[Path | None, typer.Option("--ledger", help="Ledger file; by default beside the edges.")]


@dataclass(frozen=True, kw_only=True)
class EdgeFormat:
    """How an edges file is written."""

    source_column: Annotated[str, typer.Option(help="The column of the edges file with one end of each edge.")] = (
        "source"
    )
    target_column: Annotated[str, typer.Option(help="The column of the edges file with the other end.")] = "target"
    ignore_column: Annotated[
        list[str], typer.Option(help="A further column of the edges file to leave unread; repeat.")
    ] = field(default_factory=list)
    no_header: Annotated[bool, typer.Option("--no-header", help="The edges file has two columns and no header.")] = (
        False
    )

    def columns(self) -> EdgeOptions:
        """The same by the names that `read_edges` has, for `**`."""
        return {
            "source_column": self.source_column,
            "target_column": self.target_column,
            "header": not self.no_header,
            "ignore_columns": self.ignore_column,
        }


@dataclass(frozen=True, kw_only=True)
class NodeFormat:
    """What the columns of a nodes file are, by the names that `read_nodes` has."""

    drop: Annotated[list[str], typer.Option(help="A column of the nodes file to leave out; repeat.")] = field(
        default_factory=list
    )
    categorical: Annotated[
        list[str], typer.Option(help="A column of the nodes file that holds categories, not numbers; repeat.")
    ] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class _Graph:
    """A data set by name, or files."""

    source: Annotated[
        str | None, typer.Argument(help="A data set by name (gcon data list); or pass --edges and --nodes.")
    ] = None
    edges: Edges = None
    nodes: Nodes = None
    features: Features = None


@dataclass(frozen=True, kw_only=True)
class GraphSource(EdgeFormat, _Graph):
    """A graph, and the ledger that belongs to it. What columns are, a model knows."""

    split: Annotated[int, typer.Option(help="Which split of a named data set; 0 is the paper's.")] = 0
    ledger: LedgerPath = None


@dataclass(frozen=True, kw_only=True)
class TableSource(NodeFormat, GraphSource):
    """A graph that no model was trained on yet: what its columns are must be said."""


@dataclass(frozen=True, kw_only=True)
class TrainingSource(TableSource):
    """A graph to train on: its edges may also stay on a disk, or on the workers of a cluster."""

    buffer: Annotated[
        str | None,
        typer.Option(
            help="How much memory an edge store (.csr) is read through, for example 256MiB.", show_default="256MiB"
        ),
    ] = None
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="A Dask scheduler, tcp://HOST:PORT or tls://HOST:PORT: its workers read the edge store (.csr)."
        ),
    ] = None
    workers: Annotated[
        int | None, typer.Option(min=1, help="Start so many Dask workers on this machine for the time.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class PredictionSource(GraphSource):
    """A graph to use a model on: its edges may also be public."""

    public_edges: Annotated[
        Path | None,
        typer.Option(help="Edges that everybody may know, with --access public-graph: nothing is promised about them."),
    ] = None
