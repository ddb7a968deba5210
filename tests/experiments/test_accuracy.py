"""The accuracy experiment on a small made-up graph: every row is there, chosen on validation, resumable."""

import csv
import json

import pytest

import gcon
from gcon.experiments import accuracy, controls
from gcon.experiments.store import UnitStore, write_whole


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(accuracy, "HIDDEN", (16,))
    monkeypatch.setattr(accuracy, "RESTARTS", (0.8,))
    monkeypatch.setattr(accuracy, "STEPS", (2,))
    return gcon.datasets.social_circles(
        400, num_classes=3, feature_signal=2.5, num_validation=100, num_test=200, seed=3
    )


def test_every_row_is_measured_and_spread_is_over_runs(small):
    runs = [accuracy.score_run(small, run) for run in range(2)]
    table, lines = accuracy.summarise({"circles|0": runs})
    rows = list(csv.reader(lines.splitlines()))
    assert all(len(row) == len(rows[0]) for row in rows)
    methods = {row[3] for row in rows[1:]}
    assert methods >= {"encoder alone", "encoder, one hop", "self-training, one hop", "GCON without edges", "GCON"}
    assert {row[2] for row in rows[1:]} == {"any", "0.5", "1", "2", "4"}
    assert all(row[-1] == "2" for row in rows[1:])
    assert all(line.count("|") == 7 for line in table.splitlines())


def test_choice_is_made_on_validation_not_on_test():
    better_on_test = {"control|encoder, one hop|0.1": (0.1, 0.9), "control|encoder, one hop|0.3": (0.5, 0.2)}
    budgets = [f"gcon|{epsilon:g}|16|0.8|2|soft-margin|1" for epsilon in accuracy.EPSILONS]
    others = [
        "control|encoder alone",
        "control|self-training",
        "control|self-training, one hop|0.1",
        "gcon|inf|16|1|1|soft-margin|1|0.3",
        *(f"{stem}|{access}" for stem in budgets for access in ("0.3", "none")),
    ]
    filler = dict.fromkeys(others, (0.0, 0.0))
    rows = {(row[1], row[3]): row[4] for row in accuracy._rows([{**filler, **better_on_test}])}
    assert rows["encoder, one hop", "validation, uncharged"] == "control|encoder, one hop|0.3"


def test_noise_differs_between_runs_and_repeats_with_the_run(small):
    first, second, again = (accuracy.score_run(small, run) for run in (0, 1, 0))
    assert first == again
    assert first != second


def test_self_training_reads_no_edge_and_uses_no_test_label(small):
    from dataclasses import replace

    from gcon.encode.mlp import EncoderSettings, train_encoder

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
    with pytest.raises(TypeError):
        write_whole(path, json)  # not text: fails while writing
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["table.json"]
