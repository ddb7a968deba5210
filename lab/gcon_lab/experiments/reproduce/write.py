"""What a reader gets: every part as a table, a drawing and a section of the page, each file whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gcon.pages.frame import render
from gcon.writing import write_whole
from gcon_lab.experiments.reproduce import claims
from gcon_lab.experiments.reproduce.figures import draw
from gcon_lab.experiments.reproduce.points import Point, to_csv
from gcon_lab.experiments.reproduce.tables import DATASET_COLUMNS, dataset_row, figure_rows, figure_tables
from gcon_lab.experiments.sweep.graphs import MADE_UP, open_graph
from gcon_lab.tables import inline_svg, markdown, sheet

FIGURES = ("fig1", "fig2", "fig3", "fig4")
PARTS = ("table2", *FIGURES, "claims")
TITLES = {
    "fig1": "Fig. 1: accuracy against epsilon",
    "fig2": "Fig. 2: effect of the steps on a private test graph, epsilon 4",
    "fig3": "Fig. 3: effect of the steps on a public test graph, epsilon 4",
    "fig4": "Fig. 4: effect of the restart with two steps",
}
WORDS = {
    "fig1": (
        "Own edges at inference. GCON: the paper's grid, delta 1/|E| and choice by validation, not charged. GCON, honest: "
        "public delta, choices free or paid from epsilon. Of a competitor's variants and accesses the best on the test nodes is "
        "drawn, with a public delta and settings by validation, not charged."
    ),
    "fig2": "Own edges at inference; all other settings by validation, not charged.",
    "fig3": (
        "The model's propagation over public edges. The paper does not say which edges are left out: in one reading those of "
        "labelled nodes, in the other the nodes are split, the model is trained on one part and used on the other."
    ),
    "fig4": "Own edges at inference; all other settings by validation, not charged.",
}
LABELS = {
    "as in the paper": (
        "delta 1/|E| takes the number of edges as public; settings chosen by validation accuracy, not charged: as in the paper."
    ),
    "honest": "public delta, choices free or paid.",
    "controls": (
        "read no edge in training. A node's own edges are free at inference, so a private model is worth its budget only "
        "where it beats them."
    ),
}


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part.

    Attributes:
        name: of its files, and where links on the page lead.
        title, words: plain text; with a drawing the words are its caption.
        columns, rows: its table on the page.
        csv: the table to take along.
        text: the same in Markdown.
        svg, png: the drawing, where there is one.
    """

    name: str
    title: str
    words: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    csv: str
    text: str
    svg: str = ""
    png: bytes = b""

    @property
    def drawing(self) -> str:
        """The drawing for the inside of the page."""
        return inline_svg(self.svg, self.name, self.title)

    def files(self) -> Iterator[tuple[str, str | bytes]]:
        yield f"{self.name}.csv", self.csv
        yield f"{self.name}.md", self.text
        if self.svg:
            yield f"{self.name}.svg", self.svg
            yield f"{self.name}.png", self.png

    def section(self) -> str:
        """Of the text that gathers all parts."""
        shown = f"![{self.title}]({self.name}.svg)\n\n" if self.svg else ""
        return f"## {self.title}\n\n{self.words}\n\n{shown}{self.text}"


def write_parts(
    names: Sequence[str], points: Sequence[Point], graphs: Sequence[str], out: Path, *, facts: Mapping[str, str]
) -> Iterator[Path]:
    """Write some of `PARTS`, and the page and the text that gather them; gives the paths as they are written.

    Args:
        names: of the parts.
        points: of all figures, in any order.
        graphs: of the table of datasets.
        out: the folder.
        facts: how it was made, such as the command, the versions and the machine.
    """
    parts = [_part(name, points, graphs) for name in PARTS if name in names]
    for part in parts:
        for name, content in part.files():
            yield write_whole(out / name, content)
    heads = "\n".join(f"- {name}: {words}" for name, words in facts.items())
    whole = ["# The paper's figures and table, made again", heads, *(part.section() for part in parts)]
    yield write_whole(out / "results.md", "\n\n".join(whole) + "\n")
    yield write_whole(out / "index.html", page(parts, facts=facts))


def page(parts: Sequence[Part], *, facts: Mapping[str, str]) -> str:
    """All of it on one HTML page that needs nothing but itself."""
    titles = {**{part.name: part.title for part in parts}, "facts": "How it was made"}
    values = {"parts": parts, "sections": titles, "labels": LABELS, "facts": facts}
    return render("reproduction.html", values, package="gcon_lab.experiments.reproduce")


def _part(name: str, points: Sequence[Point], graphs: Sequence[str]) -> Part:
    if name == "table2":
        return _datasets(graphs)
    if name == "claims":
        return _claims(points)
    return _figure(name, [point for point in points if point.figure == name])


def _figure(name: str, points: Sequence[Point]) -> Part:
    svg, png = draw(name, points)
    columns, rows = figure_rows(points)
    return Part(
        name=name,
        title=TITLES[name],
        words=WORDS[name],
        columns=columns,
        rows=rows,
        csv=to_csv(points),
        text=figure_tables(points),
        svg=svg,
        png=png,
    )


def _datasets(graphs: Sequence[str]) -> Part:
    rows = [dataset_row(open_graph(graph, 0).graph) for graph in graphs if graph != MADE_UP]
    return Part(
        name="table2",
        title="The datasets",
        words="What the paper's table says, and what was measured on the loaded graphs.",
        columns=DATASET_COLUMNS,
        rows=rows,
        csv=sheet(DATASET_COLUMNS, rows),
        text=markdown(DATASET_COLUMNS, rows),
    )


def _claims(points: Sequence[Point]) -> Part:
    found = claims.check(points)
    return Part(
        name="claims",
        title="What the paper claims",
        words="Every claim of the paper's text, tested on these numbers.",
        columns=("claim", "verdict", "numbers"),
        rows=[(each.claim, each.verdict, each.numbers) for each in claims.overall(found)],
        csv=claims.to_csv(found),
        text=claims.markdown(found),
    )
