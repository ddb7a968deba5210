"""A release on disk: nothing damaged, linked elsewhere or forged is read."""

import json
import math
import os
import pickle
import re

import pytest
import torch
from safetensors.torch import load, save
from tests.release.forging import forge, put

from gcon.errors import GconError, ReleaseFormatError
from gcon.release.store import NAMES, load_release, save_release

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
    forge(folder)
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


def test_links_inside_the_folder_links_to_it_and_other_files_are_fine(model, folder, assert_same):
    (folder / "privacy.md").rename(folder / "words")
    (folder / "privacy.md").symlink_to("words")
    (folder / "LICENSE").write_text("mine")
    (folder / "evil.pkl").symlink_to("/dev/zero")
    (folder.parent / "link").symlink_to(folder)
    assert_same(model, load_release(folder.parent / "link"))


# ---- forged releases: checksums are right, content is not


def test_an_honest_forgery_is_read(model, folder, assert_same):
    forge(folder)
    assert_same(model, load_release(folder))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("version", 5, "format version 5; this gcon reads versions up to 4. Install a newer gcon"),
        ("version", 1, "format version 1, which only an earlier gcon reads"),
        ("version", 3, "format version 3, which only an earlier gcon reads"),
        ("version", 0, "format version"),
        ("version", "4", "format version"),
        ("version", True, "format version"),
        ("format", "other", "does not describe a release"),
        ("extra", 1, "unknown field `extra`"),
        ("method", "magic", "'method' is none of paper, moments"),
        ("method", 1, "'method' is none of paper, moments"),
        ("method", "moments", "unknown field `clip` - at `$.settings`"),
        ("settings", [], "Expected `object`, got `array` - at `$.settings`"),
        ("settings.restart", 7, "Expected `int` <= 1 - at `$.settings.restart`"),
        ("settings.restart", True, "got `bool` - at `$.settings.restart`"),
        ("settings.restart", "inf", "got `str` - at `$.settings.restart`"),
        ("settings.restart", 10**400, "Expected `int` <= 1 - at `$.settings.restart`"),
        ("settings.restart", 0, "must be positive with infinite steps"),
        ("settings.restart", 1e-320, "out of range"),
        ("settings.clip", 0.6, "clip: must lie in"),
        ("settings.inference_restart", -0.1, "Expected `float` >= 0.0 - at `$.settings.inference_restart`"),
        ("settings.inference_restart", 10**400, "Expected `int` <= 1 - at `$.settings.inference_restart`"),
        ("settings.steps", [], "steps: needs at least one"),
        ("settings.steps", [0, 2, 1001], "steps: must be whole numbers"),
        ("settings.steps", [0, 2, -1], "Expected `int` >= 0 - at `$.settings.steps[2]`"),
        ("settings.steps", [0, 2, None], "got `null` - at `$.settings.steps[2]`"),
        ("settings.steps", [0, 2, [1]], "got `array` - at `$.settings.steps[2]`"),
        ("settings.steps", [0, 2, 1.5], "steps: must be whole numbers"),
        ("settings.steps", [0, 2, "all"], "Invalid enum value 'all' - at `$.settings.steps[2]`"),
        ("settings.steps", [0, 2, 10**400], "Expected `int` <= 4611686018427387904 - at `$.settings.steps[2]`"),
        ("settings.loss", "hinge", "loss: must be"),
        ("settings.loss", "pseudo-huber:-1", "loss: must be"),
        ("settings.loss", None, "Expected `str`, got `null` - at `$.settings.loss`"),
        ("settings.training_nodes", "no checksum", "at `$.settings.training_nodes`"),
        ("settings.training_nodes", "0" * 64 + "\n", "at `$.settings.training_nodes`"),
        ("settings.other", 1, "unknown field `other` - at `$.settings`"),
        ("class_names", [{"type": "int", "value": 1}], "Expected `array` of length >= 2 - at `$.class_names`"),
        ("class_names.0", {"type": "int", "value": "1"}, "not of the type"),
        ("class_names.0", {"type": "int", "value": True}, "not of the type"),
        ("class_names.0", {"type": "object", "value": "1"}, "Invalid enum value 'object' - at `$.class_names[0].type`"),
        ("class_names.0", {"type": "float", "value": 1}, "not of the type"),
        ("class_names.0", {"type": "str", "value": None}, "got `null` - at `$.class_names[0].value`"),
        ("class_names.0", "a", "Expected `object`, got `str` - at `$.class_names[0]`"),
        ("encoder.num_features", 0, "Expected `int` >= 1 - at `$.encoder.num_features`"),
        ("encoder.hidden", -4, "Expected `int` >= 1 - at `$.encoder.hidden`"),
        ("encoder.centre", 1, "Expected `bool`, got `int` - at `$.encoder.centre`"),
        ("receipt.budget", {"epsilon": -1.0, "delta": 0.0}, "Expected `float` >= 0.0 - at `$.receipt.budget.epsilon`"),
        ("receipt.budget", {"epsilon": 1.0, "delta": 1.0}, "delta: must lie in"),
        ("receipt.budget", {"epsilon": None, "delta": 0.1}, "got `null` - at `$.receipt.budget.epsilon`"),
        ("receipt.budget", {"epsilon": 1.0}, "missing required field `delta` - at `$.receipt.budget`"),
        ("receipt.total", {"epsilon": 10**400, "delta": 0.1}, "at `$.receipt.total.epsilon`"),
        ("receipt.budget", {"epsilon": "inf", "delta": 0.1}, "claims a promise"),
        ("receipt.randomness", "seeded: no promise", "claims a promise"),
        ("receipt.protected_change", "one node", "does not know"),
        ("receipt.keeps_promise", 1, "Expected `bool`, got `int` - at `$.receipt.keeps_promise`"),
        ("receipt.plan", [], "Expected `object`, got `array` - at `$.receipt.plan`"),
        ("receipt.time", 5, "Expected `str`, got `int` - at `$.receipt.time`"),
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
    forge(folder)


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
    with pytest.raises(ReleaseFormatError, match=r"^model\.safetensors: 'encoder.head_weight' must be .*\(4, 4\)"):
        load_release(folder)


def test_steps_that_do_not_fit_the_weights_are_refused(folder):
    forge(folder, put("settings.steps", [0, 2]))
    with pytest.raises(ReleaseFormatError, match=r"^model\.safetensors: 'weights' must be .*\(8, 3\)"):
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
        forge(folder)
        with pytest.raises(ReleaseFormatError, match=r"^model\.safetensors: "):
            load_release(folder)
