"""Rows of a block that several programs of a GPU share: which they are, and that finding them takes no memory per node."""

import torch

from gcon.edges import source
from gcon.edges.source import RowBlock
from gcon_lab.bench.live_tensors import LiveTensors

DEGREES = torch.randint(0, 30, (5000,), generator=torch.Generator().manual_seed(0))


def block(degrees):
    pointers = torch.cat([degrees.new_zeros(1), degrees.cumsum(0)])
    columns = torch.zeros(int(pointers[-1]), dtype=torch.int32)
    return RowBlock(slice(0, len(degrees)), pointers, columns, len(degrees))


def test_shared_rows_cover_long_rows_and_no_others(monkeypatch):
    monkeypatch.setattr(source, "_ROWS_AT_ONCE", 64)
    some = block(DEGREES)
    rows, starts, stops, owners = some.shared_rows(20, 8)
    assert rows.tolist() == [row for row, degree in enumerate(DEGREES.tolist()) if degree > 20]
    for place, row in enumerate(rows.tolist()):
        first, last = starts[owners == place].tolist(), stops[owners == place].tolist()
        assert first[0] == some.row_pointers[row]
        assert last[-1] == some.row_pointers[row + 1]
        assert first[1:] == last[:-1]
        assert all(stop - start <= 8 for start, stop in zip(first, last, strict=True))


def test_looking_for_long_rows_takes_little_memory(monkeypatch):
    monkeypatch.setattr(source, "_ROWS_AT_ONCE", 64)
    some = block(DEGREES)
    with LiveTensors() as watched:
        some.shared_rows(100, 8)
    assert watched.peak < 1.2 * some.row_pointers.nbytes


def test_a_block_without_nodes_has_no_long_rows():
    assert [len(part) for part in block(DEGREES[:0]).shared_rows(1, 1)] == [0, 0, 0, 0]
