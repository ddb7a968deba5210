"""The reproduction's drawings, tables and page: nothing is lost on the way, and nothing comes from elsewhere."""

import csv
import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
import torch

from gcon.edges.edge_list import public_edges
from gcon.edges.graph import private_graph
from gcon.files.datasets.facts import facts_of
from gcon.nodes import PublicNodes
from gcon_lab.experiments.reproduce import write
from gcon_lab.experiments.reproduce.figures import draw, styles_of
from gcon_lab.experiments.reproduce.points import GRAPHS, Point, lines_of, panels, to_csv
from gcon_lab.experiments.reproduce.write import (
    DATASET_COLUMNS,
    LABELS,
    Part,
    dataset_row,
    figure_rows,
    figure_tables,
    node_homophily,
    page,
)

pytestmark = pytest.mark.slow

PLACES = {"fig1": ("0.5", "4"), "fig2": ("1", "inf"), "fig3": ("1", "inf"), "fig4": ("1", "3")}
COMPETITORS = ("DP-SGD", "DPGCN", "LPGNet", "GAP", "ProGAP")
CONTROLS = ("encoder, one hop", "self-training & one <hop>")
READINGS = ("test nodes' edges left out", "edges between test nodes left out")
VOID = {"link", "meta", "br"}


def point(figure, graph, line, kind, place, mean=0.7, deviation=0.01, reading=""):
    return Point(
        figure=figure, graph=graph, reading=reading, line=line, kind=kind, place=place, access="own-edges", mean=mean,
        deviation=deviation, runs=3, delta="1/|E|", chosen_by="validation, uncharged", settings="",
    )  # fmt: skip


def points_of(figure):
    """All lines of a figure; controls last, to see them sorted, and without a reading, to see them in every row."""
    made = []
    for graph in GRAPHS[figure]:
        for place in PLACES[figure]:
            if figure == "fig1":
                made += [point(figure, graph, line, "gcon", place, 0.8) for line in ("GCON", "GCON, honest")]
                made += [point(figure, graph, line, "competitor", place, 0.5) for line in COMPETITORS]
            else:
                for reading in READINGS if figure == "fig3" else ("",):
                    lines = [f"restart {restart}" for restart in (0.2, 0.4, 0.6, 0.8)]
                    made += [point(figure, graph, line, "gcon", place, 0.8, reading=reading) for line in lines]
        if figure == "fig1":
            made.append(point(figure, graph, "GCN (non-private)", "non-private", "any", 0.85))
            made.append(point(figure, graph, "MLP", "competitor", "any", 0.6))
        made += [point(figure, graph, line, "control", "any") for line in CONTROLS]
    return made


@pytest.fixture(scope="module")
def drawn():
    return {figure: draw(figure, points_of(figure)) for figure in GRAPHS}


def elements(svg, name):
    """Elements of the drawing whose id begins with a name."""
    return [found for found in ElementTree.fromstring(svg).iter() if found.get("id", "").startswith(name)]


def words(element):
    return [text.strip() for text in element.itertext() if text.strip()]


@pytest.mark.parametrize("figure", GRAPHS)
def test_every_line_is_in_the_legend_and_sorted_by_kind(drawn, figure):
    (legend,) = elements(drawn[figure][0], "legend")
    lines = lines_of(points_of(figure))
    assert [text for text in words(legend) if text in lines] == list(lines)
    kinds = list(lines.values())
    assert kinds == sorted(kinds, key=["gcon", "competitor", "control", "non-private"].index)
    assert "edge-free controls" in words(legend)


@pytest.mark.parametrize("figure", GRAPHS)
def test_every_panel_has_its_title_and_the_controls_as_level_lines(drawn, figure):
    svg, _ = drawn[figure]
    titles = {"cora-ml": "Cora-ML", "citeseer": "CiteSeer", "pubmed": "PubMed", "actor": "Actor"}
    for row in range(2 if figure == "fig3" else 1):
        for graph in GRAPHS[figure]:
            (panel,) = [found for found in elements(svg, f"panel-{graph}-{row}") if "line" not in found.get("id")]
            assert titles[graph] in words(panel)
            level = [found.get("id") for found in panel.iter() if found.get("id", "").endswith("-level")]
            assert sum("one-hop" in name for name in level) == len(CONTROLS)
            lines = [found.get("id") for found in panel.iter() if "-line-" in found.get("id", "")]
            assert len(set(lines)) == len(lines) == len(lines_of(points_of(figure)))
            if figure == "fig3":
                assert READINGS[row].split()[0] in " ".join(words(panel)).split()
    assert len(elements(svg, "panel-actor")) == (0 if figure != "fig1" else len(elements(svg, "panel-cora-ml")))


def test_controls_alone_are_dashed():
    lines = lines_of(points_of("fig1"))
    dashed = {line for line, style in styles_of(lines).items() if "linestyle" in style.drawing}
    assert dashed == set(CONTROLS)
    looks = [
        (s.colour, str(s.drawing.get("marker")), str(s.drawing.get("linestyle"))) for s in styles_of(lines).values()
    ]
    assert len(set(looks)) == len(looks)
    assert max(lines, key=lambda line: styles_of(lines)[line].drawing["lw"]) == "GCON"


def test_places_of_the_axes(drawn):
    for figure, ticks in (("fig1", ["0.5", "1", "2", "3", "4"]), ("fig2", ["1", "2", "5", "10", "∞"])):
        (panel,) = [found for found in elements(drawn[figure][0], "panel-pubmed-0") if "line" not in found.get("id")]
        assert words(panel)[: len(ticks)] == ticks
        assert "micro-F1 (test)" in drawn[figure][0]


def test_equal_points_give_equal_bytes_and_other_points_do_not(drawn):
    points = points_of("fig2")
    assert draw("fig2", points) == drawn["fig2"]
    svg, png = draw("fig2", [*points[1:], point("fig2", "cora-ml", "restart 0.2", "gcon", "1", 0.81)])
    assert svg != drawn["fig2"][0]
    assert png != drawn["fig2"][1]


def test_files_are_small_dateless_and_white(drawn):
    for svg, png in drawn.values():
        assert len(svg.encode()) < 150_000
        assert "<metadata" not in svg
        assert "#ffffff" in svg[: svg.index("panel-")]
        assert png.startswith(b"\x89PNG")


def test_partial_results_are_drawn_as_they_are():
    svg, _ = draw("fig1", [point("fig1", "citeseer", "GAP", "competitor", "2")])
    assert svg.count("no results yet") == 3
    assert "GAP" in svg
    empty, _ = draw("fig4", [])
    assert empty.count("no results yet") == 3


def test_a_graph_that_is_not_in_the_paper_has_a_panel_after_those_that_are():
    ((*others, last),) = panels([point("fig1", "made-up", "GAP", "competitor", "2")], GRAPHS["fig1"])
    assert [panel.graph for panel in others] == list(GRAPHS["fig1"])
    assert not any(panel.points for panel in others)
    assert (last.title, len(last.points)) == ("made-up", 1)


def test_markdown_cells():
    points = [
        point("fig1", "actor", "GAP", "competitor", "4", 0.3),
        point("fig1", "cora-ml", "one | hop", "control", "any", 0.77449, 0.0126),
        point("fig1", "cora-ml", "GCON", "gcon", "4", 0.8),
        point("fig1", "cora-ml", "GCON", "gcon", "0.5", 0.75, 0.1),
    ]
    first = (
        "### Cora-ML\n\n| line | 0.5 | 4 | any |\n|---|---|---|---|\n"
        "| GCON | 0.750 ± 0.100 | 0.800 ± 0.010 |  |\n| one \\| hop |  |  | 0.774 ± 0.013 |\n"
    )
    second = "### Actor\n\n| line | 0.5 | 4 | any |\n|---|---|---|---|\n| GAP |  | 0.300 ± 0.010 |  |\n"
    assert figure_tables(points) == f"{first}\n{second}"
    columns, rows = figure_rows(points)
    assert columns == ["graph", "line", "0.5", "4", "any"]
    assert rows[0] == ["Cora-ML", "GCON", "0.750 ± 0.100", "0.800 ± 0.010", ""]
    assert len(rows) == 3


def test_every_reading_has_a_table_with_the_controls():
    text = figure_tables(points_of("fig3"))
    headings = [f"### {title}: {reading}" for reading in READINGS for title in ("Cora-ML", "CiteSeer", "PubMed")]
    assert re.findall("^###.*$", text, re.MULTILINE) == headings
    assert all(text.count(f"| {control} |") == len(headings) for control in CONTROLS)
    assert figure_rows(points_of("fig3"))[0][:3] == ["graph", "reading", "line"]


def test_measured_numbers_and_where_they_differ_from_the_paper(monkeypatch):
    # A path 0 - 1 - 2 with a loop and a repeat, and an isolated node.
    edge_index = torch.tensor([[0, 1, 2, 2], [1, 0, 1, 2]])
    labels = torch.tensor([0, 0, 1, 1])
    assert node_homophily(public_edges(edge_index, 4), labels) == pytest.approx((1 + 0.5 + 0 + 0) / 4)
    unlabelled = torch.tensor([-1, -1, 1, 1])
    assert node_homophily(public_edges(edge_index, 4), unlabelled) == 0
    mask = torch.tensor([True, False, False, False])
    nodes = PublicNodes(
        features=torch.eye(4),
        labels=labels,
        num_classes=2,
        train_mask=mask | mask.roll(2),
        validation_mask=mask.roll(1),
        test_mask=mask.roll(3),
    )
    graph = private_graph(nodes, edge_index, name="cora")
    published = replace(facts_of("cora"), num_nodes=4, num_edges=4, num_features=4, num_classes=2, homophily=0.3751)
    monkeypatch.setattr(write, "facts_of", lambda _: published)
    row = dict(zip(DATASET_COLUMNS, dataset_row(graph), strict=True))
    assert (row["Dataset"], row["Undirected edges"]) == ("Cora", "2")
    assert row["Edges (paper / measured)"] == "4 / 4"  # as they are stored
    assert row["Homo. ratio (paper / measured)"] == "0.38 / 0.38"
    assert row["Train / validation / test"] == "2 / 1 / 1"
    assert row["Differs"] == "nowhere"
    published = replace(published, num_edges=5, homophily=0.24)
    expected = "Edges: 5 in the paper, 4 measured; Homo. ratio: 0.24 in the paper, 0.38 measured"
    assert dataset_row(graph)[-1] == expected


class Reader(HTMLParser):
    """A strict reader: every element is closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.found, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def sections(drawn):
    made = []
    for figure, (svg, _) in drawn.items():
        columns, rows = figure_rows(points_of(figure))
        made.append(
            Part(
                name=figure,
                title=f"Figure {figure[-1]} & more",
                words="All <parts>.",
                columns=columns,
                rows=rows,
                csv=to_csv(points_of(figure)),
                text="",
                svg=svg,
            )
        )
    table = {"columns": ["claim", "holds"], "rows": [["a < b", "no"]], "csv": "claim,holds\n"}
    return [*made, Part(name="claims", title="Claims", words="", text="", **table)]


@pytest.fixture(scope="module")
def html(sections):
    return page(sections, facts={"command": "make <it>", "torch": "2"})


def test_page_is_whole_and_has_every_section(html, sections):
    reader = Reader(html)
    ids = [attributes["id"] for _, attributes in reader.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    found = [attributes["id"] for tag, attributes in reader.found if tag == "section"]
    assert found == [*(section.name for section in sections), "facts"]
    assert {f"#{anchor}" for anchor in found} <= {attributes.get("href") for _, attributes in reader.found}
    for section in sections:
        assert section.title in reader.text
        assert all(cell in reader.text for row in section.rows for cell in row)
    assert all(label in reader.text for label in LABELS.values())
    assert "make <it>" in reader.text
    assert "All <parts>." in reader.text
    tags = [tag for tag, _ in reader.found]
    assert (tags.count("svg"), tags.count("figure"), tags.count("table")) == (5, 4, 6)  # one more: the mark
    assert "prefers-color-scheme: dark" in html


def test_page_asks_nothing_from_elsewhere_and_carries_its_files(html):
    assert not re.search("https?:", html)
    assert "default-src 'none'" in html
    files = {}
    for tag, attributes in Reader(html).found:
        assert tag not in ("script", "img", "image", "iframe")
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith(("#", "data:text/csv", "data:image/svg+xml;"))
        if "download" in attributes:
            files[attributes["download"]] = unquote(attributes["href"].split(",", 1)[1])
    assert files.pop("claims.csv") == "claim,holds\n"
    assert files == {f"{figure}.csv": to_csv(points_of(figure)) for figure in GRAPHS}
    assert len(list(csv.DictReader(io.StringIO(files["fig1.csv"])))) == len(points_of("fig1"))
