"""gcon: train node classifiers on sensitive graphs, with a proven promise about every single edge."""

from gcon import datasets
from gcon.errors import GconError
from gcon.estimator.default import NodeClassifier
from gcon.estimator.paper import GCON
from gcon.graphs.graph import PrivateGraph, PublicGraph, private_graph
from gcon.graphs.nodes import PublicNodes
from gcon.interop.inputs import public_graph
from gcon.pipeline import Settings, train
from gcon.predict.predictions import Predictions
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.ledger_file import FileLedger
from gcon.release.model import ReleasedModel
from gcon.release.moments_model import MomentsModel
from gcon.release.read import load_release
from gcon.release.store import save_release
from gcon.version import __version__

__all__ = [
    "GCON",
    "Budget",
    "FileLedger",
    "GconError",
    "MemoryLedger",
    "MomentsModel",
    "NodeClassifier",
    "Predictions",
    "PrivateGraph",
    "PublicGraph",
    "PublicNodes",
    "ReleasedModel",
    "Settings",
    "__version__",
    "datasets",
    "load_release",
    "private_graph",
    "public_graph",
    "save_release",
    "train",
]
