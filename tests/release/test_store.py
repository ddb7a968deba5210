"""A release on disk: the same model comes back, the same bytes go out, and its card says what it is."""

import builtins
import getpass
import hashlib
import json
import math
import os
import pickle
import re
import socket
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load

import gcon
from gcon.edges.edge_list import public_edges
from gcon.edges.graph import private_graph
from gcon.edges.schemes import Schemes
from gcon.errors import InputError
from gcon.learn.perceptron import EncoderSettings
from gcon.methods.no_edges import predict_without_edges
from gcon.methods.own_edges import predict_from_own_edges
from gcon.methods.public_graph import predict_on_public_graph
from gcon.privacy.randomness import SeededRandomness
from gcon.release.store import NAMES, load_release, save_release

SEED = 8675309
SMALL = EncoderSettings(hidden=4, epochs=5)


# ---- there and back


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"encoder": replace(SMALL, hidden=None)},
        {"encoder": replace(SMALL, hidden=None, centre=False, unit_input=False)},
        {"encoder": replace(SMALL, centre=False)},
        {"schemes": Schemes(restart=0.3, steps=(0, 1, 4, math.inf), clip=0.25)},
        {"schemes": Schemes(restart=1, steps=(2,))},
        {"epsilon": math.inf},
        {"epsilon": 1},
        {"loss": "pseudo-huber:0.2", "expand": "labelled"},
        {"randomness": SeededRandomness(SEED)},
        {"names": ("friends", "Zürich", 'a "b"\n\u2028')},
        {"names": ("inf", "1", "True")},
        {"names": (-1, 0, 10**20)},
        {"names": (0.0, 0.1, math.inf)},
        {"names": (True, "True", 1.5)},
    ],
    ids=str,
)
def test_what_is_read_is_what_was_written(tmp_path, changes, assert_same, trained, circles):
    model = trained(**changes)
    nodes, edges = circles
    save_release(model, tmp_path / "release")
    again = load_release(tmp_path / "release")
    assert_same(model, again)

    private = private_graph(nodes, edges).edges
    for predict in (
        lambda one: predict_without_edges(one, nodes.features),
        lambda one: predict_from_own_edges(one, nodes.features, private, ledger=gcon.MemoryLedger()),
        lambda one: predict_on_public_graph(one, nodes.features, public_edges(edges, nodes.num_nodes)),
    ):
        assert torch.equal(predict(model).probabilities, predict(again).probabilities)
        assert predict(model).labels == predict(again).labels


def test_names_of_numpy_become_plain(tmp_path, trained):
    save_release(trained(names=tuple(np.array([3, 5, 7]))), str(tmp_path / "release"))
    names = load_release(str(tmp_path / "release")).class_names
    assert names == (3, 5, 7)
    assert {type(name) for name in names} == {int}


def test_the_folder_holds_five_files(folder, contents):
    assert sorted(contents(folder)) == sorted(NAMES)
    assert [path.name for path in folder.parent.iterdir()] == ["release"]


def test_parents_are_made(model, tmp_path, assert_same):
    save_release(model, tmp_path / "of" / "friends")
    assert_same(model, load_release(tmp_path / "of" / "friends"))


def test_the_model_itself_is_untouched(model, tmp_path, tensors_of):
    before = [None if tensor is None else tensor.clone() for tensor in tensors_of(model)]
    save_release(model, tmp_path / "release")
    for one, two in zip(before, tensors_of(model), strict=True):
        assert one is two is None or torch.equal(one, two)


def test_a_view_brings_nothing_else_along(model, tmp_path, contents):
    batch = torch.stack([torch.full_like(model.weights, 1234.5), model.weights])
    save_release(replace(model, weights=batch[1]), tmp_path / "view")
    save_release(model, tmp_path / "whole")
    assert contents(tmp_path / "view") == contents(tmp_path / "whole")


def test_loaded_tensors_own_their_memory(folder, tensors_of):
    for tensor in tensors_of(load_release(folder)):
        assert tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
        assert not tensor.requires_grad


# ---- the bytes


def test_the_same_model_gives_the_same_bytes(model, folder, tmp_path, contents):
    save_release(model, tmp_path / "another place")
    save_release(load_release(folder), tmp_path / "again")
    assert contents(folder) == contents(tmp_path / "another place") == contents(tmp_path / "again")


def test_no_place_person_or_machine_is_named(folder, contents):
    for content in contents(folder).values():
        for word in (str(folder), folder.parent.name, os.getcwd(), str(Path.home() / "x")[:-1], socket.gethostname()):
            assert word.encode() not in content
        assert re.search(rb"\b%s\b" % re.escape(getpass.getuser().encode()), content) is None


def test_times_are_those_of_the_receipt(folder, contents):
    for content in contents(folder).values():
        assert set(re.findall(rb"20\d\d-\d\d-\d\dT[\d:+]*", content)) <= {b"2030-01-02T00:00:00+00:00"}


def test_the_seed_is_in_no_byte(tmp_path, contents, trained):
    save_release(trained(randomness=SeededRandomness(SEED)), tmp_path / "release")
    forms = [str(SEED).encode(), f"{SEED:x}".encode(), SEED.to_bytes(4, "little"), SEED.to_bytes(4, "big")]
    for content in contents(tmp_path / "release").values():
        assert not any(form in content for form in forms)
    assert b"There is no promise" in contents(tmp_path / "release")["README.md"]


def test_neighbouring_graphs_differ_in_the_weights_and_their_checksums_only(tmp_path, contents, trained, circles):
    nodes, full = circles
    linked = {frozenset(pair) for pair in full.T.tolist()}
    extra = next([0, node] for node in range(1, nodes.num_nodes) if frozenset({0, node}) not in linked)
    graphs = [full, full[:, 1:], full[:, :-1], torch.cat([full, torch.tensor([extra]).T], dim=1), full[:, :0]]
    seen, found = [], []
    for number, edges in enumerate(graphs):
        save_release(trained(edges=edges, randomness=SeededRandomness(SEED)), tmp_path / str(number))
        files = contents(tmp_path / str(number))
        tensors, document = load(files.pop("model.safetensors")), json.loads(files.pop("release.json"))
        weights = tensors.pop("weights")
        del document["checksum"], document["files"]["model.safetensors"]["sha256"]
        seen.append((files, document, {name: tensor.tolist() for name, tensor in tensors.items()}, weights.shape))
        found.append(weights.numpy().tobytes())
    assert all(one == seen[0] for one in seen)
    assert len(set(found)) == len(graphs)


def test_json_is_strict(tmp_path, trained):
    save_release(trained(epsilon=math.inf, schemes=Schemes(0.5, (math.inf,))), tmp_path / "release")

    def fail(constant):
        raise AssertionError(constant)

    found = {
        name: json.loads((tmp_path / "release" / name).read_bytes(), parse_constant=fail)
        for name in ("release.json", "privacy.json")
    }
    assert found["release.json"]["settings"]["steps"] == ["inf"]
    assert found["release.json"]["receipt"]["budget"]["epsilon"] == "inf"
    assert found["privacy.json"]["fields"]["epsilon"] == "inf"


def test_release_json_says_what_made_it(folder):
    document = json.loads((folder / "release.json").read_bytes())
    assert (document["format"], document["version"], document["method"]) == ("gcon-release", 4, "paper")
    assert set(document["libraries"]) == {"gcon", "torch", "python"}
    assert document["libraries"]["gcon"] == gcon.__version__
    for name, record in document["files"].items():
        assert record == {
            "sha256": hashlib.sha256((folder / name).read_bytes()).hexdigest(),
            "size": (folder / name).stat().st_size,
        }


def test_the_statement_is_there_in_words_and_as_data(model, folder):
    data = json.loads((folder / "privacy.json").read_bytes())
    assert data["sentences"] == list(model.statement().sentences)
    assert data["fields"] == json.loads(json.dumps(model.statement().fields).replace("Infinity", '"inf"'))
    for page in ("privacy.md", "README.md"):
        text = (folder / page).read_text()
        assert all(sentence in text for sentence in model.statement().sentences)


def test_nothing_is_pickled_and_nothing_is_unpickled(folder, monkeypatch, contents):
    for content in contents(folder).values():
        assert not content.startswith((b"\x80", b"PK"))  # pickles and torch's archives
        with pytest.raises(Exception):  # noqa: B017, PT011
            pickle.loads(content)

    def fail(*_, **__):
        raise AssertionError("unpickled")

    for place, name in (
        (pickle, "load"),
        (pickle, "loads"),
        (pickle, "Unpickler"),
        (torch, "load"),
        (builtins, "eval"),
    ):
        monkeypatch.setattr(place, name, fail)
    load_release(folder)


# ---- the card


def test_the_card_has_a_head_and_every_section(folder):
    text = (folder / "README.md").read_text()
    head = text.split("---\n")[1]
    assert text.startswith("---\n")
    assert "library_name: gcon\n" in head
    assert all(re.fullmatch(r"[a-z_]+:( [a-z-]+)?|- [a-z-]+", line) for line in head.splitlines())
    assert "license" not in head
    for section in ("## Load and predict", "## The promise", "## Access at prediction", "## Limits"):
        assert section in text
    for access in ("none", "own-edges", "public-graph"):
        assert f"| `{access}` |" in text
    assert "no promise about edges" not in text


def test_the_code_on_the_card_runs(model, folder, capsys, circles):
    nodes, _ = circles
    (code,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), flags=re.DOTALL)
    space = {"features": nodes.features}
    exec(code.replace("path/to/this/folder", str(folder)), space)
    expected = predict_without_edges(model, nodes.features)
    assert space["labels"].tolist() == expected.labels
    assert np.array_equal(space["probabilities"], expected.probabilities.numpy())
    assert capsys.readouterr().out == f"{model.statement()}\n"


def test_a_name_cannot_write_markup(model, tmp_path):
    receipt = replace(model.receipt, data_set="x\n---\n# Head <script> [a](b) | `c` *d*")
    save_release(replace(model, receipt=receipt), tmp_path / "release")
    for page in ("README.md", "privacy.md"):
        text = (tmp_path / "release" / page).read_text()
        assert "\n# Head" not in text
        assert r"x --- # Head \<script\> \[a\](b) \| \`c\` \*d\*" in text
    assert load_release(tmp_path / "release").receipt.data_set == receipt.data_set


def test_a_classifier_is_no_model_and_the_way_out_is_said(tmp_path):
    with pytest.raises(InputError, match=r"^model: .*NodeClassifier.*model_"):
        save_release(gcon.NodeClassifier(), tmp_path / "model")
    assert not (tmp_path / "model").exists()
