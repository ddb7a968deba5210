"""The four social graphs: their file format on a made-up file, their two splits, and the real files where GCON_DATA has them."""

import os

import numpy as np
import pytest
import torch

from gcon.errors import InputError
from gcon_lab.experiments.sweep import social
from gcon_lab.experiments.sweep.graphs import open_graph
from gcon_lab.experiments.sweep.social import FEW_LABELS, MANY_LABELS, SOCIAL, Sizes, load_social, many_labels_split

TINY = "social/tiny"
SIZES = Sizes(nodes=60, edges=3, features=4, classes=2)


def arrays(**other):
    values = {
        "edges": np.array([[0, 0, 7], [1, 2, 9]], dtype=np.int32),
        "feature_values": np.array([2, 1, 5], dtype=np.int16),
        "feature_columns": np.array([3, 0, 1], dtype=np.int32),
        "feature_rows": np.array([0, 2, *[3] * 59], dtype=np.int32),
        "feature_shape": np.array([60, 4]),
        "labels": (np.arange(60) % 2).astype(np.int16),
    }
    return values | other


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GCON_DATA", str(tmp_path))
    monkeypatch.setattr(social, "SOCIAL", {TINY: SIZES, f"{TINY}@many": SIZES})
    (tmp_path / "social").mkdir()
    np.savez_compressed(tmp_path / "social/tiny.npz", **arrays())
    return tmp_path / "social"


def test_a_made_up_file_of_this_format_is_read(folder):
    found = social.read_social(folder / "tiny.npz")
    assert found.sizes == SIZES
    assert found.edges.tolist() == [[0, 0, 7], [1, 2, 9]]
    assert found.features[:3].tolist() == [[1, 0, 0, 2], [0, 5, 0, 0], [0, 0, 0, 0]]
    assert (found.features.dtype, found.labels.dtype) == (torch.float32, torch.int64)
    graph = load_social(TINY, run=0)
    assert graph.name == TINY
    assert graph.nodes.num_classes == 2


def test_few_labels_are_twenty_per_class_and_every_run_draws_its_own(folder):
    first, second, again = (load_social(TINY, run=run).nodes for run in (0, 1, 0))
    assert first.train_mask.equal(again.train_mask)
    assert not first.train_mask.equal(second.train_mask)
    assert torch.bincount(first.labels[first.train_mask]).tolist() == [20, 20]
    rng = np.random.default_rng(0)
    wanted = np.concatenate([rng.permutation(np.flatnonzero(first.labels.numpy() == label))[:20] for label in (0, 1)])
    assert set(first.train_mask.nonzero()[:, 0].tolist()) == set(wanted.tolist())


def test_many_labels_are_sixty_percent_and_the_test_nodes_lie_in_the_last_fifth():
    split, order = many_labels_split(20_000, seed=3), np.random.default_rng(3).permutation(20_000)
    for mask, places in (
        (split.train, slice(12_000)),
        (split.validation, slice(12_000, 12_500)),
        (split.test, slice(16_000, 18_000)),
    ):
        assert mask.nonzero()[:, 0].tolist() == sorted(order[places].tolist())


def test_parts_never_overlap_on_a_small_graph(folder):
    nodes = load_social(f"{TINY}@many", run=0).nodes
    assert [int(mask.sum()) for mask in (nodes.train_mask, nodes.validation_mask, nodes.test_mask)] == [36, 12, 12]


def test_what_is_missing_is_said(folder, monkeypatch):
    (folder / "tiny.npz").unlink()
    with pytest.raises(
        InputError, match=r"GCON_DATA: must name a folder that holds social/NAME\.npz; got no file .*tiny\.npz"
    ):
        load_social(TINY, run=0)
    monkeypatch.delenv("GCON_DATA")
    with pytest.raises(InputError, match="GCON_DATA is not set"):
        load_social(TINY, run=0)


@pytest.mark.parametrize("other", [{"labels": np.array([object()])}, {"feature_rows": np.array([0, 9])}])
def test_a_broken_file_is_refused(folder, other):
    np.savez(folder / "tiny.npz", **arrays(**other))
    with pytest.raises(InputError, match=r"tiny\.npz with the arrays"):
        load_social(TINY, run=0)
    (folder / "tiny.npz").write_bytes(b"PK no such thing")
    with pytest.raises(InputError, match=r"tiny\.npz with the arrays"):
        load_social(TINY, run=0)


def test_a_file_of_other_sizes_is_another_graph(folder):
    np.savez(folder / "tiny.npz", **arrays(edges=np.array([[0], [1]])))
    with pytest.raises(InputError, match="edges=1"):
        load_social(TINY, run=0)


@pytest.mark.data
@pytest.mark.parametrize("name", FEW_LABELS)
def test_the_real_files(name):
    if not os.environ.get("GCON_DATA"):
        pytest.skip("GCON_DATA is not set")
    opened, wanted = open_graph(name, 1), SOCIAL[name]
    nodes = opened.graph.nodes
    assert len(opened.edges.columns) == opened.edge_count == 2 * wanted.edges  # no loops, no repeats
    assert int(nodes.train_mask.sum()) == 20 * wanted.classes
    assert (int(nodes.validation_mask.sum()), int(nodes.test_mask.sum())) == (500, 2000)


def test_every_graph_has_two_splits():
    assert [name.removesuffix("@many") for name in MANY_LABELS] == list(FEW_LABELS)
    assert len(SOCIAL) == 8
