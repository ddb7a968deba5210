"""Every notebook runs, cell by cell, in an empty folder; and holds no output, so that a change is a change of text."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SLOW = {"a-service", "attack-your-model"}
by_name = pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)


def cells(notebook, kind):
    return ["".join(cell["source"]) for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == kind]


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 5


def with_mark(notebook):
    return pytest.param(notebook, marks=[pytest.mark.slow] if notebook.stem in SLOW else [])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyG still uses torch.jit
@pytest.mark.parametrize("notebook", [with_mark(each) for each in NOTEBOOKS], ids=lambda path: path.stem)
def test_every_cell_runs(notebook, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for number, code in enumerate(cells(notebook, "code")):
        capsys.readouterr()
        try:
            exec(compile(code, f"{notebook.name}, code cell {number}", "exec"), names)
        except Exception as error:
            error.add_note(f"in {notebook.name}, code cell {number}")
            raise
    assert capsys.readouterr().out.strip()  # the last one shows something


@by_name
def test_no_output_is_kept(notebook):
    book = json.loads(notebook.read_text())
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    for cell in book["cells"]:
        assert set(cell) <= {"cell_type", "id", "metadata", "source", "outputs", "execution_count"}
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
        assert not cell["metadata"]
    assert len({cell["id"] for cell in book["cells"]}) == len(book["cells"])


@by_name
def test_links_lead_somewhere(notebook):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", "\n".join(cells(notebook, "markdown"))):
        assert target.startswith("https://") or (notebook.parent / target).exists(), target
