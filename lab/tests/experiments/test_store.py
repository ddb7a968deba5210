"""Files of experiments are whole or absent."""

import json

import pytest

from gcon.files.unit_store import UnitStore, write_whole


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
