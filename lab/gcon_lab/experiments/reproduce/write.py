"""What a reader gets: every part as a table, a drawing and a section of the page, each file whole or not at all."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gcon.writing import write_whole
from gcon_lab.experiments.reproduce import claims
from gcon_lab.experiments.reproduce.figures import draw
from gcon_lab.experiments.reproduce.page import Section, page
from gcon_lab.experiments.reproduce.points import Point, to_csv
from gcon_lab.experiments.reproduce.tables import dataset_rows, dataset_table, figure_rows, markdown, measure
from gcon_lab.experiments.sweep.graphs import MADE_UP, open_graph

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


@dataclass(frozen=True)
class Part:
    """One part: its section of the page, its text in Markdown, and files besides its table."""

    section: Section
    text: str
    drawings: Mapping[str, bytes] = field(default_factory=dict)

    def files(self) -> Iterator[tuple[str, bytes]]:
        yield self.section.csv_name, self.section.csv.encode()
        yield f"{self.section.anchor}.md", self.text.encode()
        yield from self.drawings.items()


def write_parts(
    names: Sequence[str], points: Sequence[Point], graphs: Sequence[str], out: Path, *, facts: Mapping[str, str]
) -> Iterator[Path]:
    """Write some of `PARTS`, and the page and the text that gather them; gives the paths as they are written."""
    parts = [_part(name, points, graphs) for name in PARTS if name in names]
    for part in parts:
        for name, content in part.files():
            yield write_whole(out / name, content)
    heads = "\n".join(f"- {name}: {words}" for name, words in facts.items())
    texts = [f"## {part.section.title}\n\n{part.section.words}\n\n{_shown(part)}{part.text}" for part in parts]
    whole = "\n\n".join(["# The paper's figures and table, made again", heads, *texts])
    yield write_whole(out / "results.md", f"{whole}\n".encode())
    yield write_whole(out / "index.html", page([part.section for part in parts], facts=facts).encode())


def _shown(part: Part) -> str:
    return "".join(f"![{part.section.title}]({name})\n\n" for name in part.drawings if name.endswith(".svg"))


def _part(name: str, points: Sequence[Point], graphs: Sequence[str]) -> Part:
    if name == "table2":
        return _datasets(graphs)
    if name == "claims":
        return _claims(points)
    return _figure(name, [point for point in points if point.figure == name])


def _figure(name: str, points: Sequence[Point]) -> Part:
    svg, png = draw(name, points)
    columns, rows = figure_rows(points)
    section = Section(
        anchor=name,
        title=TITLES[name],
        words=WORDS[name],
        svg=svg,
        columns=columns,
        rows=rows,
        csv_name=f"{name}.csv",
        csv=to_csv(points),
    )
    return Part(section, markdown(points), {f"{name}.svg": svg.encode(), f"{name}.png": png})


def _datasets(graphs: Sequence[str]) -> Part:
    measured = [measure(open_graph(graph, 0).graph) for graph in graphs if graph != MADE_UP]
    columns, rows = dataset_rows(measured)
    sheet = io.StringIO()
    csv.writer(sheet, lineterminator="\n").writerows([columns, *rows])
    section = Section(
        anchor="table2",
        title="The datasets",
        words="What the paper's table says, and what was measured on the loaded graphs.",
        columns=columns,
        rows=rows,
        csv_name="table2.csv",
        csv=sheet.getvalue(),
    )
    return Part(section, dataset_table(measured))


def _claims(points: Sequence[Point]) -> Part:
    found = claims.check(points)
    section = Section(
        anchor="claims",
        title="What the paper claims",
        words="Every claim of the paper's text, tested on these numbers.",
        columns=("claim", "verdict", "numbers"),
        rows=[(each.claim, each.verdict, each.numbers) for each in claims.overall(found)],
        csv_name="claims.csv",
        csv=claims.to_csv(found),
    )
    return Part(section, claims.markdown(found))
