"""Tables of predictions: what may not be published is for the owner of the file alone."""

import os
import stat

import polars
import pytest
import torch

from gcon.methods.predictions import Predictions
from gcon.release.prediction_files import write_predictions

MODES = {"none": 0o644, "public-graph": 0o644, "own-edges": 0o600, "full": 0o600}
AUDIENCES = {"none": "public", "public-graph": "public", "own-edges": "owner only", "full": "operator only"}


@pytest.fixture(autouse=True)
def usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize("access", MODES)
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
@pytest.mark.parametrize("exists", [False, True])
def test_permissions(tmp_path, access, suffix, exists):
    path = tmp_path / f"labels{suffix}"
    if exists:
        path.touch(mode=0o666)  # what is replaced does not pass its permissions on
    found = Predictions(classes=torch.tensor([0, 1]), probabilities=torch.eye(2), class_names=("a", "b"), access=access)
    write_predictions(path, ["one", "two"], found)
    assert stat.S_IMODE(path.stat().st_mode) == MODES[access]
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    if suffix == ".csv":
        assert set(polars.read_csv(path)["audience"]) == {AUDIENCES[access]}


@pytest.mark.parametrize("access", MODES)
def test_without_a_promise_a_table_is_for_the_operator(tmp_path, access):
    found = Predictions(
        classes=torch.tensor([0, 1]),
        probabilities=torch.eye(2),
        class_names=("a", "b"),
        access=access,
        no_promise="no noise was added",
    )
    write_predictions(tmp_path / "labels.csv", ["one", "two"], found)
    assert stat.S_IMODE((tmp_path / "labels.csv").stat().st_mode) == 0o600
    assert set(polars.read_csv(tmp_path / "labels.csv")["audience"]) == {"operator only"}
