"""The figures' numbers and the paper's dataset table, as rows for a page and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList
from gcon.edges.graph import PrivateGraph
from gcon.files.datasets.facts import facts_of
from gcon.privacy.gates import declassify
from gcon.privacy.ledger import MemoryLedger
from gcon_lab.experiments.reproduce.arrangement import Panel, lines_of, panels, places_of
from gcon_lab.experiments.reproduce.points import ANY, Point

Table = tuple[list[str], list[list[str]]]


@dataclass(frozen=True, kw_only=True)
class DatasetRow:
    """What was measured on one loaded graph.

    Attributes:
        name, title: as `gcon.datasets.load` and the literature call it.
        nodes: the number of nodes.
        stored_edges: entries of the stored edge list: the paper's count, and the |E| of its delta.
        undirected_edges: simple undirected edges, the unit that is protected.
        features, classes: their numbers.
        homophily: mean over the nodes of the share of neighbours with the same label; an isolated node counts 0.
        train, validation, test: nodes in the parts of the split.
    """

    name: str
    title: str
    nodes: int
    stored_edges: int
    undirected_edges: int
    features: int
    classes: int
    homophily: float
    train: int
    validation: int
    test: int


def figure_rows(points: Sequence[Point]) -> Table:
    """Columns and rows of one figure's numbers, all graphs in one table."""
    places = places_of(points)
    several = len({point.reading for point in points if point.reading}) > 0
    columns = ["graph", *(["reading"] if several else []), "line", *_heads(points, places)]
    rows = [
        [panel.title, *([panel.reading] if several else []), *row]
        for panel in _filled(points)
        for row in _lines(panel, points, places)
    ]
    return columns, rows


def markdown(points: Sequence[Point]) -> str:
    """One figure's numbers: a heading and a table for every graph (and reading), a row per line, a column a place."""
    places = places_of(points)
    parts = []
    for panel in _filled(points):
        heading = f"### {panel.title}" + (f": {panel.reading}" if panel.reading else "")
        parts.append(f"{heading}\n\n{_markdown(['line', *_heads(points, places)], _lines(panel, points, places))}")
    return "\n".join(parts)


def measure(graph: PrivateGraph) -> DatasetRow:
    """Count what the paper's table counts, on a public benchmark graph.

    Privacy:
        Opens the edges without noise, which voids every promise about them: for published graphs only.
    """
    ledger, reason = MemoryLedger(graph.name), "public benchmark graph: the paper's table of datasets"
    edges = declassify(graph.edges, reason=reason, ledger=ledger)
    hygiene = declassify(graph.hygiene, reason=reason, ledger=ledger)
    nodes = graph.nodes
    return DatasetRow(
        name=graph.name,
        title=facts_of(graph.name).title,
        nodes=nodes.num_nodes,
        stored_edges=hygiene.given,
        undirected_edges=hygiene.kept,
        features=nodes.features.shape[1],
        classes=nodes.num_classes,
        homophily=node_homophily(edges, nodes.labels),
        train=int(nodes.train_mask.sum()),
        validation=int(nodes.validation_mask.sum()),
        test=int(nodes.test_mask.sum()),
    )


def node_homophily(edges: EdgeList, labels: Tensor) -> float:
    """Mean over all nodes of the share of neighbours with the same label (the paper's Definition of the ratio).

    An isolated node counts 0, which gives the published 0.71 of CiteSeer; a node without a label agrees with nobody.
    """
    rows, columns = edges.edge_index()
    same = (labels[rows] == labels[columns]) & (labels[rows] >= 0)
    agreeing = torch.bincount(rows, weights=same.double(), minlength=edges.num_nodes)
    return float((agreeing / edges.degrees.clamp(min=1)).mean())


def dataset_rows(rows: Sequence[DatasetRow]) -> Table:
    """Columns and rows of the paper's dataset table: published and measured side by side, and where they differ."""
    counted = ["Vertices", "Edges", "Features", "Classes", "Homo. ratio"]
    columns = [
        "Dataset",
        *(f"{name} (paper / measured)" for name in counted),
        "Undirected edges",
        "Train / validation / test",
        "Differs",
    ]
    table = []
    for row in rows:
        pairs = dict(zip(counted, _pairs(row), strict=True))
        differing = [
            f"{name}: {paper} in the paper, {own} measured" for name, (paper, own) in pairs.items() if paper != own
        ]
        table.append(
            [
                row.title,
                *(f"{paper} / {own}" for paper, own in pairs.values()),
                f"{row.undirected_edges:,}",
                f"{row.train:,} / {row.validation:,} / {row.test:,}",
                "; ".join(differing) or "nowhere",
            ]
        )
    return columns, table


def dataset_table(rows: Sequence[DatasetRow]) -> str:
    """The paper's dataset table (Table 2) as Markdown."""
    return _markdown(*dataset_rows(rows))


def _pairs(row: DatasetRow) -> Iterator[tuple[str, str]]:
    facts = facts_of(row.name)
    yield f"{facts.num_nodes:,}", f"{row.nodes:,}"
    yield f"{facts.num_edges:,}", f"{row.stored_edges:,}"
    yield f"{facts.num_features:,}", f"{row.features:,}"
    yield f"{facts.num_classes:,}", f"{row.classes:,}"
    yield f"{facts.homophily:.2f}", f"{row.homophily:.2f}"  # the paper gives two digits


def _filled(points: Sequence[Point]) -> list[Panel]:
    return [panel for row in panels(points) for panel in row if panel.points]


def _heads(points: Sequence[Point], places: Sequence[float]) -> list[str]:
    level = [ANY] if any(point.place == ANY for point in points) else []
    return [*(f"{place:g}" for place in places), *level]


def _lines(panel: Panel, points: Sequence[Point], places: Sequence[float]) -> list[list[str]]:
    rows = []
    for line in lines_of(panel.points):
        cells = {_head(p): f"{p.mean:.3f} ± {p.deviation:.3f}" for p in panel.points if p.line == line}
        rows.append([line, *(cells.get(head, "") for head in _heads(points, places))])
    return rows


def _head(point: Point) -> str:
    return ANY if point.place == ANY else f"{float(point.place):g}"


def _markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
