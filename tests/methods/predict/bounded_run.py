"""A large table of features, from the file to the predictions, in a process that may not hold it.

`python bounded_run.py FEATURES OUT ROOM`: prints how many rows were written.
"""

import resource
import sys
from pathlib import Path

import polars
import torch

from gcon.edges.schemes import Schemes
from gcon.files.node_features import features_of_arrays
from gcon.learn.encoder import Encoder
from gcon.methods.no_edges import batches_without_edges
from gcon.methods.objective import ObjectiveModel
from gcon.nodes import PublicNodes
from gcon.privacy.budget import Budget
from gcon.privacy.receipt import Receipt
from gcon.release.prediction_files import prediction_writer


def limit(room: int) -> None:
    """Room for so many more bytes of memory of its own; maps of files that cannot be written to do not count."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    held = int(status["VmData"].split()[0]) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (held + room, held + room))


def main() -> None:
    """Read, check, encode, predict and write."""
    features, out, room = sys.argv[1:]
    rows, columns, classes = 600_000, 128, 3
    narrow = Encoder(
        hidden_weight=torch.ones(columns, 2),
        hidden_bias=torch.zeros(2),
        head_weight=torch.ones(2, classes),
        head_bias=torch.zeros(classes),
        unit_input=True,
        centre=None,
    )
    model = ObjectiveModel(
        weights=torch.ones(2, classes, dtype=torch.float64),
        encoder=narrow,
        schemes=Schemes(restart=0.5, steps=(2,)),
        inference_restart=0.5,
        loss="soft-margin",
        class_names=("a", "b", "c"),
        training_nodes="",
        receipt=Receipt(
            time="",
            data_set="",
            protected_change="",
            mechanism="",
            purpose="",
            budget=Budget(1.0, 1e-6),
            keeps_promise=True,
            randomness="",
            plan={},
            total=Budget(1.0, 1e-6),
        ),
    )
    polars.DataFrame({"a": [1.0]}).write_csv(out)  # the threads are there before memory is measured
    narrow.encode(torch.ones(10, columns))
    limit(int(room))
    matrix, problems = features_of_arrays(Path(features), rows)
    assert not problems
    mask = torch.zeros(rows, dtype=torch.bool)
    labels = torch.zeros(rows, dtype=torch.int8)
    train = mask.clone()
    train[:4] = True
    nodes = PublicNodes(
        features=matrix, labels=labels, num_classes=2, train_mask=train, validation_mask=mask, test_mask=mask
    )
    assert len(nodes.fingerprint) == 64
    assert narrow.classes(matrix).shape == (rows,)
    assert narrow.encode(matrix, dtype=torch.float32).shape == (rows, 2)
    with prediction_writer(out, range(rows), owner_only=True) as write:
        for batch in batches_without_edges(model, matrix):
            write(batch)
    print(polars.scan_csv(out).select(polars.len()).collect().item())


if __name__ == "__main__":
    main()
