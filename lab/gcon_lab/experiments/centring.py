"""Why encoded features are centred: Cora-ML with and without it, at several ridges.

    .venv/bin/python -m gcon_lab.experiments.centring --out results/centring [--runs 10]

epsilon 1, public delta, own edges with the default inference restart, everything else at its default. Ten runs, each with
its own encoder seed and noise. Nothing is chosen.
"""

from __future__ import annotations

import statistics

import gcon
from gcon_lab.experiments.command import command, write_all
from gcon_lab.experiments.units import Call, finished
from gcon_lab.tables import markdown

RIDGES = (0.01, 0.2, 1.0, 2.0)


def score(ridge: float, centre: bool, run: int) -> float:
    """Micro-F1 of one run with own edges."""
    graph = gcon.datasets.load("cora-ml")
    model = gcon.GCON(ridge=ridge, centre=centre, encoder_seed=run, random_state=run).fit(graph)
    return model.score(graph, access="own-edges")


def main() -> None:
    given = command(__doc__, "runs", "workers", workers=1).parse_args()
    rows = []
    for ridge in RIDGES:
        cells = []
        for word, centre in (("centred", True), ("plain", False)):
            units = [Call(f"ridge{ridge:g}-{word}-run{run}", score, (ridge, centre, run)) for run in range(given.runs)]
            scores = finished(units, given.out / "units", workers=given.workers)
            cells.append(f"{statistics.mean(scores):.3f} ± {statistics.stdev(scores):.3f}")
        rows.append([f"{ridge:g}", *cells, str(given.runs)])
    table = markdown(["ridge", "centred", "not centred", "runs"], rows)
    write_all(given.out, {"centring.md": table})
    print(table)


if __name__ == "__main__":
    main()
