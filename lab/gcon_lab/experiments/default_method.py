"""The default method and its control on all graphs: accuracy under every access, and how well owners' answers are calibrated.

    python -m gcon_lab.experiments.default_method --out DIR [--graphs NAMES] [--runs 10] [--workers 2] [--labels bare]

Every graph and run is a file in DIR/store, written whole: interrupted work goes on where it was. `--first-run 5` leaves runs 0
to 4 out: settings were looked for on those. `--labels` measures epsilon 1 with the labels that many people have: `bare` without
validation nodes, `told` likewise but with the share of every class, rounded to one digit, `five` with five per class and no more,
`uneven` as many as 20 per class in all, drawn as classes come, `all-teach` with the validation labels as training labels.
Citation graphs have one split, the same in all runs: `redrawn`
draws one of the same sizes for every run, and `redrawn-bare` leaves its validation nodes out.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from gcon.machine import one_thread
from gcon.methods.moments import Moments, MomentsModel
from gcon.methods.predictions import Access
from gcon.nodes import PublicNodes
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.experiments.command import command, write_all
from gcon_lab.experiments.sweep.graphs import CIRCLES, SHAPES, open_graph
from gcon_lab.experiments.sweep.social import SOCIAL
from gcon_lab.experiments.units import Call, finished
from gcon_lab.methods import MomentsWithoutEdges
from gcon_lab.tables import markdown, mean_and_error

DELTA, BUDGETS = 1e-5, (0.5, 1.0, 2.0, 3.0, 4.0, math.inf)
ACCESSES: tuple[Access, ...] = ("none", "cached", "own-edges")
REAL = ("cora-ml", "citeseer", "pubmed", "actor", *SOCIAL)
GRAPHS = {"real": REAL, "made-up": tuple(CIRCLES), "all": (*REAL, *CIRCLES), "shapes": tuple(SHAPES)}
_BINS, _DRAWN = 15, 1000

Row = dict[str, float]


def measured(name: str, run: int, labels: str = "all") -> list[Row]:
    """The control, then every budget: what is right under each access, and the calibration error of owners' answers."""
    opened = open_graph(name, run)
    nodes, rows = LABELS[labels](opened.graph.nodes, run), []
    with one_thread():
        control = MomentsWithoutEdges(seed=run).learn(nodes).score_functions
        found = {access: control[access](nodes.features, opened.edges) for access in ("none", "own-edges")}
        rows.append({"epsilon": 0.0, **{access: share_right(scores, nodes) for access, scores in found.items()}})
        for epsilon in BUDGETS if labels == "all" and name not in SHAPES else (1.0,):
            noise = SeededRandomness(zlib.crc32(f"{name}|{run}|{epsilon}".encode()))
            method = Moments(epsilon=epsilon, delta=DELTA, seed=run, device="cpu")
            model: MomentsModel = method.train(nodes, opened.graph.edges, ledger=MemoryLedger(name), randomness=noise)
            scores = {access: model.score_functions[access](nodes.features, opened.edges) for access in ACCESSES}
            row: Row = {access: share_right(table, nodes) for access, table in scores.items()}
            row |= {"calibration": _calibration_error(scores["own-edges"], nodes), "tables": float(len(model.tables))}
            rows.append({"epsilon": epsilon, "own edges used": float(model.own_edges)} | row)
    return rows


def _bare(nodes: PublicNodes, _: int) -> PublicNodes:
    return replace(nodes, validation_mask=torch.zeros_like(nodes.validation_mask))


def _told(nodes: PublicNodes, run: int) -> PublicNodes:
    counts = torch.bincount(nodes.labels[nodes.labels >= 0], minlength=nodes.num_classes)
    rough = [float(f"{float(count / counts.sum()):.1g}") for count in counts]
    return replace(_bare(nodes, run), class_shares=tuple(share / sum(rough) for share in rough))


def _five(nodes: PublicNodes, run: int) -> PublicNodes:
    mask, order = torch.zeros_like(nodes.train_mask), np.random.default_rng(run).permutation(nodes.num_nodes)
    for label in range(nodes.num_classes):
        mask[[row for row in order if nodes.train_mask[row] and nodes.labels[row] == label][:5]] = True
    return replace(_bare(nodes, run), train_mask=mask)


def _uneven(nodes: PublicNodes, run: int) -> PublicNodes:
    allowed = (~nodes.test_mask & (nodes.labels >= 0)).nonzero()[:, 0].numpy()
    mask = torch.zeros_like(nodes.train_mask)
    mask[np.random.default_rng(run).permutation(allowed)[: int(nodes.train_mask.sum())]] = True
    return replace(_bare(nodes, run), train_mask=mask)


def _all_teach(nodes: PublicNodes, run: int) -> PublicNodes:
    return replace(_bare(nodes, run), train_mask=nodes.train_mask | nodes.validation_mask)


def _redrawn(nodes: PublicNodes, run: int) -> PublicNodes:
    order = np.random.default_rng(_DRAWN + run).permutation((nodes.labels >= 0).nonzero()[:, 0].numpy())
    per_class = torch.bincount(nodes.labels[nodes.train_mask], minlength=nodes.num_classes).tolist()
    labels = nodes.labels.numpy()[order]
    train = np.concatenate([order[labels == label][:count] for label, count in enumerate(per_class)])
    others = order[~np.isin(order, train)]
    validation = int(nodes.validation_mask.sum())
    masks = [torch.zeros_like(nodes.train_mask) for _ in range(3)]
    places = train, others[:validation], others[validation : validation + int(nodes.test_mask.sum())]
    for mask, some in zip(masks, places, strict=True):
        mask[some] = True
    return replace(nodes, train_mask=masks[0], validation_mask=masks[1], test_mask=masks[2])


LABELS: dict[str, Callable[[PublicNodes, int], PublicNodes]] = {
    "all": lambda nodes, _: nodes,
    "bare": _bare,
    "told": _told,
    "five": _five,
    "uneven": _uneven,
    "all-teach": _all_teach,
    "redrawn": _redrawn,
    "redrawn-bare": lambda nodes, run: _bare(_redrawn(nodes, run), run),
}


def share_right(scores: Tensor, nodes: PublicNodes) -> float:
    return float((scores.argmax(dim=1) == nodes.labels)[nodes.test_mask].double().mean())


def _calibration_error(scores: Tensor, nodes: PublicNodes) -> float:
    """Expected calibration error: how far the probability of the likeliest class is from the share that is right, over bins."""
    sure, classes = torch.softmax(scores[nodes.test_mask], dim=1).max(dim=1)
    right, bins = (classes == nodes.labels[nodes.test_mask]).double(), (sure * _BINS).ceil()
    gaps = [(right[bins == each].sum() - sure[bins == each].sum()).abs() for each in bins.unique()]
    return float(torch.stack(gaps).sum() / len(sure))


def default_unit(name: str, run: int, labels: str = "all") -> Call:
    """The measurement of one graph and run, as it is kept."""
    words = "" if labels == "all" else f"-{labels}"
    return Call(f"{name.replace('/', '-')}{words}-run{run}", measured, (name, run, labels))


def table(results: Mapping[str, Sequence[Sequence[Row]]]) -> str:
    """One line per graph and budget; mean and standard error over runs."""
    columns, lines = (*ACCESSES, "calibration"), []
    for name, runs in results.items():
        for rows in zip(*runs, strict=True):
            epsilon = rows[0]["epsilon"]
            label = "control, no edge" if epsilon == 0 else "no noise" if math.isinf(epsilon) else f"{epsilon:g}"
            found = {column: [row[column] for row in rows] for column in rows[0]}
            means = [f"{np.mean(found[each]):.1f}" if each in found else "" for each in ("tables", "own edges used")]
            cells = [mean_and_error(found[each]) if each in found else "" for each in columns]
            lines.append([name, label, *means, *cells])
    return markdown(["graph", "epsilon", "tables of counts", "own edges used", *columns], lines)


def main() -> None:
    """Measure and write `default.md`."""
    parser = command(__doc__, "graphs", "first-run", "runs", "workers", graphs="all")
    parser.add_argument("--labels", choices=tuple(LABELS), default="all")
    given = parser.parse_args()
    names, runs = (
        GRAPHS.get(given.graphs) or given.graphs.split(","),
        range(given.first_run, given.first_run + given.runs),
    )
    units = [default_unit(name, run, given.labels) for name in names for run in runs]
    found = iter(finished(units, given.out / "store", workers=given.workers))
    results = {name: [next(found) for _ in runs] for name in names}
    options = f"--graphs {given.graphs} --first-run {given.first_run} --runs {given.runs}"
    options += "" if given.labels == "all" else f" --labels {given.labels}"
    head = [
        "# The default method",
        "",
        f"Made by `python -m gcon_lab.experiments.default_method {options} --out DIR`:",
        f"mean and standard error over {given.runs} runs of the share of right answers on test nodes; delta {DELTA:g}, seeded",
        "noise. Settings were looked for on runs 0 to 13 and 30 to 46. `control, no edge` is the same pipeline",
        "with the private statistics left out: a zero-budget answer, which may use a node's own edges for free. `calibration` is",
        "the expected calibration error of answers with own edges.",
        "",
    ]
    words = [each for each in (given.graphs, given.labels) if each in {*LABELS, "shapes", "made-up"} - {"all"}]
    write_all(given.out, {f"{'-'.join(words) or 'default'}.md": "\n".join([*head, table(results)])})


if __name__ == "__main__":
    main()
