"""What users pass to the estimator -> public features, public nodes, private edges."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from gcon.columns import FeatureColumns
from gcon.edges.edge_list import EdgeList, private_edges, public_edges
from gcon.edges.graph import PrivateGraph, PublicGraph
from gcon.errors import InputError
from gcon.files.edges import as_edge_index, rows_of
from gcon.files.frames import frame_features
from gcon.files.labels import as_labels, as_tensor, class_list, labelled_mask, unlabelled
from gcon.files.networkx_graphs import networkx_columns
from gcon.nodes import PublicNodes, check_features
from gcon.privacy.frames import without_frames

EDGE_VALUES = ("edge_weight", "edge_attr")  # what PyG's Data may say of edges beside their ends: public names
MASKS = ("train_mask", "validation_mask", "test_mask")


class Masks(TypedDict, total=False):
    """Which nodes are for what, as in `fit`."""

    train_mask: Any
    validation_mask: Any
    test_mask: Any
    split: int | None


@dataclass(frozen=True, eq=False)
class Columns:
    """A graph as loose parts, before it is checked: what PyG's Data, networkx and plain arrays have in common.

    Attributes:
        ids: the names of the rows, if the features have an index.
        feature_columns: what was done with the columns of a data frame.
        split: which column of masks that hold several splits.
        edge_values: what PyG's Data says of its edges beside their ends.
    """

    features: Any
    labels: Any = None
    edges: Any = None
    train_mask: Any = None
    validation_mask: Any = None
    test_mask: Any = None
    ids: Sequence[Any] | None = None
    feature_columns: FeatureColumns | None = None
    split: int | None = None
    edge_values: tuple[str, ...] = ()


def read_columns(data: Any, **given: Any) -> Columns:
    """Take features, labels, edges and masks from whatever was passed; named arguments win.

    Labels and masks that have an index of their own follow that of the features.
    """

    def index_of(table: Any) -> list[Any] | None:
        index = getattr(table, "index", None)  # of a list it is a function
        return None if index is None or callable(index) else list(index)

    given = {name: value for name, value in given.items() if value is not None}
    if isinstance(data, PrivateGraph | PublicGraph):
        raise InputError("X", rule="is a graph already", got=type(data).__name__, fix="Pass it on as it is.")
    if isinstance(data, str | os.PathLike):
        rule, fix = (
            "must hold the features themselves",
            "Read the file, for example with pandas; gcon train takes files.",
        )
        raise InputError("X", rule=rule, got=f"a path, {os.fspath(data)!r}", fix=fix)
    refused = None  # what is not one graph of one kind of node
    if hasattr(type(data), "to_homogeneous"):
        refused = "must have one kind of node and of edge", "Pass data.to_homogeneous(), with features of one width."
    elif isinstance(data, DataLoader):
        rule = "must be a whole graph: a loader samples from the edges, and no promise covers that"
        refused = rule, "Pass the Data that the loader was made of."
    elif isinstance(data, Dataset):
        refused = "must be one graph, not a data set", "Pass dataset[0]."
    if refused is not None:
        raise InputError("X", rule=refused[0], got=type(data).__name__, fix=refused[1])
    if hasattr(data, "edge_index"):
        said = tuple(name for name in EDGE_VALUES if getattr(data, name, None) is not None)
        found = {
            "features": getattr(data, "x", None),
            "labels": getattr(data, "y", None),
            "edges": getattr(data, "adj_t", None) if data.edge_index is None else data.edge_index,
            "train_mask": getattr(data, "train_mask", None),
            "validation_mask": getattr(data, "val_mask", None),
            "test_mask": getattr(data, "test_mask", None),
            "edge_values": () if "edges" in given else said,
        }
    elif hasattr(data, "number_of_nodes") and hasattr(data, "nodes"):
        found = networkx_columns(data)
    else:
        found = {"features": data, "ids": index_of(data)}
    ids = found.get("ids")
    for name, values in given.items():
        own = index_of(values)
        if name == "edges" or ids is None or own is None or own == ids:
            continue
        rows = rows_of(own) if set(own) == set(ids) else {}
        if not rows or len(own) != len(ids):
            raise InputError(
                "y" if name == "labels" else name,
                rule="must have the index of the features, in any order",
                got="another index",
                fix="Reindex it, or pass .to_numpy() if its rows are in the order of the features.",
            )
        given[name] = np.asarray(values)[[rows[each] for each in ids]]
    if found.get("features") is None:
        raise InputError("features", rule="are needed", got="none", fix="PyG: data.x; networkx: node attribute 'x'.")
    return Columns(**{**found, **given})


def as_features(features: Any) -> Tensor:
    """A dense matrix of finite floating-point numbers from a tensor, array, data frame or scipy sparse matrix."""
    dense = as_tensor(features.toarray() if hasattr(features, "toarray") else features)
    if dense is None or dense.is_complex():
        raise InputError(
            "features",
            rule="must be a matrix of real numbers, one row per node",
            got=type(features).__name__ if dense is None else str(dense.dtype),
            fix="Turn every column into numbers.",
        )
    dense = dense if dense.is_floating_point() else dense.to(torch.float32)
    check_features(dense)
    return dense


@without_frames
def as_private_graph(columns: Columns, *, classes: Any = None, name: str) -> PrivateGraph:
    """Check the parts and join them; edges become private here.

    Args:
        columns: the loose parts. Without a training mask every node counts as labelled.
        classes: the class list; by default the labels that occur among the training nodes.
        name: the owner's name for the data.
    """
    features = as_features(columns.features)
    num_nodes = int(features.shape[0])
    labels = as_labels(columns.labels, num_nodes)
    train, validation, test = (
        labelled_mask(getattr(columns, name), name, labels, default=name == "train_mask", split=columns.split)
        for name in MASKS
    )
    if columns.split is not None and not any(np.ndim(getattr(columns, name)) == 2 for name in MASKS):
        rule, fix = "chooses a column of masks with several", "Leave it out, or pass such masks."
        raise InputError("split", rule=rule, got=f"{columns.split!r}, and no such mask", fix=fix)
    gaps = labels.dtype.kind == "f" and bool(np.isnan(labels).any())
    names = class_list(labels[train.numpy()], classes, gaps=gaps)
    if len(names) == 1 and unlabelled(labels).any():
        rule, fix = "needs two classes, and -1, None and NaN are none", "Name that class otherwise: 0 instead of -1."
        raise InputError("y", rule=rule, got="one class and nodes without a label", fix=fix)
    places = {name: number for number, name in enumerate(names)}
    numbers = torch.tensor([places.get(label, -1) for label in labels.tolist()], dtype=torch.int64)
    used = train | validation | test
    wrong = used & (numbers < 0)
    if bool(train.any()) and bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise InputError(
            "y",
            rule=f"labels must lie in the class list {names[:20]}",
            got=f"{labels[row : row + 1].tolist()[0]!r} in row {row}",
            fix="Pass classes=[...], or label a training node of that class, or take the node out of the masks.",
        )
    nodes = PublicNodes(
        features=features,
        labels=numbers.masked_fill(~used, -1),
        num_classes=len(names),
        train_mask=train,
        validation_mask=validation,
        test_mask=test,
        class_names=tuple(names),
        feature_columns=columns.feature_columns,
    )
    index = as_edge_index(columns.edges, num_nodes=num_nodes, ids=columns.ids, values=columns.edge_values)
    edges, hygiene = private_edges(index, num_nodes)
    return PrivateGraph(nodes, edges, hygiene, name)


def public_graph(data: Any, edges: Any = None, *, feature_columns: FeatureColumns | None = None) -> PublicGraph:
    """Declare that the edges of a graph are public, for access='public-graph'.

    Args:
        data: features (array, tensor), or PyG's Data, or a networkx graph with node attribute `x`.
        edges: edges in any supported form, unless `data` has them.
        feature_columns: of a model that was trained on categories or gaps, `model_.feature_columns`: `data` is a data frame
            with its columns.

    Privacy:
        Nothing is promised about these edges.
    """
    columns = read_columns(data, edges=edges)
    raw = columns.features
    features = as_features(raw if feature_columns is None else frame_features(raw, feature_columns))
    if isinstance(columns.edges, EdgeList):
        return PublicGraph(features, columns.edges)
    index = as_edge_index(columns.edges, num_nodes=len(features), ids=columns.ids, values=columns.edge_values)
    return PublicGraph(features, public_edges(index, len(features)))
