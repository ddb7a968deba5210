"""A release folder -> an estimator that answers at once, whichever method made it."""

from __future__ import annotations

import os

from gcon.estimators.estimator import PrivateClassifier
from gcon.estimators.gcon_classifier import GCON
from gcon.estimators.node_classifier import NodeClassifier
from gcon.privacy.ledger import Ledger
from gcon.release.read import load_release


def load(folder: str | os.PathLike[str], *, ledger: Ledger | None = None) -> PrivateClassifier:
    """Read a released model that predicts: a `NodeClassifier`, or `GCON` for the paper's method.

    Features must have the columns of training, in the same order; a model that was trained on a table with names knows them,
    and does with categories and gaps what was done in training.

    Args:
        folder: what `save_release` wrote.
        ledger: records answers from own edges, and pays if the estimator is fitted again.

    Example:
        >>> import gcon, tempfile
        >>> graph = gcon.datasets.social_circles(100, seed=1)
        >>> trained = gcon.GCON(epochs=5).fit(graph)
        >>> with tempfile.TemporaryDirectory() as place:
        ...     gcon.save_release(trained.model_, f"{place}/friends")
        ...     model = gcon.load(f"{place}/friends")
        >>> model.predict(graph.nodes.features).shape
        (100,)

    Privacy:
        Reads public files, as strictly as `load_release` does. What predictions promise, `predictions` says.
    """
    model = load_release(folder)
    known: tuple[type[PrivateClassifier], ...] = (NodeClassifier, GCON)
    return next(kind for kind in known if isinstance(model, kind.model_type)).from_model(model, ledger=ledger)
