"""What users pass to the estimator -> public features, public nodes, private edges."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from gcon.columns import FeatureColumns
from gcon.edges.edge_list import EdgeList, private_edges, public_edges
from gcon.edges.graph import PrivateGraph, PublicGraph
from gcon.errors import InputError
from gcon.files.edges import as_edge_index, rows_of
from gcon.files.frames import frame_features
from gcon.files.networkx_graphs import networkx_columns
from gcon.nodes import PublicNodes, check_features
from gcon.privacy.boundary import without_frames

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


def as_tensor(values: Any) -> Tensor | None:
    """A dense tensor that may share memory with what was passed (nothing here writes to it); None if not numbers."""
    if isinstance(values, Tensor):
        return values.detach().cpu().to_dense()
    try:
        return torch.from_numpy(np.require(values, requirements=["C", "W"]))
    except (TypeError, ValueError):
        return None


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
    known = torch.from_numpy(labels[1])
    if mask is None:
        return known if default else torch.zeros_like(known)
    given, num_nodes, chosen = as_tensor(mask), len(known), None
    if given is not None and given.dtype == torch.bool:
        if tuple(given.shape) == (num_nodes,):
            chosen = given
        elif given.dim() == 2 and len(given) == num_nodes:
            count = int(given.shape[1])
            if not isinstance(split, int | np.integer) or isinstance(split, bool) or not 0 <= split < count:
                rule = f"must choose one of the {count} columns of {name}, 0 to {count - 1}"
                raise InputError("split", rule=rule, got=repr(split), fix="Pass split=0, for example.")
            chosen = given[:, int(split)]
    elif given is not None and given.dim() == 1 and not given.is_floating_point() and not given.is_complex():
        inside = bool(((given >= 0) & (given < num_nodes)).all())
        if inside and len(given.unique()) == len(given):
            chosen = torch.zeros(num_nodes, dtype=torch.bool).index_fill(0, given.long(), True)
    if chosen is None:
        raise InputError(
            name,
            rule=f"must hold one boolean per node ({num_nodes})",
            got=type(mask).__name__ if given is None else f"{given.dtype} of shape {tuple(given.shape)}",
            fix="Pass a boolean vector, or the numbers of the chosen rows, each once.",
        )
    lost = (chosen & ~known).nonzero().flatten().tolist()
    if lost:
        raise InputError(
            "y",
            rule=f"every node of {name} needs a label; -1, None and NaN mean that there is none",
            got=f"{labels[0].tolist()[lost[0]]!r} in row {lost[0]}",
            fix="Label the node, or take it out of the mask.",
        )
    return chosen


def class_list(
    labels: NDArray[Any], known: NDArray[np.bool_], train: NDArray[np.bool_], classes: Any = None
) -> list[object]:
    """The classes that were named, or those that occur among the training nodes.

    Args:
        labels: one per node.
        known: which of them say something.
        train: the training nodes.
        classes: the list of names, or None.
    """
    if classes is not None:
        names: list[object] = np.asarray(classes).tolist()
        if len(set(names)) != len(names):
            raise InputError("classes", rule="must differ", got=names, fix="Name every class once.")
        if not as_labels(np.array([*names, None], dtype=object)[:-1], len(names))[1].all():
            rule, fix = "-1, None and NaN are no classes: they mark nodes without a label", "Name that class otherwise."
            raise InputError("classes", rule=rule, got=names, fix=fix)
    else:
        labelled, real = labels[train], labels.dtype.kind == "f"
        if real and not (np.isfinite(labelled).all() and (labelled == np.round(labelled)).all()):
            rule, fix = "must name classes", "Pass whole numbers or strings."
            raise InputError("y", rule=rule, got="fractions (Unknown label type: continuous)", fix=fix)
        gaps = real and bool(np.isnan(labels).any())  # whole numbers are fractions only because of these
        try:
            names = np.unique(labelled.astype(np.int64) if gaps else labelled).tolist()
        except TypeError as error:
            kinds = sorted({type(label).__name__ for label in labelled.tolist()})
            raise InputError("y", rule="must be of one kind", got=kinds, fix="Pass numbers or strings.") from error
    if len(names) == 1 and not known.all():
        rule, fix = "needs two classes, and -1, None and NaN are none", "Name that class otherwise: 0 instead of -1."
        raise InputError("y", rule=rule, got="one class and nodes without a label", fix=fix)
    return names


@without_frames
def as_private_graph(columns: Columns, *, classes: Any = None, name: str) -> PrivateGraph:
    """Check the parts and join them; edges become private here.

    Args:
        columns: the loose parts. Without a training mask every labelled node that no other mask has is one to learn from.
        classes: the class list; by default the labels that occur among the training nodes.
        name: the owner's name for the data.
    """
    features = as_features(columns.features)
    num_nodes = int(features.shape[0])
    labels, known = as_labels(columns.labels, num_nodes)
    train, validation, test = (
        labelled_mask(getattr(columns, name), name, (labels, known), default=name == "train_mask", split=columns.split)
        for name in MASKS
    )
    if columns.train_mask is None:
        train = train & ~validation & ~test
    if columns.split is not None and not any(np.ndim(getattr(columns, name)) == 2 for name in MASKS):
        rule, fix = "chooses a column of masks with several", "Leave it out, or pass such masks."
        raise InputError("split", rule=rule, got=f"{columns.split!r}, and no such mask", fix=fix)
    names = class_list(labels, known, train.numpy(), classes)
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
