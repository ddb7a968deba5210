"""The memory that benchmarks/gpu.py needs on a GPU, counted on the processor by the same code at a small size."""

import torch

from gcon.edges import fixed_point, source
from gcon.mechanisms import influence
from gcon_lab.bench.graphs import made_edges
from gcon_lab.bench.large_release import CLASSES, COLUMNS, large_release
from gcon_lab.bench.live_tensors import LiveTensors

NODES, ENTRIES = 40_000, 400_000


def test_live_tensors_counts_storages_once_and_until_they_are_gone():
    with LiveTensors() as watched:
        numbers = torch.zeros(1000, dtype=torch.float64)
        views = numbers[:500], numbers.view(10, 100)
        assert watched.live == 8000
        more = numbers + 1
        del numbers, views
        assert watched.live == 8000
        del more
    assert (watched.live, watched.peak) == (0, 16000)


def test_a_large_release_keeps_one_copy_of_the_features_and_two_states_of_the_walk(monkeypatch):
    # What is made some rows at a time is small beside the rest at a large size; so it is here.
    for module in (fixed_point, source, influence):
        monkeypatch.setattr(module, "_ROWS_AT_ONCE", 512)
    edges = made_edges(NODES, ENTRIES)
    with LiveTensors() as watched:
        large_release(edges, torch.device("cpu"))
    in_edges = edges.columns.nbytes + edges.row_pointers.nbytes
    walk = NODES * COLUMNS * (4 + 2 * 8)
    on_the_processor = NODES * CLASSES * 4  # targets: not on a GPU
    expected = in_edges + walk + on_the_processor
    # Aggregates of the labelled nodes are a few hundredths more; another copy of the features would be 16.
    assert expected < watched.peak < 1.03 * expected
