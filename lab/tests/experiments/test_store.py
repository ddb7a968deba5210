"""Finished units of experiments."""

from gcon_lab.experiments.unit_store import UnitStore


def test_units_resume_and_a_damaged_one_is_made_again(tmp_path):
    store = UnitStore(tmp_path)
    assert store.read("unit") is None
    store.write("unit", {"score": [0.5, 0.6]})
    assert store.read("unit") == {"score": [0.5, 0.6]}
    (tmp_path / "unit.json").write_text('{"score": [0.5')
    assert store.read("unit") is None
