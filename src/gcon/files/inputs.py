"""What users pass to the estimator -> public features, public nodes, private edges."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcon.columns import FeatureColumns
from gcon.edges.edge_list import EdgeList, private_edges, public_edges
from gcon.edges.graph import PrivateGraph, PublicGraph
from gcon.errors import InputError
from gcon.files.edges import as_edge_index
from gcon.files.frames import frame_features
from gcon.files.pyg import edge_values, refuse_other_graphs
from gcon.files.row_ids import by_rows, row_ids
from gcon.nodes import PublicNodes, check_features
from gcon.privacy.frames import without_frames

MASKS = ("train_mask", "validation_mask", "test_mask")


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
    """Take features, labels, edges and masks from whatever was passed; named arguments win."""
    given = {name: value for name, value in given.items() if value is not None}
    if isinstance(data, PrivateGraph | PublicGraph):
        raise InputError("X", rule="is a graph already", got=type(data).__name__, fix="Pass it on as it is.")
    if isinstance(data, str | os.PathLike):
        rule, fix = (
            "must hold the features themselves",
            "Read the file, for example with pandas; gcon train takes files.",
        )
        raise InputError("X", rule=rule, got=f"a path, {os.fspath(data)!r}", fix=fix)
    refuse_other_graphs(data)
    if hasattr(data, "edge_index"):
        found = {
            "features": getattr(data, "x", None),
            "labels": getattr(data, "y", None),
            "edges": getattr(data, "adj_t", None) if data.edge_index is None else data.edge_index,
            "train_mask": getattr(data, "train_mask", None),
            "validation_mask": getattr(data, "val_mask", None),
            "test_mask": getattr(data, "test_mask", None),
            "edge_values": () if "edges" in given else edge_values(data),
        }
    elif hasattr(data, "number_of_nodes") and hasattr(data, "nodes"):
        found = _networkx_columns(data)
    else:
        found = {"features": data, "ids": row_ids(data)}
    given = {name: by_rows(value, name, found.get("ids")) for name, value in given.items()}
    if found.get("features") is None:
        raise InputError("features", rule="are needed", got="none", fix="PyG: data.x; networkx: node attribute 'x'.")
    return Columns(**{**found, **given})


def as_features(features: Any) -> Tensor:
    """A dense matrix of finite floating-point numbers from a tensor, array, data frame or scipy sparse matrix."""
    dense = _as_tensor(features.toarray() if hasattr(features, "toarray") else features)
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
    _check_split(columns)
    gaps = labels.dtype.kind == "f" and bool(np.isnan(labels).any())
    names = _class_names(labels[train.numpy()], classes, gaps=gaps)
    if len(names) == 1 and unlabelled(labels).any():
        rule, fix = "needs two classes, and -1, None and NaN are none", "Name that class otherwise: 0 instead of -1."
        raise InputError("y", rule=rule, got="one class and nodes without a label", fix=fix)
    numbers = class_numbers(labels, names)
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
    edges, hygiene = private_edges(edge_index_of(columns, num_nodes=num_nodes), num_nodes)
    return PrivateGraph(nodes, edges, hygiene, name)


@without_frames
def edge_index_of(columns: Columns, *, num_nodes: int) -> Tensor:
    """The edges between rows, of whatever kind they are; nothing that was said of them is dropped silently.

    Privacy:
        The result is bare: the caller wraps it at once. Errors hold no value from it.
    """
    if columns.edge_values:
        name = columns.edge_values[0]
        raise InputError(
            name,
            rule="is not used: every edge counts the same",
            got=f"data.{name}",
            fix=f"If that is what you want, say so: data.{name} = None.",
        )
    return as_edge_index(columns.edges, num_nodes=num_nodes, ids=columns.ids)


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
    index = edge_index_of(columns, num_nodes=int(features.shape[0]))
    return PublicGraph(features, public_edges(index, int(features.shape[0])))


def as_mask(mask: Any, name: str, num_nodes: int, *, default: bool, split: int | None = None) -> Tensor:
    """One boolean per node; `default` everywhere if there is no mask.

    Args:
        mask: one boolean per node, or several columns of them, or the numbers of the chosen rows, each once.
        name: of the parameter, for messages.
        num_nodes: the public number of nodes.
        default: for all nodes, where there is no mask.
        split: which column, if there are several.
    """
    if mask is None:
        return torch.full((num_nodes,), default)
    result = _as_tensor(mask)
    if result is not None and result.dtype == torch.bool and result.dim() == 2 and len(result) == num_nodes:
        return result[:, _checked_split(split, name, int(result.shape[1]))]
    if result is not None and _are_rows(result, num_nodes):
        return torch.zeros(num_nodes, dtype=torch.bool).index_fill(0, result.long(), True)
    if result is None or result.dtype != torch.bool or tuple(result.shape) != (num_nodes,):
        raise InputError(
            name,
            rule=f"must hold one boolean per node ({num_nodes})",
            got=type(mask).__name__ if result is None else f"{result.dtype} of shape {tuple(result.shape)}",
            fix="Pass a boolean vector, or the numbers of the chosen rows, each once.",
        )
    return result


def labelled_mask(mask: Any, name: str, labels: NDArray[Any], *, default: bool, split: int | None = None) -> Tensor:
    """The mask, if all of its nodes have a label; without one, all nodes that have a label, or none."""
    chosen = as_mask(mask, name, len(labels), default=default, split=split)
    known = torch.from_numpy(~unlabelled(labels))
    if mask is None:
        return chosen & known
    lost = (chosen & ~known).nonzero().flatten().tolist()
    if lost:
        raise InputError(
            "y",
            rule=f"every node of {name} needs a label; -1, None and NaN mean that there is none",
            got=f"{labels.tolist()[lost[0]]!r} in row {lost[0]}",
            fix="Label the node, or take it out of the mask.",
        )
    return chosen


def unlabelled(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Which labels say that there is none: -1 as in scikit-learn's semi-supervised models, None, NaN, and pandas's NA."""

    def missing(label: Any) -> bool:
        return label is None or type(label).__name__ in ("NAType", "NaTType") or bool(label == -1 or label != label)

    return np.fromiter((missing(label) for label in labels.tolist()), dtype=bool, count=len(labels))


def as_labels(labels: Any, num_nodes: int) -> NDArray[Any]:
    """One label per node: numbers, strings or whatever names the classes; a single column is taken as a vector."""
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
    return found.reshape(num_nodes)


def class_numbers(labels: NDArray[Any], names: Sequence[object]) -> Tensor:
    """The place of every label in the class list; -1 where it is not in the list."""
    place = {name: number for number, name in enumerate(names)}
    return torch.tensor([place.get(label, -1) for label in labels.tolist()], dtype=torch.int64)


def plain_settings(given: dict[str, Any]) -> dict[str, Any]:
    """The estimator's parameters as Python's own numbers: a search over settings passes NumPy's."""
    return {
        name: value.tolist() if isinstance(value, np.ndarray | np.generic) else value for name, value in given.items()
    }


def _class_names(labelled: NDArray[Any], classes: Any, *, gaps: bool) -> list[object]:
    """The class list; whole numbers with gaps are fractions only because of the gaps."""
    if classes is not None:
        names: list[object] = np.asarray(classes).tolist()
        if len(set(names)) != len(names):
            raise InputError("classes", rule="must differ", got=names, fix="Name every class once.")
        if unlabelled(np.array([*names, None], dtype=object)[:-1]).any():
            rule, fix = "-1, None and NaN are no classes: they mark nodes without a label", "Name that class otherwise."
            raise InputError("classes", rule=rule, got=names, fix=fix)
        return names
    if labelled.dtype.kind == "f" and not (np.isfinite(labelled).all() and (labelled == np.round(labelled)).all()):
        raise InputError(
            "y",
            rule="must name classes",
            got="fractions (Unknown label type: continuous)",
            fix="Pass whole numbers or strings.",
        )
    try:
        found: list[object] = np.unique(labelled.astype(np.int64) if gaps else labelled).tolist()
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in labelled.tolist()})
        raise InputError("y", rule="must be of one kind", got=kinds, fix="Pass numbers or strings.") from error
    return found


def _as_tensor(values: Any) -> Tensor | None:
    """A dense tensor that may share memory with what was passed (nothing here writes to it); None if not numbers."""
    if isinstance(values, Tensor):
        return values.detach().cpu().to_dense()
    try:
        return torch.from_numpy(np.require(values, requirements=["C", "W"]))
    except (TypeError, ValueError):
        return None


def _networkx_columns(graph: Any) -> dict[str, Any]:
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
        **_networkx_masks([entry.get("split") for entry in attributes], np.array(labelled)),
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


def _are_rows(numbers: Tensor, num_nodes: int) -> bool:
    whole = not numbers.is_floating_point() and not numbers.is_complex() and numbers.dtype != torch.bool
    if not whole or numbers.dim() != 1:
        return False
    inside = bool(((numbers >= 0) & (numbers < num_nodes)).all())
    return inside and len(numbers.unique()) == len(numbers)


def _checked_split(split: Any, name: str, count: int) -> int:
    if isinstance(split, int | np.integer) and not isinstance(split, bool) and 0 <= split < count:
        return int(split)
    raise InputError(
        "split",
        rule=f"must choose one of the {count} columns of {name}, 0 to {count - 1}",
        got=repr(split),
        fix="Pass split=0, for example.",
    )


def _check_split(columns: Columns) -> None:
    """A split chooses a column, so some mask must have columns."""
    if columns.split is not None and not any(np.ndim(getattr(columns, name)) == 2 for name in MASKS):
        rule, fix = "chooses a column of masks with several", "Leave it out, or pass such masks."
        raise InputError("split", rule=rule, got=f"{columns.split!r}, and no such mask", fix=fix)


def _networkx_masks(splits: list[Any], labelled: NDArray[np.bool_]) -> dict[str, Any]:
    """Masks from the attribute `split`; where no node has it, every labelled node is for training."""
    if not any(splits):
        return {"train_mask": None if labelled.all() else labelled}
    known = {"train": "train_mask", "val": "validation_mask", "validation": "validation_mask", "test": "test_mask"}
    unknown = [split for split in splits if split and split not in known]
    if unknown:
        raise InputError("split", rule=f"must be one of {list(known)}", got=repr(unknown[0]), fix="Or leave it out.")
    return {mask: np.array([known.get(split) == mask for split in splits]) for mask in set(known.values())}
