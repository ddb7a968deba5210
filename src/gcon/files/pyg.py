"""What comes from PyG beside `Data`: refused with the way out, and nothing that `Data` says of edges is lost silently."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader, Dataset

from gcon.errors import InputError


def refuse_other_graphs(data: Any) -> None:
    """Refuse graphs of several kinds of nodes, loaders and whole data sets: they are not one graph of one kind of node."""
    if hasattr(type(data), "to_homogeneous"):
        rule, fix = "must have one kind of node and of edge", "Pass data.to_homogeneous(), with features of one width."
    elif isinstance(data, DataLoader):
        rule = "must be a whole graph: a loader samples from the edges, and no promise covers that"
        fix = "Pass the Data that the loader was made of."
    elif isinstance(data, Dataset):
        rule, fix = "must be one graph, not a data set", "Pass dataset[0]."
    else:
        return
    raise InputError("X", rule=rule, got=type(data).__name__, fix=fix)


def edge_values(data: Any) -> tuple[str, ...]:
    """What `Data` says of its edges beside their ends: public names of columns."""
    return tuple(name for name in ("edge_weight", "edge_attr") if getattr(data, name, None) is not None)
