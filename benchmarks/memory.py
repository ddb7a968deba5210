"""Peak memory of a fit on a graph with a million nodes and ten million edges, beyond the input.

    .venv/bin/python benchmarks/memory.py [--nodes 1000000 --edges 10000000]

Makes the graph, notes the resident memory with the input in place (features and a bare 2 x 10^7 edge_index), fits
`gcon.GCON` with 16 encoded columns, and reports the highest resident memory above that. Exits with 1 above 3 GiB.
"""

from __future__ import annotations

import argparse
import sys
import time

import gcon
from gcon.files.datasets.synthetic import social_circles_parts
from gcon_lab.bench.memory import forget_peak, resident


def main() -> int:
    """Print time and peak; 1 if above the threshold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    arguments = parser.parse_args()
    nodes, edge_index = social_circles_parts(
        arguments.nodes, mean_degree=2 * arguments.edges / arguments.nodes, num_features=32, per_class=20
    )
    before = forget_peak()
    start = time.perf_counter()
    model = gcon.GCON(epsilon=1.0).fit(
        nodes.features,
        nodes.labels.numpy(),
        edges=edge_index,
        train_mask=nodes.train_mask,
        validation_mask=nodes.validation_mask,
    )
    seconds = time.perf_counter() - start
    extra = (resident("VmHWM") - before) / 2**30
    print(f"{arguments.nodes:,} nodes, {arguments.edges:,} edges, 16 encoded columns: fit in {seconds:.1f} s")
    print(f"input {before / 2**30:.2f} GiB resident, peak {extra:.2f} GiB beyond it (limit 3)")
    print(f"accuracy without edges on the test nodes: {_accuracy(model, nodes):.3f}")
    return 0 if extra < 3 else 1


def _accuracy(model: gcon.GCON, nodes: gcon.PublicNodes) -> float:
    test = nodes.test_mask
    return float((model.predict(nodes.features[test]) == nodes.labels[test].numpy()).mean())


if __name__ == "__main__":
    sys.exit(main())
