"""`gcon export`: ONNX, and a folder for a model hub with the release untouched inside."""

import json
import re
import sys

import pytest

import gcon


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / "model"
    trained = gcon.GCON(epochs=5).fit(gcon.datasets.social_circles(100, seed=1))
    gcon.save_release(trained.model_, folder)
    return folder


def test_a_hub_gets_a_card_with_metadata_and_the_release_as_it_was(run, model, tmp_path):
    code, out, _ = run("export", model, "--hub", tmp_path / "hub", "--license", "cc-by-4.0")
    assert (code, out) == (0, f"Written: {tmp_path / 'hub'}\n")
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "hub" / "release").iterdir()} == before
    card = (tmp_path / "hub" / "README.md").read_text()
    head = re.match(r"---\n(.*?)\n---\n", card, flags=re.DOTALL)[1].splitlines()
    assert {"library_name: gcon", "pipeline_tag: graph-ml", "license: cc-by-4.0"} <= set(head)
    assert all(re.fullmatch(r"- [a-z-]+|[a-z_]+:( [a-z0-9.-]+)?", line) for line in head)  # which is YAML
    own_card = before["README.md"].decode().split("---\n", 2)[2]
    assert card.split("---\n", 2)[2].replace("this/folder/release", "this/folder") == own_card


def test_the_cards_example_reads_the_folder(run, model, tmp_path):
    assert run("export", model, "--hub", tmp_path / "hub")[0] == 0
    card = (tmp_path / "hub" / "README.md").read_text()
    assert "license" not in card.split("---\n", 2)[1]
    block = re.search(r"```python\n(.*?)```", card, flags=re.DOTALL)[1]
    names = {"features": gcon.datasets.social_circles(100, seed=2).nodes.features}
    exec(block.replace("path/to/this/folder", str(tmp_path / "hub")), names)
    assert len(names["labels"]) == 100


def test_onnx_from_the_command_line(run, model, tmp_path):
    onnx = pytest.importorskip("onnx")
    file = tmp_path / "model.onnx"
    code, out, _ = run("export", model, "--onnx", file, "--json")
    assert (code, json.loads(out)) == (0, {"onnx": str(file), "hub": None, "promise": True})
    assert onnx.load(file).graph.output[0].name == "probabilities"
    assert run("export", model, "--onnx", file)[0] == 2
    assert run("export", model, "--onnx", file, "--overwrite")[0] == 0


def test_without_onnx_nothing_is_written(run, model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    code, _, err = run("export", model, "--onnx", tmp_path / "model.onnx", "--hub", tmp_path / "hub")
    assert code == 8
    assert "gcon[onnx]" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--onnx, --hub: say what to write"),
        (["--onnx", "x.onnx", "--license", "mit"], "--license: goes with --hub"),
        (["--hub", "hub", "--license", "a: b"], "licence: must be an identifier"),
    ],
)
def test_what_is_refused_writes_nothing(run, model, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    code, _, err = run("export", model, *words)
    assert code == 2
    assert said in err
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_stays(run, model, tmp_path):
    (tmp_path / "hub").mkdir()
    assert run("export", model, "--hub", tmp_path / "hub")[0] == 2
    assert run("export", model, "--onnx", model / "README.md", "--overwrite")[0] == 2
