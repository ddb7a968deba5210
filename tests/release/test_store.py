"""A release on disk: the same model comes back, the same bytes go out, and nothing damaged or half written is read."""

import builtins
import errno
import getpass
import json
import math
import os
import pickle
import re
import socket
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

import gcon
from gcon.datasets.synthetic import social_circles_parts
from gcon.encode.mlp import EncoderSettings
from gcon.errors import GconError, InputError, ReleaseFormatError
from gcon.graphs.edges import public_edges
from gcon.graphs.graph import private_graph
from gcon.predict.no_edges import predict_without_edges
from gcon.predict.own_edges import predict_from_own_edges
from gcon.predict.public_graph import predict_on_public_graph
from gcon.privacy.randomness import SeededRandomness, SystemRandomness
from gcon.propagate.schemes import Schemes
from gcon.release import layout, store
from gcon.release.store import NAMES, load_release, save_release

SEED = 8675309
NODES, EDGES = social_circles_parts(60, num_classes=3, mean_degree=4, num_features=6, per_class=8, seed=1)
SMALL = EncoderSettings(hidden=4, epochs=5)


def trained(*, names=(), edges=EDGES, randomness=None, **changes):
    settings = gcon.Settings(**{"epsilon": 1.0, "encoder": SMALL, **changes})
    graph = private_graph(replace(NODES, class_names=names or NODES.class_names), edges, name="circles")
    ledger = gcon.MemoryLedger("circles", clock=lambda: datetime(2030, 1, 2, tzinfo=UTC))
    return gcon.train(graph, settings, ledger=ledger, randomness=randomness or SystemRandomness())


@pytest.fixture(scope="module")
def model():
    return trained(schemes=Schemes(restart=0.5, steps=(0, 2, math.inf)), names=("a", "b", "c"))


@pytest.fixture(scope="module")
def other():
    return trained(epsilon=2.0)


@pytest.fixture
def folder(model, tmp_path):
    save_release(model, tmp_path / "release")
    return tmp_path / "release"


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def tensors_of(model):
    encoder = model.encoder
    return [
        model.weights,
        encoder.hidden_weight,
        encoder.hidden_bias,
        encoder.head_weight,
        encoder.head_bias,
        encoder.centre,
    ]


def assert_same(first, second):
    for one, two in zip(tensors_of(first), tensors_of(second), strict=True):
        assert (one is None) == (two is None)
        if one is not None:
            assert one.dtype == two.dtype
            assert one.shape == two.shape
            assert one.numpy().tobytes() == two.numpy().tobytes()
    assert first.encoder.unit_input is second.encoder.unit_input
    assert first.settings == second.settings
    assert [type(name) for name in first.settings.class_names] == [type(name) for name in second.settings.class_names]
    assert first.receipt == second.receipt
    assert first.statement() == second.statement()


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
def test_what_is_read_is_what_was_written(tmp_path, changes):
    model = trained(**changes)
    save_release(model, tmp_path / "release")
    again = load_release(tmp_path / "release")
    assert_same(model, again)

    private = private_graph(NODES, EDGES).edges
    for predict in (
        lambda one: predict_without_edges(one, NODES.features),
        lambda one: predict_from_own_edges(one, NODES.features, private, ledger=gcon.MemoryLedger()),
        lambda one: predict_on_public_graph(one, NODES.features, public_edges(EDGES, NODES.num_nodes)),
    ):
        assert torch.equal(predict(model).probabilities, predict(again).probabilities)
        assert predict(model).labels == predict(again).labels


def test_names_of_numpy_become_plain(tmp_path):
    save_release(trained(names=tuple(np.array([3, 5, 7]))), str(tmp_path / "release"))
    names = load_release(str(tmp_path / "release")).settings.class_names
    assert names == (3, 5, 7)
    assert {type(name) for name in names} == {int}


def test_the_folder_holds_five_files(folder):
    assert sorted(contents(folder)) == sorted(NAMES)
    assert [path.name for path in folder.parent.iterdir()] == ["release"]


def test_parents_are_made(model, tmp_path):
    save_release(model, tmp_path / "of" / "friends")
    assert_same(model, load_release(tmp_path / "of" / "friends"))


def test_the_model_itself_is_untouched(model, tmp_path):
    before = [None if tensor is None else tensor.clone() for tensor in tensors_of(model)]
    save_release(model, tmp_path / "release")
    for one, two in zip(before, tensors_of(model), strict=True):
        assert one is two is None or torch.equal(one, two)


def test_a_view_brings_nothing_else_along(model, tmp_path):
    batch = torch.stack([torch.full_like(model.weights, 1234.5), model.weights])
    save_release(replace(model, weights=batch[1]), tmp_path / "view")
    save_release(model, tmp_path / "whole")
    assert contents(tmp_path / "view") == contents(tmp_path / "whole")


def test_loaded_tensors_own_their_memory(folder):
    for tensor in tensors_of(load_release(folder)):
        assert tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
        assert not tensor.requires_grad


# ---- the bytes


def test_the_same_model_gives_the_same_bytes(model, folder, tmp_path):
    save_release(model, tmp_path / "another place")
    save_release(load_release(folder), tmp_path / "again")
    assert contents(folder) == contents(tmp_path / "another place") == contents(tmp_path / "again")


def test_no_place_person_or_machine_is_named(folder):
    for content in contents(folder).values():
        for word in (str(folder), folder.parent.name, os.getcwd(), str(Path.home() / "x")[:-1], socket.gethostname()):
            assert word.encode() not in content
        assert re.search(rb"\b%s\b" % re.escape(getpass.getuser().encode()), content) is None


def test_times_are_those_of_the_receipt(folder):
    for content in contents(folder).values():
        assert set(re.findall(rb"20\d\d-\d\d-\d\dT[\d:+]*", content)) <= {b"2030-01-02T00:00:00+00:00"}


def test_the_seed_is_in_no_byte(tmp_path):
    save_release(trained(randomness=SeededRandomness(SEED)), tmp_path / "release")
    forms = [str(SEED).encode(), f"{SEED:x}".encode(), SEED.to_bytes(4, "little"), SEED.to_bytes(4, "big")]
    for content in contents(tmp_path / "release").values():
        assert not any(form in content for form in forms)
    assert b"There is no promise" in contents(tmp_path / "release")["README.md"]


def test_neighbouring_graphs_differ_in_the_weights_and_their_checksums_only(tmp_path):
    linked = {frozenset(pair) for pair in EDGES.T.tolist()}
    extra = next([0, node] for node in range(1, NODES.num_nodes) if frozenset({0, node}) not in linked)
    graphs = [EDGES, EDGES[:, 1:], EDGES[:, :-1], torch.cat([EDGES, torch.tensor([extra]).T], dim=1), EDGES[:, :0]]
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


def test_json_is_strict(tmp_path):
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
    assert (document["format"], document["version"]) == ("gcon-release", 1)
    assert set(document["libraries"]) == {"gcon", "torch", "python"}
    assert document["libraries"]["gcon"] == gcon.__version__
    for name, record in document["files"].items():
        assert record == layout.file_record((folder / name).read_bytes())


def test_the_statement_is_there_in_words_and_as_data(model, folder):
    data = json.loads((folder / "privacy.json").read_bytes())
    assert data["sentences"] == list(model.statement().sentences)
    assert data["fields"] == json.loads(json.dumps(model.statement().fields))
    for page in ("privacy.md", "README.md"):
        text = (folder / page).read_text()
        assert all(sentence in text for sentence in model.statement().sentences)


def test_nothing_is_pickled_and_nothing_is_unpickled(folder, monkeypatch):
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


def test_the_code_on_the_card_runs(model, folder, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), flags=re.DOTALL)
    space = {"features": NODES.features}
    exec(code.replace("path/to/this/folder", str(folder)), space)
    assert torch.equal(space["predictions"].probabilities, predict_without_edges(model, NODES.features).probabilities)
    assert capsys.readouterr().out == f"{model.statement()}\n"


def test_a_name_cannot_write_markup(model, tmp_path):
    receipt = replace(model.receipt, data_set="x\n---\n# Head <script> [a](b) | `c` *d*")
    save_release(replace(model, receipt=receipt), tmp_path / "release")
    for page in ("README.md", "privacy.md"):
        text = (tmp_path / "release" / page).read_text()
        assert "\n# Head" not in text
        assert r"x --- # Head \<script\> \[a\](b) \| \`c\` \*d\*" in text
    assert load_release(tmp_path / "release").receipt.data_set == receipt.data_set


# ---- damage


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_file_is_refused(folder, name):
    (folder / name).unlink()
    with pytest.raises(ReleaseFormatError, match=rf"^{re.escape(name)}: is missing"):
        load_release(folder)


@pytest.mark.parametrize("name", NAMES)
def test_a_cut_or_longer_file_is_refused(folder, name):
    path = folder / name
    whole = path.read_bytes()
    for content in (b"", whole[:7], whole[: len(whole) // 2], whole[:-1], whole + b"\n", whole + whole):
        path.write_bytes(content)
        with pytest.raises(ReleaseFormatError, match=rf"^{re.escape(name)}: "):
            load_release(folder)


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_byte_is_refused(folder, name):
    path = folder / name
    whole = path.read_bytes()
    for position in {*range(0, len(whole), max(1, len(whole) // 150)), len(whole) - 1}:
        changed = bytearray(whole)
        changed[position] ^= 1 + position % 255
        path.write_bytes(bytes(changed))
        with pytest.raises(ReleaseFormatError, match=rf"^{re.escape(name)}: "):
            load_release(folder)
    path.write_bytes(whole)
    load_release(folder)


@pytest.mark.parametrize(
    "content",
    [b"[]", b"{}", b"null", b"\xff\xfe", b"[" * 100_000, b'{"format": "gcon-release", "a": NaN}', b"9" * 5000],
    ids=lambda content: repr(content[:20]),
)
def test_other_json_is_refused(folder, content):
    (folder / "release.json").write_bytes(content)
    with pytest.raises(ReleaseFormatError, match=r"^release\.json: "):
        load_release(folder)


def test_the_same_json_in_another_form_is_refused(folder):
    path = folder / "release.json"
    path.write_text(json.dumps(json.loads(path.read_bytes())))
    with pytest.raises(ReleaseFormatError, match=r"release\.json: .* edited"):
        load_release(folder)


def test_files_of_another_release_are_refused(folder, other, tmp_path):
    save_release(other, tmp_path / "other")
    for name in ("model.safetensors", "privacy.md", "privacy.json", "README.md"):
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes((tmp_path / "other" / name).read_bytes())
        with pytest.raises(ReleaseFormatError, match=rf"^{re.escape(name)}: "):
            load_release(folder)
        (folder / name).write_bytes(whole)


def test_files_that_are_too_large_are_not_read(folder):
    for name, most in (("release.json", 16 * 2**20), ("privacy.md", 16 * 2**20), ("model.safetensors", 4 * 2**30)):
        whole = (folder / name).read_bytes()
        os.truncate(folder / name, most + 1)  # a hole: takes no room on disk
        with pytest.raises(ReleaseFormatError, match=rf"^{re.escape(name)}: has {most + 1} bytes; at most {most}"):
            load_release(folder)
        (folder / name).write_bytes(whole)


def test_lengths_are_compared_before_content_is_read(folder):
    path = folder / "model.safetensors"
    size = path.stat().st_size
    os.truncate(path, size + 2**31)  # a hole again
    with pytest.raises(
        ReleaseFormatError, match=rf"has {size + 2**31} bytes where release\.json says {size}: it was cut"
    ):
        load_release(folder)
    os.truncate(path, size + 8)
    forge(folder, lambda document: None)
    with pytest.raises(ReleaseFormatError, match=r"^model\.safetensors: is not as long as its header says"):
        load_release(folder)


def test_errors_are_of_our_tree_and_say_what_to_do(folder):
    (folder / "privacy.md").unlink()
    with pytest.raises(ReleaseFormatError, match="Get the folder again") as raised:
        load_release(folder)
    assert isinstance(raised.value, GconError)
    assert isinstance(raised.value, ValueError)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


# ---- paths


def test_a_path_that_is_no_folder_is_refused(folder):
    with pytest.raises(ReleaseFormatError, match="is missing"):
        load_release(folder / "nowhere")
    with pytest.raises(ReleaseFormatError, match="is a file"):
        load_release(folder / "release.json")


@pytest.mark.parametrize("name", NAMES)
def test_links_out_of_the_folder_are_refused(folder, name):
    (folder / name).rename(folder.parent / "elsewhere")
    (folder / name).symlink_to("../elsewhere")
    with pytest.raises(ReleaseFormatError, match=rf"^{re.escape(name)}: is a link that leads out of the folder"):
        load_release(folder)


@pytest.mark.parametrize("name", NAMES)
def test_broken_links_and_folders_are_refused(folder, name):
    (folder / name).unlink()
    (folder / name).symlink_to(name)
    with pytest.raises(ReleaseFormatError, match=rf"^{re.escape(name)}: is missing"):
        load_release(folder)
    (folder / name).unlink()
    (folder / name).mkdir()
    with pytest.raises(ReleaseFormatError, match=rf"^{re.escape(name)}: is not a plain file"):
        load_release(folder)


def test_links_inside_the_folder_links_to_it_and_other_files_are_fine(model, folder):
    (folder / "privacy.md").rename(folder / "words")
    (folder / "privacy.md").symlink_to("words")
    (folder / "LICENSE").write_text("mine")
    (folder / "evil.pkl").symlink_to("/dev/zero")
    (folder.parent / "link").symlink_to(folder)
    assert_same(model, load_release(folder.parent / "link"))


# ---- forged releases: checksums are right, content is not


def forge(folder, change):
    document = json.loads((folder / "release.json").read_bytes())
    change(document)
    del document["checksum"]
    for name, record in document["files"].items():
        if (folder / name).is_file():
            record |= layout.file_record((folder / name).read_bytes())
    document["checksum"] = layout.digest(layout.canonical(document))
    (folder / "release.json").write_bytes(layout.canonical(document))


def put(path, value):
    def change(document):
        *places, last = path.split(".")
        for place in places:
            document = document[int(place) if place.isdigit() else place]
        document[int(last) if last.isdigit() else last] = value

    return change


def test_an_honest_forgery_is_read(model, folder):
    forge(folder, lambda document: None)
    assert_same(model, load_release(folder))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("version", 2, "format version 2; this gcon reads versions up to 1. Install a newer gcon"),
        ("version", 0, "format version"),
        ("version", "1", "format version"),
        ("version", True, "format version"),
        ("format", "other", "does not describe a release"),
        ("extra", 1, "must hold exactly"),
        ("settings", [], "wrong type"),
        ("settings.restart", 7, "restart: must lie in [0, 1]"),
        ("settings.restart", True, "wrong type"),
        ("settings.restart", "inf", "wrong type"),
        ("settings.restart", 10**400, "out of range"),
        ("settings.restart", 0, "must be positive with infinite steps"),
        ("settings.restart", 1e-320, "out of range"),
        ("settings.clip", 0.6, "clip: must lie in"),
        ("settings.inference_restart", -0.1, "inference_restart: must lie in"),
        ("settings.inference_restart", 10**400, "out of range"),
        ("settings.steps", [], "steps: needs at least one"),
        ("settings.steps", [0, 2, 1001], "steps: must be whole numbers"),
        ("settings.steps", [0, 2, -1], "steps: must be whole numbers"),
        ("settings.steps", [0, 2, None], "steps: must be whole numbers"),
        ("settings.steps", [0, 2, [1]], "steps: must be whole numbers"),
        ("settings.steps", [0, 2, 10**400], "out of range"),
        ("settings.loss", "hinge", "loss: must be"),
        ("settings.loss", "pseudo-huber:-1", "loss: must be"),
        ("settings.loss", None, "wrong type"),
        ("settings.training_nodes", "no checksum", "not a checksum"),
        ("settings.other", 1, "must hold exactly"),
        ("class_names", [{"type": "int", "value": 1}], "fewer than two"),
        ("class_names.0", {"type": "int", "value": "1"}, "not of the type"),
        ("class_names.0", {"type": "int", "value": True}, "not of the type"),
        ("class_names.0", {"type": "object", "value": "1"}, "not of the type"),
        ("class_names.0", {"type": "str", "value": None}, "wrong type"),
        ("class_names.0", "a", "must hold exactly"),
        ("encoder.num_features", 0, "at least 1"),
        ("encoder.hidden", -4, "at least 1"),
        ("encoder.centre", 1, "wrong type"),
        ("receipt.budget", {"epsilon": -1.0, "delta": 0.0}, "epsilon: must be at least 0"),
        ("receipt.budget", {"epsilon": 1.0, "delta": 1.0}, "delta: must lie in"),
        ("receipt.budget", {"epsilon": None, "delta": 0.1}, "wrong type"),
        ("receipt.budget", {"epsilon": 1.0}, "must hold exactly"),
        ("receipt.total", {"epsilon": 10**400, "delta": 0.1}, "out of range"),
        ("receipt.budget", {"epsilon": "inf", "delta": 0.1}, "claims a promise"),
        ("receipt.randomness", "seeded: no promise", "claims a promise"),
        ("receipt.protected_change", "one node", "does not know"),
        ("receipt.keeps_promise", 1, "wrong type"),
        ("receipt.plan", [], "wrong type"),
        ("receipt.time", 5, "wrong type"),
        ("files", {}, "'files' must hold exactly"),
        ("files.passwd", {"sha256": "", "size": 0}, "'files' must hold exactly"),
    ],
    ids=str,
)
def test_settings_that_no_release_has_are_refused(folder, path, value, message):
    forge(folder, put(path, value))
    with pytest.raises(ReleaseFormatError, match=re.escape(message)) as raised:
        load_release(folder)
    assert str(raised.value).startswith("release.json: ")


def forge_tensors(folder, change):
    path = folder / "model.safetensors"
    tensors = {name: tensor.clone() for name, tensor in load(path.read_bytes()).items()}
    change(tensors)
    path.write_bytes(save(tensors))
    forge(folder, lambda document: None)


def with_value(value):
    return lambda tensor: tensor.masked_fill(torch.ones_like(tensor, dtype=torch.bool), value)


CHANGES = {
    "longer": lambda tensor: torch.cat([tensor, tensor]),
    "transposed": lambda tensor: tensor.reshape(1, -1),
    "flat": lambda tensor: tensor.flatten()[:1],
    "half": lambda tensor: tensor.half(),
    "other float": lambda tensor: tensor.float() if tensor.dtype == torch.float64 else tensor.double(),
    "same size, whole numbers": lambda tensor: tensor.view(
        torch.int64 if tensor.dtype == torch.float64 else torch.int32
    ),
    "NaN": with_value(math.nan),
    "infinity": with_value(-math.inf),
}


@pytest.mark.parametrize("name", ["weights", *(f"encoder.{part}" for part in ("hidden_weight", "head_bias", "centre"))])
@pytest.mark.parametrize("change", CHANGES)
def test_tensors_of_another_shape_or_type_are_refused(folder, name, change):
    forge_tensors(folder, lambda tensors: tensors.update({name: CHANGES[change](tensors[name])}))
    with pytest.raises(ReleaseFormatError, match=rf"^model\.safetensors: '{re.escape(name)}' (must be of type|holds)"):
        load_release(folder)


def test_tensors_too_many_or_too_few_are_refused(folder):
    for change in (
        lambda tensors: tensors.pop("encoder.head_bias"),
        lambda tensors: tensors.update({"encoder.head_bias": torch.zeros(3), "more": torch.zeros(1)}),
    ):
        forge_tensors(folder, change)
        with pytest.raises(ReleaseFormatError, match=r"model\.safetensors: must hold exactly the tensors encoder"):
            load_release(folder)


@pytest.mark.parametrize(
    ("path", "value"),
    [("encoder.hidden", 5), ("encoder.hidden", None), ("encoder.num_features", 10**15), ("encoder.centre", False)],
)
def test_sizes_that_do_not_fit_the_tensors_are_refused(folder, path, value):
    forge(folder, put(path, value))
    with pytest.raises(ReleaseFormatError, match=r"^model\.safetensors: "):
        load_release(folder)


def test_classes_that_do_not_fit_the_weights_are_refused(folder):
    forge(folder, lambda document: document["class_names"].append({"type": "str", "value": "d"}))
    with pytest.raises(ReleaseFormatError, match=r"^model\.safetensors: 'weights' must be .*\(12, 4\)"):
        load_release(folder)


def test_headers_that_lie_are_refused(folder):
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header, data = json.loads(whole[8 : 8 + length]), whole[8 + length :]

    def with_header(header):
        text = json.dumps(header).encode()
        return len(text).to_bytes(8, "little") + text + data

    begin, end = header["weights"]["data_offsets"]
    overlapping = header | {"weights": header["weights"] | {"data_offsets": [begin - 8, end - 8]}}
    for content in (
        b"",
        (2**63).to_bytes(8, "little") + whole[8:],
        (2**20 + 1).to_bytes(8, "little") + whole[8:],
        len(whole).to_bytes(8, "little") + whole[8:],
        whole[:-8],
        whole + bytes(8),
        whole[:8] + b"[" * length + data,
        with_header([]),
        with_header({"weights": 5}),
        with_header(header | {"__metadata__": {"a": "b"}}),
        with_header(overlapping),
    ):
        path.write_bytes(content)
        forge(folder, lambda document: None)
        with pytest.raises(ReleaseFormatError, match=r"^model\.safetensors: "):
            load_release(folder)


# ---- what cannot be saved


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda model: replace(model, weights=model.weights * math.nan),
            r"'weights' holds values that are not finite\. Correct",
        ),
        (lambda model: replace(model, weights=model.weights[:, :2]), "'weights' must be of type F64 and shape"),
        (lambda model: replace(model, weights=model.weights.float()), "'weights' must be of type F64"),
        (lambda model: replace(model, encoder=replace(model.encoder, hidden_bias=None)), "must hold exactly"),
        (lambda model: with_settings(model, loss="hinge"), "loss: must be"),
        (lambda model: with_settings(model, inference_restart=2.0), "inference_restart"),
        (lambda model: with_settings(model, class_names=("a", "b", None)), "class_names: .* a NoneType"),
        (lambda model: with_settings(model, class_names=("a", "b", Colour.RED)), "class_names: .* a Colour"),
        (lambda model: with_settings(model, class_names=("a", "b", math.nan)), "model: "),
        (lambda model: with_settings(model, class_names=("a", "b", "\ud800")), "model: "),
        (lambda model: with_receipt(model, plan={"a": (1, 2)}), "such as a tuple"),
        (lambda model: with_receipt(model, plan={"a": "inf"}), "such as a tuple"),
        (lambda model: with_receipt(model, plan={"a": math.nan}), "model: "),
        (lambda model: with_receipt(model, plan={"a": object()}), "model: "),
        (lambda model: with_receipt(model, plan={1: 2}), "such as a tuple"),
        (lambda model: with_receipt(model, protected_change="one node"), "does not know"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(model, tmp_path, change, message):
    save_release(model, tmp_path / "release")
    before = contents(tmp_path / "release")
    for name, overwrite in (("new", False), ("release", True)):
        with pytest.raises(InputError, match=message):
            save_release(change(model), tmp_path / name, overwrite=overwrite)
        assert [path.name for path in tmp_path.iterdir()] == ["release"]
        assert contents(tmp_path / "release") == before


def with_settings(model, **changes):
    return replace(model, settings=replace(model.settings, **changes))


def with_receipt(model, **changes):
    return replace(model, receipt=replace(model.receipt, **changes))


# ---- what is there already


def test_an_existing_target_is_refused_unless_overwrite(model, other, folder):
    before = contents(folder)
    with pytest.raises(InputError, match=r"folder: must not exist yet.*overwrite=True"):
        save_release(other, folder)
    assert contents(folder) == before
    save_release(other, folder, overwrite=True)
    assert_same(other, load_release(folder))
    assert [path.name for path in folder.parent.iterdir()] == ["release"]


def test_overwrite_is_fine_where_there_is_nothing_or_a_damaged_release(model, tmp_path):
    save_release(model, tmp_path / "release", overwrite=True)
    (tmp_path / "release" / "release.json").write_bytes(b"damaged")
    save_release(model, tmp_path / "release", overwrite=True)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="must not exist yet"):
        save_release(model, tmp_path / "empty")
    save_release(model, tmp_path / "empty", overwrite=True)
    assert contents(tmp_path / "empty") == contents(tmp_path / "release")


def test_overwrite_deletes_nothing_but_a_release(model, folder):
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"also holds 'notes\.txt'"):
        save_release(model, folder, overwrite=True)
    (folder / "notes.txt").rename(folder.parent / "file")
    (folder.parent / "link").symlink_to(folder)
    (folder.parent / "broken").symlink_to("nowhere")
    for name in ("file", "link", "broken"):
        with pytest.raises(InputError, match="a link or a file"):
            save_release(model, folder.parent / name, overwrite=True)
        with pytest.raises(InputError, match="must not exist yet"):
            save_release(model, folder.parent / name)
    assert (folder.parent / "file").read_text() == "mine"
    assert_same(model, load_release(folder.parent / "link"))


# ---- failures on the way


class DeadError(BaseException):
    """The process was killed: not even its last wishes are heard."""


@dataclass
class Trap:
    """Everything that changes the disk counts as a step; one step fails, or all from one on."""

    at: int
    failure: BaseException
    for_ever: bool
    parent: Path | None = None
    steps: int = 0

    def fires(self):
        self.steps += 1
        return self.steps > self.at if self.for_ever else self.steps == self.at + 1

    def set(self, monkeypatch):
        def trapped(function):
            def call(path, *arguments, **options):
                if path != place and self.fires():
                    raise self.failure
                return function(path, *arguments, **options)

            return call

        place = self.parent  # it is there: to make it again is no step
        for name in ("mkdir", "fsync", "rename", "unlink", "rmdir"):
            monkeypatch.setattr(os, name, trapped(getattr(os, name)))

        def write(path, content):
            with open(path, "xb") as file:
                if self.fires():
                    file.write(content[: len(content) // 2])
                    raise self.failure
                file.write(content)
                os.fsync(file.fileno())

        monkeypatch.setattr(store, "_write", write)


def run_into(trap, model, folder, *, overwrite):
    """Whether the trap fired."""
    with pytest.MonkeyPatch.context() as patch:
        trap.parent = folder.parent
        trap.set(patch)
        try:
            save_release(model, folder, overwrite=overwrite)
        except type(trap.failure):
            return True
    return False


FAILURES = [OSError(errno.ENOSPC, "no room"), KeyboardInterrupt()]


@pytest.mark.parametrize("failure", FAILURES, ids=repr)
def test_a_failed_step_leaves_nothing_behind(model, tmp_path, failure):
    at = 0
    while run_into(Trap(at, failure, for_ever=False), model, tmp_path / "release", overwrite=False):
        assert not list(tmp_path.iterdir())
        at += 1
    assert at >= 14
    assert_same(model, load_release(tmp_path / "release"))


@pytest.mark.parametrize("failure", FAILURES, ids=repr)
def test_a_failed_step_leaves_the_old_release_as_it_was(model, other, folder, failure):
    before, at = contents(folder), 0
    while run_into(Trap(at, failure, for_ever=False), other, folder, overwrite=True):
        if contents(folder) != before:  # the new one is in place, and the old one could not be removed
            break
        assert [path.name for path in folder.parent.iterdir()] == ["release"]
        at += 1
    assert at >= 15
    assert_same(other, load_release(folder))


def test_a_killed_process_leaves_no_half_release(model, tmp_path):
    at = 0
    while run_into(Trap(at, DeadError(), for_ever=True), model, tmp_path / "release", overwrite=False):
        for place in list(tmp_path.iterdir()):
            try:
                found = load_release(place)
            except ReleaseFormatError:
                assert place.suffix == ".new"
            else:
                assert_same(model, found)
            store._remove(place)
        at += 1
    assert at >= 14
    assert_same(model, load_release(tmp_path / "release"))


def test_a_killed_process_loses_no_old_release(model, other, folder, tmp_path):
    at, between = 0, 0
    while run_into(Trap(at, DeadError(), for_ever=True), other, folder, overwrite=True):
        found = {}
        for place in tmp_path.iterdir():
            try:
                found[place.suffix] = load_release(place).receipt
            except ReleaseFormatError:
                assert place.suffix in (".new", ".old")  # not written, or not removed, to the end
        if "" not in found:
            assert found == {".old": model.receipt, ".new": other.receipt}
            between += 1
        assert model.receipt in found.values() or found[""] == other.receipt
        for place in list(tmp_path.iterdir()):
            store._remove(place)
        save_release(model, folder)
        at += 1
    assert between == 1
    assert at >= 20


def test_a_target_that_appears_meanwhile_is_kept(model, other, tmp_path, monkeypatch):
    check = store._check_copy

    def slow_check(*arguments):
        monkeypatch.setattr(store, "_check_copy", check)
        save_release(other, tmp_path / "release")
        check(*arguments)

    monkeypatch.setattr(store, "_check_copy", slow_check)
    with pytest.raises(OSError, match="not empty"):
        save_release(model, tmp_path / "release")
    assert_same(other, load_release(tmp_path / "release"))
    assert [path.name for path in tmp_path.iterdir()] == ["release"]
