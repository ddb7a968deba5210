"""The public namespace: small, declared, and light to import."""

import subprocess
import sys

import gcon

DECLARED = [
    "GCON",
    "Budget",
    "FeatureColumns",
    "FileLedger",
    "GconError",
    "MemoryLedger",
    "Moments",
    "MomentsModel",
    "NodeClassifier",
    "Objective",
    "ObjectiveModel",
    "Predictions",
    "PrivateGraph",
    "PublicGraph",
    "PublicNodes",
    "__version__",
    "datasets",
    "load",
    "load_release",
    "model_selection",
    "private_graph",
    "public_graph",
    "save_release",
]


def test_exports_equal_the_declared_list():
    assert gcon.__all__ == DECLARED
    assert all(getattr(gcon, name) is not None for name in DECLARED)


def test_importing_gcon_imports_no_extra():
    extras = ["torch_geometric", "networkx", "rich", "matplotlib", "pandas", "polars", "typer"]
    code = f"import sys, gcon; print([name for name in {extras} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert done.stderr == ""
