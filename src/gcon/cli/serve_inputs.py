"""What a service reads before it begins: the public node table, and private edges behind their gate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gcon.cli.options import EdgeFormat, GraphSource
from gcon.cli.output import Output
from gcon.cli.paying import open_payment
from gcon.columns import FeatureColumns
from gcon.edges.store_format import SUFFIX
from gcon.errors import InputError
from gcon.files.node_ids import NodeIds
from gcon.files.store_files import private_store
from gcon.files.tables import read_edges, read_node_features, read_nodes
from gcon.privacy.boundary import Private
from gcon.privacy.gates import OwnerAnswers
from gcon.serve.access_log import AccessLog
from gcon.serve.bodies import MOST_ID
from gcon.serve.served_release import NodeTable, RowEdges

PURPOSE = "a service answers node owners; every answer is in its access log"


@dataclass(frozen=True, eq=False)
class ReadTable:
    """The node table, and its ids as files know them."""

    table: NodeTable
    ids: NodeIds


def read_table(nodes: Path, features: Path | None, known: FeatureColumns | None) -> ReadTable:
    """The public node table. One without labels or splits will do: then no page shows a confusion matrix."""
    ids, matrix = read_node_features(nodes, features_path=features, feature_columns=known)
    try:
        labelled = read_nodes(nodes, features_path=features, feature_columns=known).nodes
    except InputError:
        labelled = None
    rows = {str(name): row for row, name in enumerate(ids.tolist())}
    if not rows or max(map(len, rows)) > MOST_ID:
        rule = f"must hold nodes, with ids of at most {MOST_ID} characters"
        raise InputError("nodes", rule=rule, got=nodes.name, fix="Check the file.")
    return ReadTable(NodeTable(rows=rows, features=matrix, nodes=labelled, feature_columns=known), ids)


def open_owners(
    edges: Path, known: ReadTable, output: Output, *, edge_format: EdgeFormat, ledger: Path | None, access_log: Path
) -> tuple[OwnerAnswers[RowEdges], AccessLog]:
    """Private edges behind their gate; that a service begins is recorded in the ledger.

    Privacy:
        The edges are wrapped on the way in. An edge store stays on the disk.
    """
    private: Private[RowEdges]
    if edges.suffix.lower() == SUFFIX:
        private = private_store(edges, ids=known.ids, verify=True)
    else:
        private = read_edges(edges, ids=known.ids, **edge_format.columns())[0]
    log = AccessLog(access_log)
    books = open_payment(GraphSource(edges=edges, ledger=ledger), output).ledger
    return OwnerAnswers(private, ledger=books, log=log, purpose=PURPOSE), log
