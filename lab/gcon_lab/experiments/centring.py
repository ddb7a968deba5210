"""Why encoded features are centred: Cora-ML with and without it, at several ridges.

    .venv/bin/python -m gcon_lab.experiments.centring --out results/centring [--runs 10]

epsilon 1, public delta, own edges with the default inference restart, everything else at its default. Ten runs, each with
its own encoder seed and noise. Nothing is chosen.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

import gcon
from gcon.writing import write_whole
from gcon_lab.experiments.unit_store import UnitStore
from gcon_lab.tables import markdown

RIDGES = (0.01, 0.2, 1.0, 2.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=10)
    arguments = parser.parse_args()
    store = UnitStore(arguments.out / "units")
    graph = gcon.datasets.load("cora-ml")
    rows = []
    for ridge in RIDGES:
        cells = []
        for centre in (True, False):
            name = f"ridge{ridge:g}-{'centred' if centre else 'plain'}"
            scores = store.read(name)
            if scores is None or len(scores) != arguments.runs:
                scores = [
                    gcon.GCON(ridge=ridge, centre=centre, encoder_seed=run, random_state=run)
                    .fit(graph)
                    .score(graph, access="own-edges")
                    for run in range(arguments.runs)
                ]
                store.write(name, scores)
            cells.append(f"{statistics.mean(scores):.3f} ± {statistics.stdev(scores):.3f}")
        rows.append([f"{ridge:g}", *cells, str(arguments.runs)])
    table = markdown(["ridge", "centred", "not centred", "runs"], rows)
    write_whole(arguments.out / "centring.md", table)
    print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
