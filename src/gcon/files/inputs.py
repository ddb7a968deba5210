"""What users pass to the estimator -> public features, public nodes, private edges."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from gcon.columns import FeatureColumns
from gcon.edges.edge_list import CLEANED, EDGES, EdgeList, public_edges, simple_undirected
from gcon.edges.graph import PrivateGraph, PublicGraph
from gcon.errors import InputError
from gcon.files.edges import as_edge_index, rows_of
from gcon.files.frames import frame_features
from gcon.files.networkx_graphs import networkx_columns
from gcon.nodes import PublicNodes, check_features
from gcon.privacy.boundary import Private, without_frames

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
    elif isinstance(data, list | tuple) and any(hasattr(each, "edge_index") for each in data[:1]):
        refused = "must be one graph, not several", "Pass one of them."
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
    """A dense matrix of finite floating-point numbers from a tensor, array, data frame or scipy sparse matrix.

    It may share memory with what was passed: nobody writes to it.
    """
    dense = features.detach().cpu().to_dense() if isinstance(features, Tensor) else None
    if dense is None:
        with suppress(TypeError, ValueError):  # no numbers
            values = features.toarray() if hasattr(features, "toarray") else features
            dense = torch.from_numpy(np.require(values, requirements=["C", "W"]))
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


def as_labels(labels: Any, num_nodes: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """One label per node, numbers, strings or whatever names the classes, and which of them say something.

    A single column is taken as a vector. No label is -1 as in scikit-learn's semi-supervised models, None, NaN, and pandas's NA;
    also as words, as in files: NumPy makes words of numbers that stand among words.
    """
    if labels is None:
        raise InputError(
            "y",
            rule="labels are needed",
            got="none (this estimator requires y to be passed, but the target y is None)",
            fix="Pass y, or data.y, or node attributes 'y'.",
        )
    found: NDArray[Any] = labels.detach().cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
    if found.shape not in ((num_nodes,), (num_nodes, 1)):
        raise InputError(
            "y", rule=f"must hold one label per node ({num_nodes})", got=f"shape {found.shape}", fix="Pass a vector."
        )
    found = found.reshape(num_nodes)
    words = ("", "-1", "-1.0", "nan") if found.dtype.kind == "U" else ("", "-1", "-1.0")

    def missing(label: Any) -> bool:
        if isinstance(label, str):
            return label in words
        return label is None or type(label).__name__ in ("NAType", "NaTType") or bool(label == -1 or label != label)

    return found, ~np.fromiter((missing(label) for label in found.tolist()), dtype=bool, count=num_nodes)


def labelled_mask(
    mask: Any, name: str, labels: tuple[NDArray[Any], NDArray[np.bool_]], *, default: bool, split: int | None = None
) -> Tensor:
    """One boolean per node; a chosen node without a label is refused.

    Args:
        mask: one boolean per node, or several columns of them, or the numbers of the chosen rows, each once. None: all nodes
            that have a label, or no node.
        name: of the parameter, for messages.
        labels: one per node, and which of them say something.
        default: whether it is all of them, where there is no mask.
        split: which column, if there are several.
    """
    known, num_nodes, chosen = labels[1], len(labels[1]), None
    if mask is None:
        return torch.from_numpy(known.copy() if default else np.zeros_like(known))
    given: NDArray[Any] = np.empty(0, dtype=object)
    with suppress(TypeError, ValueError):  # neither booleans nor numbers
        given = mask.detach().cpu().to_dense().numpy() if isinstance(mask, Tensor) else np.asarray(mask)
    if given.dtype == bool:
        if given.shape == (num_nodes,):
            chosen = given
        elif given.ndim == 2 and len(given) == num_nodes:
            count = int(given.shape[1])
            if not isinstance(split, int | np.integer) or isinstance(split, bool) or not 0 <= split < count:
                rule = f"must choose one of the {count} columns of {name}, 0 to {count - 1}"
                raise InputError("split", rule=rule, got=repr(split), fix="Pass split=0, for example.")
            chosen = given[:, int(split)]
    elif given.dtype.kind in "iu" and given.ndim == 1 and ((given >= 0) & (given < num_nodes)).all():
        rows = np.bincount(given.astype(np.int64), minlength=num_nodes)
        chosen = rows > 0 if (rows < 2).all() else None
    if chosen is None:
        raise InputError(
            name,
            rule=f"must hold one boolean per node ({num_nodes})",
            got=type(mask).__name__ if given.dtype.kind not in "biufc" else f"{given.dtype} of shape {given.shape}",
            fix="Pass a boolean vector, or the numbers of the chosen rows, each once.",
        )
    lost = np.flatnonzero(chosen & ~known)
    if lost.size:
        raise InputError(
            "y",
            rule=f"every node of {name} needs a label; -1, None and NaN mean that there is none",
            got=f"{labels[0].tolist()[lost[0]]!r} in row {lost[0]}",
            fix="Label the node, or take it out of the mask.",
        )
    return torch.from_numpy(chosen.copy())


@without_frames
def as_private_graph(columns: Columns, *, classes: Any = None, name: str) -> PrivateGraph:
    """Check the parts and join them; edges become private here.

    Args:
        columns: the loose parts. Without a training mask every labelled node that no other mask has is one to learn from.
        classes: the class list; by default the labels of the labelled nodes (train_mask).
        name: the owner's name for the data.
    """
    features = as_features(columns.features)
    labels, known = as_labels(columns.labels, len(features))
    given = {part: getattr(columns, part) for part in MASKS}
    masks = {
        part: labelled_mask(mask, part, (labels, known), default=part == "train_mask", split=columns.split)
        for part, mask in given.items()
    }
    if given["train_mask"] is None:
        masks["train_mask"] = masks["train_mask"] & ~masks["validation_mask"] & ~masks["test_mask"]
    if columns.split is not None and not any(np.ndim(mask) == 2 for mask in given.values()):
        rule, fix = "chooses a column of masks with several", "Leave it out, or pass such masks."
        raise InputError("split", rule=rule, got=f"{columns.split!r}, and no such mask", fix=fix)

    # The class list: those that were named, or the labels in train_mask.
    labelled, real = labels[masks["train_mask"].numpy()], labels.dtype.kind == "f"
    names: list[object] = [] if classes is None else np.asarray(classes).tolist()
    if classes is not None:
        kept = as_labels(np.array([*names, None], dtype=object)[:-1], len(names))[1]
        if len(set(names)) != len(names) or not kept.all():
            rule = "must differ; -1, None and NaN are no classes: they mark nodes without a label"
            raise InputError("classes", rule=rule, got=names, fix="Name every class once, and otherwise than these.")
    elif real and not (np.isfinite(labelled).all() and (labelled == np.round(labelled)).all()):
        rule, fix = "must name classes", "Pass whole numbers or strings."
        raise InputError("y", rule=rule, got="fractions (Unknown label type: continuous)", fix=fix)
    else:
        gaps = real and bool(np.isnan(labels).any())  # whole numbers are fractions only because of these
        try:
            names = np.unique(labelled.astype(np.int64) if gaps else labelled).tolist()
        except TypeError as error:
            kinds = sorted({type(label).__name__ for label in labelled.tolist()})
            raise InputError("y", rule="must be of one kind", got=kinds, fix="Pass numbers or strings.") from error
    if len(names) == 1 and not known.all():
        rule, fix = "needs two classes, and -1, None and NaN are none", "Name that class otherwise: 0 instead of -1."
        raise InputError("y", rule=rule, got="one class and nodes without a label", fix=fix)

    # Labels by their places in it. Those outside all masks are never read.
    places = {each: number for number, each in enumerate(names)}
    numbers = torch.tensor([places.get(label, -1) for label in labels.tolist()], dtype=torch.int64)
    used = masks["train_mask"] | masks["validation_mask"] | masks["test_mask"]
    wrong = (used & (numbers < 0)).nonzero().flatten().tolist()
    if wrong and len(labelled):
        raise InputError(
            "y",
            rule=f"labels must lie in the class list {names[:20]}",
            got=f"{labels.tolist()[wrong[0]]!r} in row {wrong[0]}",
            fix="Pass classes=[...], or put a node of that class into train_mask, or take this one out of the masks.",
        )
    parts: dict[str, Any] = {
        "labels": numbers.masked_fill(~used, -1),
        "num_classes": len(names),
        "class_names": tuple(names),
        **masks,
    }
    nodes = PublicNodes(features=features, feature_columns=columns.feature_columns, **parts)
    index = as_edge_index(columns.edges, num_nodes=len(features), ids=columns.ids, values=columns.edge_values)
    edges, hygiene = simple_undirected(index, len(features))
    return PrivateGraph(nodes, Private(edges, EDGES), Private(hygiene, CLEANED), name)


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
