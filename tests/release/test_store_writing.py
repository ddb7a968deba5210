"""A release on disk: what is refused, what is there already, and writers that fail or die leave nothing half written."""

import errno
import math
import os
import shutil
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import pytest

from gcon.errors import InputError, ReleaseFormatError
from gcon.release import store
from gcon.release.store import hold_room, load_release, save_release


def test_room_is_held_or_refused(tmp_path):
    held = hold_room(tmp_path, num_nodes=100_000, num_features=10, num_classes=3)
    assert held.stat().st_blocks * 512 >= 100_000 * 100
    held.unlink()
    with pytest.raises(OSError, match="No space left"):
        hold_room(tmp_path, num_nodes=2**60, num_features=10, num_classes=3)
    assert os.listdir(tmp_path) == []


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
def test_what_could_not_be_read_again_is_not_written(model, tmp_path, change, message, contents):
    save_release(model, tmp_path / "release")
    before = contents(tmp_path / "release")
    for name, overwrite in (("new", False), ("release", True)):
        with pytest.raises(InputError, match=message):
            save_release(change(model), tmp_path / name, overwrite=overwrite)
        assert [path.name for path in tmp_path.iterdir()] == ["release"]
        assert contents(tmp_path / "release") == before


def with_settings(model, **changes):
    return replace(model, **changes)


def with_receipt(model, **changes):
    return replace(model, receipt=replace(model.receipt, **changes))


# ---- what is there already


def test_an_existing_target_is_refused_unless_overwrite(model, other, folder, contents, assert_same):
    before = contents(folder)
    with pytest.raises(InputError, match=r"folder: must not exist yet.*overwrite=True"):
        save_release(other, folder)
    assert contents(folder) == before
    save_release(other, folder, overwrite=True)
    assert_same(other, load_release(folder))
    assert [path.name for path in folder.parent.iterdir()] == ["release"]


def test_overwrite_is_fine_where_there_is_nothing_or_a_damaged_release(model, tmp_path, contents):
    save_release(model, tmp_path / "release", overwrite=True)
    (tmp_path / "release" / "release.json").write_bytes(b"damaged")
    save_release(model, tmp_path / "release", overwrite=True)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="must not exist yet"):
        save_release(model, tmp_path / "empty")
    save_release(model, tmp_path / "empty", overwrite=True)
    assert contents(tmp_path / "empty") == contents(tmp_path / "release")


def test_overwrite_deletes_nothing_but_a_release(model, folder, assert_same):
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

        monkeypatch.setattr(Path, "write_bytes", write)


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
def test_a_failed_step_leaves_nothing_behind(model, tmp_path, failure, assert_same):
    at = 0
    while run_into(Trap(at, failure, for_ever=False), model, tmp_path / "release", overwrite=False):
        if list(tmp_path.iterdir()):  # it is whole and in place, and the system could not confirm its name: that stays
            break
        at += 1
    assert at >= 13
    assert [path.name for path in tmp_path.iterdir()] == ["release"]
    assert_same(model, load_release(tmp_path / "release"))


@pytest.mark.parametrize("failure", FAILURES, ids=repr)
def test_a_failed_step_leaves_the_old_release_as_it_was(model, other, folder, failure, contents, assert_same):
    before, at = contents(folder), 0
    while run_into(Trap(at, failure, for_ever=False), other, folder, overwrite=True):
        if contents(folder) != before:  # the new one is in place, but that is not confirmed: the old one stays too
            break
        assert [path.name for path in folder.parent.iterdir()] == ["release"]
        at += 1
    assert at >= 14
    (old,) = folder.parent.glob(".release.*.old")
    assert_same(model, load_release(old))
    assert_same(other, load_release(folder))


def test_a_killed_process_leaves_no_half_release(model, tmp_path, assert_same):
    at = 0
    while run_into(Trap(at, DeadError(), for_ever=True), model, tmp_path / "release", overwrite=False):
        for place in list(tmp_path.iterdir()):
            try:
                found = load_release(place)
            except ReleaseFormatError:
                assert place.suffix == ".new"
            else:
                assert_same(model, found)
            shutil.rmtree(place)
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
            shutil.rmtree(place)
        save_release(model, folder)
        at += 1
    assert between == 1
    assert at >= 20


def test_a_target_that_appears_meanwhile_is_kept(model, other, tmp_path, monkeypatch, assert_same):
    def slowly(folder):
        monkeypatch.setattr(store, "load_release", load_release)
        save_release(other, tmp_path / "release")
        return load_release(folder)

    monkeypatch.setattr(store, "load_release", slowly)
    with pytest.raises(OSError, match="not empty"):
        save_release(model, tmp_path / "release")
    assert_same(other, load_release(tmp_path / "release"))
    assert [path.name for path in tmp_path.iterdir()] == ["release"]
