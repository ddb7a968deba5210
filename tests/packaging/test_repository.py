"""What stands around the package: workflows, hooks, citation. They must agree with the code that they speak of."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from gcon.version import __version__

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
by_name = pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)


def test_there_are_workflows():
    assert [path.stem for path in WORKFLOWS] == ["ci", "release"]


@by_name
def test_actions_are_pinned_by_tag(workflow):
    used = re.findall(r"uses: (\S+)", workflow.read_text())
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w-]+/[\w-]+@v\d+(\.\d+)*", each)] == []


@by_name
def test_nobody_may_write_by_default(workflow):
    text = workflow.read_text()
    assert "\npermissions:\n  contents: read\n" in text
    assert "secrets." not in text


@by_name
def test_what_they_run_exists(workflow):
    text = workflow.read_text()
    for script in re.findall(r"run: (\.ci/\w+)", text):
        assert os.access(ROOT / script, os.X_OK), script
    matrix = re.search(r"target: \[([^]]+)\]", text)
    targets = [*re.findall(r"run: make ([\w-]+)", text), *(matrix[1].split(", ") if matrix else [])]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(["make", "-n", *targets], cwd=ROOT, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_python_that_is_promised_is_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [entry.rpartition(" ")[2] for entry in project["classifiers"] if re.search(r":: 3\.\d+$", entry)]
    tested = re.search(r"python: \[(.*)\]", (ROOT / ".github" / "workflows" / "ci.yml").read_text())[1]
    assert re.findall(r'"([\d.]+)"', tested) == named == ["3.11", "3.12", "3.13", "3.14"]
    assert project["requires-python"] == f">={named[0]}"


def test_versions_agree():
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text())["project"]["version"] == __version__
    assert f"\n## {__version__}" in (ROOT / "CHANGELOG.md").read_text()
    (hook,) = re.findall(r"rev: v([\d.]+)", (ROOT / ".pre-commit-config.yaml").read_text())
    assert f"\nruff=={hook}\n" in (ROOT / "constraints.txt").read_text()


def test_the_scripts_are_shell():
    for script in (ROOT / ".ci").iterdir():
        assert subprocess.run(["bash", "-n", script], check=False).returncode == 0, script.name


def test_where_nothing_can_build_the_container_is_not_called_built(tmp_path):
    for name in ("bash", "dirname"):
        (tmp_path / name).symlink_to(f"/bin/{name}" if Path(f"/bin/{name}").exists() else f"/usr/bin/{name}")
    done = subprocess.run(
        [ROOT / ".ci" / "container"], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "NOT BUILT: neither docker nor podman answers here.\n")
