"""Names, folders and the cache, on tiny made-up files: no real data, no network."""

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from tests.opened import open_private

from gcon.errors import InputError, MissingExtraError
from gcon.files.datasets import FACTS, facts_of, load, names
from gcon.files.datasets.folders import cache_folder
from gcon.writing import whole_folder

TINY = replace(facts_of("cora-ml"), num_nodes=12, num_features=3, num_classes=2)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("GCON_DATA", raising=False)
    monkeypatch.setenv("GCON_CACHE", str(tmp_path / "cache"))


def write_tiny(folder: Path, *, edges: int = 11) -> Path:
    """A path graph on twelve nodes, in the format of the Cora-ML file."""
    raw = folder / "cora_ml" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    ends = np.arange(edges)
    adjacency = scipy.sparse.csr_matrix((np.ones(edges), (ends, ends + 1)), shape=(12, 12))
    features = scipy.sparse.csr_matrix(np.eye(12, 3) + 0.5)
    arrays = {"labels": np.arange(12) % 2}
    for name, matrix in (("adj", adjacency), ("attr", features)):
        arrays |= {f"{name}_{part}": getattr(matrix, part) for part in ("data", "indices", "indptr", "shape")}
    np.savez(raw / "cora_ml.npz", **arrays)
    return folder


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """One more name, of few nodes."""
    known = {"tiny": TINY}
    monkeypatch.setattr("gcon.files.datasets.registry.facts_of", lambda name: known.get(name) or facts_of(name))


def test_names_and_facts():
    assert names() == ("cora-ml", "citeseer", "pubmed", "actor", "cora")
    assert facts_of("Cora_ML") is facts_of("cora-ml") is FACTS["cora-ml"]
    with pytest.raises(TypeError):
        FACTS["mine"] = FACTS["cora"]
    for name, facts in FACTS.items():
        assert facts.name == name
        assert facts.cite
        assert facts.source
        assert facts.raw_files


def test_unknown_name():
    with pytest.raises(InputError, match=r"name: must be one of cora-ml, .*got 'reddit'"):
        load("reddit")


@pytest.mark.parametrize("split", [-1, 1.0, True, "public", None])
def test_bad_split(split):
    with pytest.raises(InputError, match="split: must be a whole number from 0"):
        load("cora", split=split)


@pytest.mark.parametrize("name", names())
def test_no_folder_names_all_ways_out(name):
    with pytest.raises(InputError, match="GCON_DATA is not set") as raised:
        load(name)
    for way_out in ("Set GCON_DATA", "folder=", "download=True"):
        assert way_out in raised.value.fix


def test_an_empty_variable_counts_as_not_set(monkeypatch):
    monkeypatch.setenv("GCON_DATA", "")
    with pytest.raises(InputError, match="GCON_DATA is not set"):
        load("cora")


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(InputError, match="folder: must hold every raw file") as raised:
        load("actor", folder=tmp_path / "nowhere")
    assert str(tmp_path / "nowhere" / "Actor" / "raw") in str(raised.value)
    assert "out1_node_feature_label.txt" in str(raised.value)


def test_one_missing_file_is_named_with_the_variable(tmp_path, monkeypatch):
    raw = tmp_path / "CiteSeer" / "raw"
    raw.mkdir(parents=True)
    for file in FACTS["citeseer"].raw_files[:-1]:
        (raw / file).touch()
    monkeypatch.setenv("GCON_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"GCON_DATA: .* without ind\.citeseer\.test\.index") as raised:
        load("citeseer")
    assert str(raw) in str(raised.value)


def test_missing_files_leave_no_trace_in_the_cache(tmp_path):
    with pytest.raises(InputError):
        load("cora", folder=tmp_path)
    assert not (tmp_path / "cache").exists()


def test_without_pyg_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    with pytest.raises(MissingExtraError, match=r"gcon\[datasets\]"):
        load("cora", folder=tmp_path)


def test_the_data_folder_is_only_read(tmp_path):
    folder = write_tiny(tmp_path / "data")
    assert open_private(load("tiny", folder=folder).hygiene).kept == 11
    assert [path.name for path in (folder / "cora_ml").iterdir()] == ["raw"]
    assert not (tmp_path / "cache").exists()
    write_tiny(folder, edges=5)
    assert open_private(load("tiny", folder=str(folder)).hygiene).kept == 5


def test_a_file_that_is_gone_is_an_error_not_a_download(tmp_path, monkeypatch):
    (tmp_path / "cora_ml" / "raw").mkdir(parents=True)
    nothing_asked = replace(TINY, raw_files=())
    monkeypatch.setattr("gcon.files.datasets.registry.facts_of", lambda name: nothing_asked)
    with pytest.raises(InputError, match="must hold all raw files while they are read"):
        load("tiny", folder=tmp_path)


def test_other_files_than_the_published_ones_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"must hold Cora-ML as published, .*got \(12, 3, 2\)"):
        load("cora-ml", folder=write_tiny(tmp_path / "data"))


def test_a_failed_reading_leaves_nothing_behind(tmp_path, monkeypatch):
    folder = write_tiny(tmp_path / "data")
    (folder / "cora_ml" / "raw" / "cora_ml.npz").write_bytes(b"not an archive")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "work"))
    (tmp_path / "work").mkdir()
    with pytest.raises(ValueError, match="pickle"):
        load("tiny", folder=folder)
    assert list((tmp_path / "work").iterdir()) == []


def test_download_goes_to_the_cache_once(tmp_path, monkeypatch):
    folder, asked = write_tiny(tmp_path / "published"), []
    load("tiny", folder=folder)  # imports PyG quietly

    def fetch(url, target):
        asked.append(url)
        shutil.copy(folder / "cora_ml" / "raw" / "cora_ml.npz", target)

    monkeypatch.setattr(sys.modules["torch_geometric.datasets.citation_full"], "download_url", fetch)
    with pytest.raises(InputError, match="GCON_DATA is not set"):
        load("tiny")
    assert asked == []
    for _ in range(2):
        assert open_private(load("tiny", download=True, folder=tmp_path / "nowhere").hygiene).kept == 11
    assert len(asked) == 1
    assert (cache_folder() / "downloads" / "cora-ml" / "cora_ml" / "raw" / "cora_ml.npz").is_file()
    load("tiny", download=True, folder=folder)
    assert len(asked) == 1


def test_where_the_cache_lies(tmp_path, monkeypatch):
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("GCON_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "gcon"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "gcon"


def test_a_cache_that_cannot_be_made(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("GCON_CACHE", str(tmp_path / "file" / "below"))
    with pytest.raises(InputError, match="GCON_CACHE: must name a folder that can be written"):
        cache_folder()


def test_two_writers_of_one_target(tmp_path):
    target = tmp_path / "target"
    how = {"mode": 0o700, "keep_existing": True}
    with whole_folder(target, **how) as first, whole_folder(target, **how) as second:
        (first / "who").write_text("first")
        (second / "who").write_text("second")
        assert not target.exists()
    assert (target / "who").read_text() == "second"
    assert os.listdir(tmp_path) == ["target"]
