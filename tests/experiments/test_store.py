"""Files of experiments are whole or absent; the demo's self-training control reads nothing that it must not."""

import json

import pytest

import gcon
from gcon.experiments import controls
from gcon.experiments.store import UnitStore, write_whole


def test_self_training_reads_no_edge_and_uses_no_test_label():
    from dataclasses import replace

    from gcon.encode.mlp import EncoderSettings, train_encoder

    small = gcon.datasets.social_circles(
        400, num_classes=3, feature_signal=2.5, num_validation=100, num_test=200, seed=3
    )
    settings = EncoderSettings(epochs=20)
    encoder = train_encoder(small.nodes, settings)
    labels = small.nodes.labels.clone()
    labels[small.nodes.test_mask] = 0
    changed = replace(small.nodes, labels=labels)
    one, two = (controls.self_trained_encoder(nodes, encoder, settings) for nodes in (small.nodes, changed))
    assert one.head_weight.equal(two.head_weight)


def test_units_resume_and_a_damaged_one_is_made_again(tmp_path):
    store = UnitStore(tmp_path)
    assert store.read("unit") is None
    store.write("unit", {"score": [0.5, 0.6]})
    assert store.read("unit") == {"score": [0.5, 0.6]}
    (tmp_path / "unit.json").write_text('{"score": [0.5')
    assert store.read("unit") is None


def test_files_are_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "table.json"
    write_whole(path, "old")
    with pytest.raises(AttributeError):
        write_whole(path, json)  # not text: fails while writing
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["table.json"]
