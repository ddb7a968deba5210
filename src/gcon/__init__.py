"""gcon: train node classifiers on sensitive graphs, with a proven promise about every single edge."""

from gcon import datasets
from gcon.edges.graph import PrivateGraph, PublicGraph, private_graph
from gcon.errors import GconError
from gcon.files.inputs import public_graph
from gcon.methods.gcon_classifier import GCON
from gcon.methods.moments_model import MomentsModel
from gcon.methods.node_classifier import NodeClassifier
from gcon.methods.objective import Settings, train
from gcon.methods.objective_model import ReleasedModel
from gcon.methods.predictions import Predictions
from gcon.nodes import PublicNodes
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.ledger_file import FileLedger
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
