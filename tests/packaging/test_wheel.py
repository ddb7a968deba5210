"""The wheel in a fresh environment with the core dependencies only: what a user gets from `pip install gcon`."""

import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TORCH = "torch==2.13.0"  # first and alone: the pinned CPU build

SCRIPT = """
import importlib.util
from pathlib import Path

import gcon

package = Path(gcon.__file__).parent
assert "site-packages" in package.parts, package
assert (package / "py.typed").is_file()
assert not list(package.rglob("test*"))
assert importlib.util.find_spec("torch_geometric") is None

graph = gcon.datasets.social_circles(200, num_classes=3, seed=1)
ledger = gcon.MemoryLedger(graph.name, ceiling=gcon.Budget(1.0, 1e-5))
model = gcon.GCON(epsilon=1.0, epochs=10, ledger=ledger).fit(graph)
for access in ("none", "own-edges"):
    assert model.predict(graph, access=access).shape == (200,)
    assert model.predictions(graph, access=access).access == access
assert ledger.total() == gcon.Budget(1.0, 1e-5)
assert model.statement().fields["promise"] is True

from gcon.serve.client import Client
from gcon.pages.build import site_pages

assert len(site_pages(model.model_)) == 3  # with their templates, scripts and measurements
assert "127.0.0.1" in repr(Client("http://127.0.0.1:8000"))

try:
    gcon.datasets.load("cora")
except gcon.errors.MissingExtraError as error:
    assert "gcon[datasets]" in str(error), error
else:
    raise AssertionError("torch_geometric is not installed, but a dataset was loaded")
print("gcon", gcon.__version__, "works")
"""


def run(*command: object, folder: Path) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(list(map(str, command)), cwd=folder, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, folder=folder)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = [archive.read(name).decode() for name in names if name.endswith(".dist-info/METADATA")]
    for kind in ("py", "html", "css", "js", "csv"):
        files = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "gcon").rglob(f"*.{kind}")}
        assert {name for name in names if name.endswith(f".{kind}")} == files != set()
    assert "gcon/py.typed" in names
    assert {name.split("/")[0] for name in names} == {"gcon", re.sub(r"-py3-none-any\.whl$", ".dist-info", wheel.name)}
    core = [line for line in metadata.splitlines() if line.startswith("Requires-Dist:") and "extra ==" not in line]
    assert {re.split(r"[ <>=~]", line.removeprefix("Requires-Dist: "))[0] for line in core} == {
        "mpmath",
        "msgspec",
        "numpy",
        "safetensors",
        "scikit-learn",
        "scipy",
        "torch",
    }


@pytest.fixture
def fresh_python(tmp_path):
    venv.create(tmp_path / "env", with_pip=True)
    yield tmp_path / "env" / "bin" / "python"
    # torch is large and pytest keeps the folders of its last runs; deleting takes a while, so nobody waits for it.
    subprocess.run(["sh", "-c", 'rm -rf "$0" > /dev/null 2>&1 &', tmp_path / "env"], check=True)


@pytest.mark.slow
def test_the_wheel_works_in_a_fresh_environment(wheel, tmp_path, fresh_python):
    limits = ["-c", ROOT / "constraints.txt"] if (ROOT / "constraints.txt").is_file() else []
    install = [fresh_python, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check", *limits]
    run(*install, TORCH, folder=tmp_path)
    run(*install, wheel, folder=tmp_path)
    script = tmp_path / "first_steps.py"
    script.write_text(SCRIPT)
    done = run(fresh_python, "-I", script, folder=tmp_path)
    assert done.stdout.startswith("gcon ")
    assert done.stderr == ""  # a user's first steps show no warning
