"""The figures' numbers and the paper's dataset table, as rows for a page and as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList
from gcon.edges.graph import PrivateGraph
from gcon.files.datasets.facts import DatasetFacts, facts_of
from gcon.privacy.gates import declassify
from gcon.privacy.ledger import MemoryLedger
from gcon_lab.experiments.reproduce.arrangement import Panel, lines_of, panels, places_of
from gcon_lab.experiments.reproduce.points import ANY, Point
from gcon_lab.tables import markdown

_COUNTED: dict[str, Callable[[DatasetFacts], str]] = {
    "Vertices": lambda facts: f"{facts.num_nodes:,}",
    "Edges": lambda facts: f"{facts.num_edges:,}",
    "Features": lambda facts: f"{facts.num_features:,}",
    "Classes": lambda facts: f"{facts.num_classes:,}",
    "Homo. ratio": lambda facts: f"{facts.homophily:.2f}",  # the paper gives two digits
}
DATASET_COLUMNS = (
    "Dataset",
    *(f"{name} (paper / measured)" for name in _COUNTED),
    "Undirected edges",
    "Train / validation / test",
    "Differs",
)


def figure_rows(points: Sequence[Point]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of one figure's numbers, all graphs in one table."""
    read = any(point.reading for point in points)
    columns = ["graph", *(["reading"] if read else []), "line", *_heads(points)]
    rows = [
        [panel.title, *([panel.reading] if read else []), *row]
        for panel in _filled(points)
        for row in _lines(panel, points)
    ]
    return columns, rows


def figure_tables(points: Sequence[Point]) -> str:
    """One figure's numbers: a heading and a table for every graph (and reading), a row per line, a column a place."""
    parts = []
    for panel in _filled(points):
        heading = f"### {panel.title}" + (f": {panel.reading}" if panel.reading else "")
        parts.append(f"{heading}\n\n{markdown(['line', *_heads(points)], _lines(panel, points))}")
    return "\n".join(parts)


def _filled(points: Sequence[Point]) -> list[Panel]:
    return [panel for row in panels(points) for panel in row if panel.points]


def _heads(points: Sequence[Point]) -> list[str]:
    level = [ANY] if any(point.place == ANY for point in points) else []
    return [*(f"{place:g}" for place in places_of(points)), *level]


def _lines(panel: Panel, points: Sequence[Point]) -> list[list[str]]:
    rows = []
    for line in lines_of(panel.points):
        cells = {_head(p): f"{p.mean:.3f} ± {p.deviation:.3f}" for p in panel.points if p.line == line}
        rows.append([line, *(cells.get(head, "") for head in _heads(points))])
    return rows


def _head(point: Point) -> str:
    return ANY if point.place == ANY else f"{float(point.place):g}"


def dataset_row(graph: PrivateGraph) -> list[str]:
    """One row of the paper's dataset table (Table 2): published and measured side by side, and where they differ.

    Privacy:
        Opens the edges without noise, which voids every promise about them: for published graphs only.
    """
    ledger, reason = MemoryLedger(graph.name), "public benchmark graph: the paper's table of datasets"
    edges = declassify(graph.edges, reason=reason, ledger=ledger)
    hygiene = declassify(graph.hygiene, reason=reason, ledger=ledger)
    nodes, paper = graph.nodes, facts_of(graph.name)
    measured = replace(
        paper,
        num_nodes=nodes.num_nodes,
        num_edges=hygiene.given,  # entries of the stored edge list: the paper's count, and the |E| of its delta
        num_features=nodes.features.shape[1],
        num_classes=nodes.num_classes,
        homophily=node_homophily(edges, nodes.labels),
    )
    pairs = {name: (words(paper), words(measured)) for name, words in _COUNTED.items()}
    differing = [f"{name}: {said} in the paper, {own} measured" for name, (said, own) in pairs.items() if said != own]
    masks = nodes.train_mask, nodes.validation_mask, nodes.test_mask
    return [
        paper.title,
        *(f"{said} / {own}" for said, own in pairs.values()),
        f"{hygiene.kept:,}",
        " / ".join(f"{int(mask.sum()):,}" for mask in masks),
        "; ".join(differing) or "nowhere",
    ]


def node_homophily(edges: EdgeList, labels: Tensor) -> float:
    """Mean over all nodes of the share of neighbours with the same label (the paper's Definition of the ratio).

    An isolated node counts 0, which gives the published 0.71 of CiteSeer; a node without a label agrees with nobody.
    """
    rows, columns = edges.edge_index()
    same = (labels[rows] == labels[columns]) & (labels[rows] >= 0)
    agreeing = torch.bincount(rows, weights=same.double(), minlength=edges.num_nodes)
    return float((agreeing / edges.degrees.clamp(min=1)).mean())
