"""What accuracy costs, on the promise page: the chart's frame, its numbers, and where a budget bought nothing."""

from __future__ import annotations

import math
from html import escape

from gcon.methods.model import Model
from gcon.pages import measured
from gcon.pages.html_page import table
from gcon.pages.site_words import items


def accuracy_card(model: Model) -> str:
    """The graph and access to choose, the chart, and its numbers; the script fills it."""
    names = measured.graphs()
    first = model.receipt.data_set if model.receipt.data_set in names else names[0]
    options = "".join(
        f'<option value="{escape(name)}"{" selected" if name == first else ""}>{escape(measured.graph_title(name))}</option>'
        for name in names
    )
    return f"""<div class="card" role="group" aria-labelledby="costs-title">
<h3 id="costs-title">What accuracy costs</h3>
<p class="small">Measured on public graphs, never on the graph behind this model: an accuracy measured with its private
connections would give something away.</p>
<p><label for="graph">Graph</label> <select id="graph" autocomplete="off">{options}</select></p>
<fieldset><legend>Each answer reads</legend>
<label><input type="radio" name="access" value="own-edges" checked autocomplete="off"> one's own connections</label>
<label><input type="radio" name="access" value="none" autocomplete="off"> no connection</label></fieldset>
<svg id="chart" viewBox="0 0 400 250" role="img" aria-labelledby="outcome"></svg>
<p id="outcome"></p>
<p id="off-scale" class="small"></p>
</div>"""


def accuracy_table(model: Model) -> str:
    """The chart's numbers and its legend; the script fills it."""
    private = measured.NAMES[measured.MEASURED_AS[model.method]]
    rows = [
        ("below", "private", f"{private}, at or below the dial", ""),
        ("above", "private", f"{private}, above the dial", ""),
    ]
    rows += [(name, name, measured.NAMES[name], "nothing") for name in measured.CONTROLS[model.method]]
    rows += [(measured.NOT_PRIVATE, measured.NOT_PRIVATE, measured.NAMES[measured.NOT_PRIVATE], "no promise")]
    body = "".join(
        f'<tr data-row="{row}"><th scope="row"><span class="swatch {kind}"></span>{escape(title)}</th><td class="value"></td>'
        f'<td class="spends">{spends}</td></tr>'
        for row, kind, title, spends in rows
    )
    return f"""<div class="card scroll">
<table id="costs"><caption class="small">Correct labels, mean &plusmn; standard error over 10 runs.</caption>
<thead><tr><th scope="col">what</th><th scope="col">correct</th><th scope="col">spends</th></tr></thead>
<tbody>{body}</tbody></table>
</div>"""


def measured_facts(method: str) -> dict[str, object]:
    """The measurements that the chart shows, for the script."""
    private, controls = measured.MEASURED_AS[method], measured.CONTROLS[method]
    wanted = {private, *controls, measured.NOT_PRIVATE}
    rows = [score for score in measured.scores() if score.method in wanted and score.epsilon != math.inf]
    return {
        "private": private,
        "controls": list(controls),
        "notPrivate": measured.NOT_PRIVATE,
        "names": {name: measured.NAMES[name] for name in sorted(wanted)},
        "rows": [[score.graph, score.method, score.access, score.epsilon, score.mean, score.error] for score in rows],
    }


def comparisons(model: Model) -> str:
    """In which measurements the budget bought nothing: sentences, and all comparisons."""
    said, rows = [], []
    for access in measured.ACCESSES:
        found = measured.against_best_control(model.method, access)
        reads = "own connections" if access == "own-edges" else "no connection"
        never = [measured.graph_title(graph) for graph, by in found.items() if "above" not in by.values()]
        total = sum(len(by) for by in found.values())
        beaten = sum(list(by.values()).count("above") for by in found.values())
        said.append(
            f"Answers that read {reads}: it beats the best control in {beaten} of {total} measurements. "
            + _where_never(never, len(found))
        )
        rows += [(measured.graph_title(graph), reads, *by.values()) for graph, by in found.items()]
    budgets = next(iter(measured.against_best_control(model.method, "none").values()))
    columns = ("graph", "reads", *(f"epsilon {epsilon:g}" for epsilon in budgets))
    caption = "Against the best control; 'no different': within two standard errors of the difference."
    return (
        "<p>A control was trained without any private connection: it spends nothing, and everybody could make it. Only what "
        "the private model adds to the best of them was bought with privacy.</p>"
        + items(said)
        + f"<details><summary>All comparisons</summary>{table(columns, rows, caption)}</details>"
        + f"<details><summary>All measurements</summary>{_measurements(model)}</details>"
    )


def _where_never(never: list[str], total: int) -> str:
    """On which graphs it beats the best control at no measured epsilon."""
    if not never:
        return "On every graph it does at some epsilon."
    return (
        f"On none of the {total} graphs." if len(never) == total else f"At no measured epsilon on: {'; '.join(never)}."
    )


def _measurements(model: Model) -> str:
    """Every measured number that this page rests on."""
    private = measured.MEASURED_AS[model.method]
    wanted = (private, *measured.CONTROLS[model.method], measured.NOT_PRIVATE)
    budgets = sorted({score.epsilon for score in measured.scores() if score.epsilon is not None})
    rows = []
    for graph in measured.graphs():
        for name in wanted:
            for access in (*measured.ACCESSES, "full"):
                cells = {
                    score.epsilon: f"{100 * score.mean:.2f} ± {100 * score.error:.2f}"
                    for score in measured.scores()
                    if (score.graph, score.method, score.access) == (graph, name, access)
                }
                if cells:
                    rows.append((graph, name, access, *(cells.get(budget, "") for budget in (None, *budgets))))
    columns = ("graph", "method", "access", "no budget", *(f"epsilon {budget:g}" for budget in budgets))
    return table(columns, rows, "Correct labels in %, mean ± standard error, 10 runs each; test nodes.")
