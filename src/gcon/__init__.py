"""gcon: train node classifiers on sensitive graphs, with a proven promise about every single edge.

Names are imported when they are first used (PEP 562), so that `import gcon` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from gcon.version import __version__

if TYPE_CHECKING:
    from gcon import model_selection
    from gcon.columns import FeatureColumns
    from gcon.edges.graph import PrivateGraph, PublicGraph, private_graph
    from gcon.errors import GconError
    from gcon.estimators.gcon_classifier import GCON
    from gcon.estimators.load import load
    from gcon.estimators.node_classifier import NodeClassifier
    from gcon.files import datasets
    from gcon.files.inputs import public_graph
    from gcon.methods.moments import Moments, MomentsModel
    from gcon.methods.objective import Objective, ObjectiveModel
    from gcon.methods.predictions import Predictions
    from gcon.nodes import PublicNodes
    from gcon.privacy.budget import Budget
    from gcon.privacy.ledger import MemoryLedger
    from gcon.privacy.ledger_file import FileLedger
    from gcon.release.read import load_release
    from gcon.release.store import save_release

_HOMES = {
    "GCON": "gcon.estimators.gcon_classifier",
    "Budget": "gcon.privacy.budget",
    "FeatureColumns": "gcon.columns",
    "FileLedger": "gcon.privacy.ledger_file",
    "GconError": "gcon.errors",
    "MemoryLedger": "gcon.privacy.ledger",
    "MomentsModel": "gcon.methods.moments",
    "Moments": "gcon.methods.moments",
    "NodeClassifier": "gcon.estimators.node_classifier",
    "Objective": "gcon.methods.objective",
    "ObjectiveModel": "gcon.methods.objective",
    "Predictions": "gcon.methods.predictions",
    "PrivateGraph": "gcon.edges.graph",
    "PublicGraph": "gcon.edges.graph",
    "PublicNodes": "gcon.nodes",
    "datasets": "gcon.files",
    "model_selection": "gcon",
    "load": "gcon.estimators.load",
    "load_release": "gcon.release.read",
    "private_graph": "gcon.edges.graph",
    "public_graph": "gcon.files.inputs",
    "save_release": "gcon.release.store",
}

MODULES = ("datasets", "model_selection")

__all__ = [
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


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'gcon' has no attribute {name!r}")
    home = _HOMES[name]
    found = import_module(f"{home}.{name}") if name in MODULES else getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
