"""`gcon predict` for many nodes: features stay in their file, rows are written as they come, and the file appears at the end."""

import json
import sys

import numpy as np
import polars
import pytest

from gcon.cli import app as cli
from gcon.files.tables import read_nodes
from gcon.nodes import row_slices


@pytest.fixture(scope="module")
def run():
    """Run `gcon ... --json` in this process; gives exit code and what was said."""

    def call(*arguments, show=False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["gcon", *map(str, arguments), *([] if show else ["--json"])])
            said = []
            patch.setattr("sys.stdout.write", said.append)
            with pytest.raises(SystemExit) as stopped:
                cli.main()
        return stopped.value.code, "".join(said) if show else json.loads("".join(said))

    return call


@pytest.fixture(scope="module")
def world(run, tmp_path_factory):
    """A graph, two models, and the same nodes with their features in an .npy beside them."""
    place = tmp_path_factory.mktemp("world")
    assert run("data", "make", "--out", place, "--nodes", 120)[0] == 0
    files = ["--edges", place / "edges.csv", "--nodes", place / "nodes.csv", "--epsilon", 4]
    assert run("train", *files, "--out", place / "moments")[0] == 0
    assert run("train", *files, "--method", "paper", "--out", place / "paper")[0] == 0
    table = read_nodes(place / "nodes.csv")
    polars.DataFrame({"id": table.ids.tolist()}).write_csv(place / "ids.csv")
    np.save(place / "x.npy", table.nodes.features.numpy())
    return place


@pytest.fixture
def small_batches(monkeypatch):
    for module in ("no_edges", "own_edges"):
        monkeypatch.setattr(f"gcon.methods.{module}.row_slices", lambda count: row_slices(count, 50))
    monkeypatch.setattr("gcon.cli.predict.BATCH_ROWS", 50)


@pytest.mark.parametrize("model", ["moments", "paper"])
@pytest.mark.parametrize("access", ["none", "own-edges"])
def test_features_in_a_file_of_their_own_and_batches_change_nothing(
    run, world, tmp_path, model, access, request, capfd
):
    options = [world / model, "--edges", world / "edges.csv", "--access", access]
    whole, parts = tmp_path / "whole.csv", tmp_path / "parts.csv"
    assert run("predict", *options, "--nodes", world / "nodes.csv", "--out", whole)[0] == 0
    request.getfixturevalue("small_batches")
    beside = ["--nodes", world / "ids.csv", "--features", world / "x.npy"]
    code, said = run("predict", *options, *beside, "--out", parts)
    assert (code, said["nodes"], said["access"]) == (0, 120, access)
    expected, found = (polars.read_csv(path) for path in (whole, parts))
    assert found.columns == expected.columns
    assert found["id"].to_list() == expected["id"].to_list()
    assert found["label"].to_list() == expected["label"].to_list()
    columns = [name for name in found.columns if name.startswith("probability")]
    np.testing.assert_allclose(found[columns].to_numpy(), expected[columns].to_numpy(), rtol=0, atol=1e-6)


def test_many_nodes_show_a_bar_on_a_terminal(run, world, tmp_path, small_batches, capfd, monkeypatch):
    call = ["predict", world / "paper", "--nodes", world / "nodes.csv", "--out", tmp_path / "p.csv", "--overwrite"]
    assert run(*call, show=True)[0] == 0
    assert capfd.readouterr().err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")  # how rich is told that it writes to a terminal
    monkeypatch.setenv("TERM", "xterm")
    assert run(*call, show=True)[0] == 0
    assert "120/120" in capfd.readouterr().err
    assert run(*call, "--quiet", show=True)[0] == 0
    assert "120" not in capfd.readouterr().err


@pytest.mark.parametrize("device", ["gpu", "cuda:99"])
def test_a_device_that_is_not_there(run, world, tmp_path, device):
    call = ["predict", world / "paper", "--nodes", world / "nodes.csv", "--out", tmp_path / "p.csv"]
    code, said = run(*call, "--device", device)
    assert code == 2
    assert said["message"].startswith("device: ")
    assert list(tmp_path.iterdir()) == []
    assert run(*call, "--device", "auto")[0] == 0


def test_a_number_that_is_too_large_is_found_on_the_way_and_nothing_is_written(run, world, tmp_path, small_batches):
    features = np.load(world / "x.npy").astype(np.float64)
    features[110, 0] = 1e300
    np.save(tmp_path / "x.npy", features)
    (tmp_path / "p.csv").write_text("what was there")
    call = ["predict", world / "paper", "--nodes", world / "ids.csv", "--features", tmp_path / "x.npy"]
    code, said = run(*call, "--out", tmp_path / "p.csv", "--overwrite")
    assert code == 2
    assert "finite in single precision" in said["message"]
    assert (tmp_path / "p.csv").read_text() == "what was there"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["p.csv", "x.npy"]
