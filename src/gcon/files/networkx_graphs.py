"""A networkx graph with node attributes `x`, `y` and `split`, as loose parts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gcon.errors import InputError


def networkx_columns(graph: Any) -> dict[str, Any]:
    """Features, labels, edges and masks, with rows in the order of the names."""
    names = _sorted_names(graph)
    attributes = [graph.nodes[node] for node in names]
    if not attributes or any("x" not in entry for entry in attributes):
        raise InputError("features", rule="every node needs an attribute 'x'", got="nodes without it", fix="Add it.")
    position = {node: row for row, node in enumerate(names)}
    ends = [(position[first], position[second]) for first, second in graph.edges()]
    labelled = [entry.get("y") is not None for entry in attributes]
    return {
        "ids": names,
        "features": [entry["x"] for entry in attributes],
        "labels": np.array([entry.get("y") for entry in attributes], dtype=None if all(labelled) else object),
        "edges": torch.tensor(ends, dtype=torch.int64).reshape(-1, 2).T,
        **_masks([entry.get("split") for entry in attributes], np.array(labelled)),
    }


def _sorted_names(graph: Any) -> list[Any]:
    """Rows in the order of the names: the graph's own order may be that in which edges were added, which is private."""
    for key in (
        lambda name: name,
        lambda name: (type(name).__name__, name),
    ):  # names of several kinds: one after another
        try:
            names = sorted(graph.nodes, key=key)
            # Sets, say, can be compared and have no order; then the result depends on that of the graph.
            if names and all(key(first) < key(second) for first, second in pairwise(names)):
                return names
        except TypeError:
            continue
    rule, fix = "node names must have an order of their own", "Use numbers, strings or tuples of these."
    raise InputError("X", rule=rule, got="other names", fix=fix)


def _masks(splits: list[Any], labelled: NDArray[np.bool_]) -> dict[str, Any]:
    """Masks from the attribute `split`; where no node has it, every labelled node is for training."""
    if not any(splits):
        return {"train_mask": None if labelled.all() else labelled}
    known = {"train": "train_mask", "val": "validation_mask", "validation": "validation_mask", "test": "test_mask"}
    unknown = [split for split in splits if split and split not in known]
    if unknown:
        raise InputError("split", rule=f"must be one of {list(known)}", got=repr(unknown[0]), fix="Or leave it out.")
    return {mask: np.array([known.get(split) == mask for split in splits]) for mask in set(known.values())}
