"""Passes over many rows: in small pieces, with the same outcome."""

import hashlib
from types import SimpleNamespace

import pytest
import torch

from gcon import nodes as rows_module
from gcon.errors import InputError
from gcon.methods import moments
from gcon.nodes import check_features, features_fingerprint, row_slices


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(rows_module, "BATCH_ROWS", 7)
    monkeypatch.setattr(rows_module, "BATCH_ENTRIES", 20)


class Watched:
    """A table that remembers how many rows were asked for at once; it has no way to hand out all of them unseen."""

    def __init__(self, values):
        self.values, self.shape, self.largest = values, values.shape, 0

    def dim(self):
        return self.values.dim()

    def __getitem__(self, chosen):
        part = self.values[chosen]
        self.largest = max(self.largest, len(part))
        return part


@pytest.mark.parametrize(("count", "batch"), [(0, 3), (1, 3), (3, 3), (10, 3), (12, 3)])
def test_slices_cover_all_rows_once(count, batch):
    found = list(row_slices(count, batch))
    assert [row for part in found for row in range(part.start, part.stop)] == list(range(count))
    assert all(part.stop - part.start <= batch for part in found)


@pytest.mark.parametrize(("width", "rows"), [(1, 7), (4, 5), (30, 1), (0, 7)])
def test_wide_rows_come_in_smaller_batches(small_batches, width, rows):
    assert next(row_slices(50)) == slice(0, 7)
    assert next(row_slices(50, width=width)) == slice(0, rows)


@pytest.mark.parametrize("batch", [1, 5, 23, 40])
def test_the_mean_answer_is_that_of_all_batches(batch, monkeypatch):
    """That of an encoder's rows: tests/learn/test_encoder.py."""
    for module in (moments, rows_module):
        monkeypatch.setattr(module, "BATCH_ROWS", batch)
    answers, some = torch.rand(23, 4), torch.ones(1, 2, 2)
    monkeypatch.setattr(moments, "OwnerRows", lambda *given: answers.double().repeat(1, 4))
    fitted = SimpleNamespace(tables=some, weights=some)
    counted = SimpleNamespace(
        model=fitted,
        proportions=some,
        crowding=some,
        edge_shares=some,
        edge_messages=some,
        lean=some,
        voice=0.5,
        share_counted=1.0,
    )
    for counts in (None, counted):
        way, _ = moments.owners_way(answers, torch.full((23,), -1), counts, 0.5)
        torch.testing.assert_close(way.shares, answers.double().mean(dim=0), rtol=1e-14, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int64])
@pytest.mark.parametrize("shape", [(40, 3), (5, 50), (1, 1), (4, 0)])
def test_the_checksum_is_that_of_the_whole_table(small_batches, dtype, shape):
    features = (100 * torch.randn(shape, dtype=torch.float64)).to(dtype)
    whole = hashlib.sha256(str(shape).encode() + features.float().numpy().tobytes()).hexdigest()
    assert features_fingerprint(features) == whole
    watched = Watched(features)
    assert features_fingerprint(watched) == whole
    assert watched.largest <= 7


@pytest.mark.parametrize("row", [0, 6, 7, 38, 39])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_the_first_row_that_is_not_finite_is_named(small_batches, row, value):
    features = torch.ones(40, 3)
    check_features(features)
    features[row, 1] = features[39, 2] = value
    watched = Watched(features)
    with pytest.raises(InputError, match=f"NaN or infinity in row {row}\\."):
        check_features(watched)
    assert watched.largest <= 7
