"""One small reproduction of everything, made once: real workers, a made-up graph, a made-up competitors' table."""

import csv
import io

import pytest
from rich.console import Console

from gcon_lab.experiments import baselines
from gcon_lab.experiments.grids import COMPETITORS
from gcon_lab.experiments.reproduce.build import Job, reproduce
from gcon_lab.experiments.sweep.graphs import MADE_UP


def competitors_csv():
    """A table with every line of `gcon_lab.experiments.baselines`; the means differ, so that it matters which is drawn."""
    sheet = io.StringIO()
    writer = csv.DictWriter(sheet, baselines.COLUMNS, lineterminator="\n", restval="")
    writer.writeheader()
    number = 0
    for entry in COMPETITORS:
        for epsilon in ("1", "4") if entry.spends else ("any",):
            for access in entry.shown:
                number += 1
                numbers = {"mean": f"0.{3000 + 7 * number}", "standard deviation": "0.0100", "runs": 10}
                row = {"graph": MADE_UP, "epsilon": epsilon, "method": entry.name, "access": access}
                writer.writerow({**row, **numbers, "chosen by": "validation, uncharged", "settings": "{}"})
    return sheet.getvalue()


@pytest.fixture(scope="session")
def sheet_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("competitors") / "competitors.csv"
    path.write_text(competitors_csv())
    return path


@pytest.fixture(scope="session")
def whole(tmp_path_factory, sheet_file):
    """The job and its outcome; do not write there."""
    out = tmp_path_factory.mktemp("whole") / "results"
    job = Job(what="all", out=out, quick=True, graphs=(MADE_UP,), runs=1, competitors=sheet_file, workers=2)
    return job, reproduce(job, Console(quiet=True))
