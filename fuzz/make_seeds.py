"""Make the releases that inputs start from, and what of the corpus follows from them: `python -m fuzz.make_seeds`.

Needed whenever the record of a release changes. The graph is made up; its noise is that of the system, so that the checks
of what is promised are reached.
"""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path

import torch

from gcon.edges.graph import private_graph
from gcon.methods.moments import Moments
from gcon.methods.objective import Objective
from gcon.nodes import PublicNodes
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SystemRandomness
from gcon.release.store import save_release

HERE = Path(__file__).parent
COUNT = 12


def main() -> None:
    """Both methods on twelve nodes."""
    rows = torch.arange(COUNT)
    nodes = PublicNodes(
        features=torch.stack([torch.cos(rows * 0.5), torch.sin(rows * 0.5)], dim=1),
        labels=rows % 2,
        num_classes=2,
        train_mask=rows < 8,
        validation_mask=(rows >= 8) & (rows < 10),
        test_mask=rows >= 10,
        class_names=("a", "b"),
    )
    graph = private_graph(nodes, torch.stack([rows, (rows + 2) % COUNT]), name="edges")
    for name, method in (("moments", Moments(epsilon=1.0)), ("paper", Objective(epsilon=1.0, delta=1e-3))):
        folder = HERE / "seeds" / name
        shutil.rmtree(folder, ignore_errors=True)
        model = method.train(nodes, graph.edges, ledger=MemoryLedger("edges"), randomness=SystemRandomness())
        save_release(model, folder)
    for target in ("release_json", "safetensors_header"):
        for place, content in enumerate(importlib.import_module(f"fuzz.{target}").seeds()):
            (HERE / "corpus" / target / f"valid-{place}").write_bytes(content)
    wrong = HERE / "corpus" / "release_json"
    moments, paper = ((wrong / f"valid-{place}").read_bytes() for place in (0, 1))
    (wrong / "nan").write_bytes(moments.replace(b'"version": 4\n', b'"version": NaN\n'))
    (wrong / "huge-epsilon").write_bytes(paper.replace(b'"epsilon": 1.0', b'"epsilon": 1' + b"0" * 400))


if __name__ == "__main__":
    main()
