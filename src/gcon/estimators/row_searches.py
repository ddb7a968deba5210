"""Scikit-learn's searches over rows are refused: a part of the rows is no part of a graph, and every fit is a release."""

from __future__ import annotations

import sys

from gcon.errors import InputError

SEARCHES = "sklearn.model_selection"


def refuse_row_searches() -> None:
    """Refuse a fit that one of scikit-learn's searches or cross-validations asks for.

    They give rows, and no sign that these are a part of a table; so whoever called is looked at.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        if str(frame.f_globals.get("__name__", "")).startswith(SEARCHES):
            raise InputError(
                "X",
                rule="must be the rows of a whole graph",
                got="a part of them, from scikit-learn's cross-validation or search",
                fix="Rows cut off lose their edges, and every fit is a release that is paid for. Keep the graph whole: "
                "gcon.model_selection has masks for fit (split_nodes, node_folds); model.node_score says what a score costs.",
            )
