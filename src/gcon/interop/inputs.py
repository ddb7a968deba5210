"""What users pass to the estimator -> public features, public nodes, private edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcon.errors import InputError
from gcon.graphs.edges import EdgeList
from gcon.graphs.graph import PrivateGraph, PublicGraph, private_graph
from gcon.graphs.nodes import PublicNodes
from gcon.interop.edges import as_edge_index


@dataclass(frozen=True, eq=False)
class Columns:
    """A graph as loose parts, before it is checked: what PyG's Data, networkx and plain arrays have in common."""

    features: Any
    labels: Any = None
    edges: Any = None
    train_mask: Any = None
    validation_mask: Any = None
    test_mask: Any = None


def read_columns(data: Any, **given: Any) -> Columns:
    """Take features, labels, edges and masks from whatever was passed; named arguments win."""
    given = {name: value for name, value in given.items() if value is not None}
    if isinstance(data, PrivateGraph | PublicGraph):
        raise InputError("X", rule="is a graph already", got=type(data).__name__, fix="Pass it on as it is.")
    if hasattr(data, "edge_index"):
        found = {
            "features": getattr(data, "x", None),
            "labels": getattr(data, "y", None),
            "edges": data.edge_index,
            "train_mask": getattr(data, "train_mask", None),
            "validation_mask": getattr(data, "val_mask", None),
            "test_mask": getattr(data, "test_mask", None),
        }
    elif hasattr(data, "number_of_nodes") and hasattr(data, "nodes"):
        found = _networkx_columns(data)
    else:
        found = {"features": data}
    if found.get("features") is None:
        raise InputError("features", rule="are needed", got="none", fix="PyG: data.x; networkx: node attribute 'x'.")
    return Columns(**{**found, **given})


def as_features(features: Any) -> Tensor:
    """A dense floating-point matrix from a tensor, array, data frame or scipy sparse matrix."""
    if isinstance(features, Tensor):
        dense = features.detach().cpu()
    elif hasattr(features, "toarray"):
        dense = torch.from_numpy(np.asarray(features.toarray()))
    else:
        dense = torch.from_numpy(np.ascontiguousarray(features))
    return dense if dense.is_floating_point() else dense.to(torch.float32)


def as_private_graph(columns: Columns, *, classes: Any = None, name: str) -> PrivateGraph:
    """Check the parts and join them; edges become private here.

    Args:
        columns: the loose parts. Without a training mask every node counts as labelled.
        classes: the class list; by default the labels that occur among the training nodes.
        name: the owner's name for the data.
    """
    features = as_features(columns.features)
    num_nodes = int(features.shape[0])
    train = _mask(columns.train_mask, "train_mask", num_nodes, default=True)
    validation = _mask(columns.validation_mask, "validation_mask", num_nodes, default=False)
    test = _mask(columns.test_mask, "test_mask", num_nodes, default=False)
    if columns.labels is None:
        raise InputError("y", rule="labels are needed for training", got="none", fix="Pass y, or data.y.")
    labels = np.asarray(columns.labels)
    if labels.shape != (num_nodes,):
        raise InputError("y", rule=f"one label a node ({num_nodes})", got=f"shape {labels.shape}", fix="Pass a vector.")
    names = np.unique(labels[train.numpy()]) if classes is None else np.asarray(classes)
    used = (train | validation | test).numpy()
    numbers = _class_numbers(labels, names, used)
    nodes = PublicNodes(
        features=features,
        labels=numbers,
        num_classes=len(names),
        train_mask=train,
        validation_mask=validation,
        test_mask=test,
        class_names=tuple(names.tolist()),
    )
    return private_graph(nodes, as_edge_index(columns.edges, num_nodes=num_nodes), name=name)


def public_graph(data: Any, edges: Any = None) -> PublicGraph:
    """Declare that the edges of a graph are public, for access='public-graph'.

    Args:
        data: features (array, tensor), or PyG's Data, or a networkx graph with node attribute `x`.
        edges: edges in any supported form, unless `data` has them.

    Privacy:
        Nothing is promised about these edges.
    """
    from gcon.graphs.edges import public_edges

    columns = read_columns(data, edges=edges)
    features = as_features(columns.features)
    if isinstance(columns.edges, EdgeList):
        return PublicGraph(features, columns.edges)
    index = as_edge_index(columns.edges, num_nodes=int(features.shape[0]))
    return PublicGraph(features, public_edges(index, int(features.shape[0])))


def _mask(mask: Any, name: str, num_nodes: int, *, default: bool) -> Tensor:
    if mask is None:
        return torch.full((num_nodes,), default)
    result = mask.detach().cpu() if isinstance(mask, Tensor) else torch.from_numpy(np.asarray(mask))
    if result.dtype != torch.bool or tuple(result.shape) != (num_nodes,):
        raise InputError(
            name,
            rule=f"must hold one boolean a node ({num_nodes})",
            got=f"{result.dtype} of shape {tuple(result.shape)}",
            fix="Pass a boolean vector; choose one column if there are several splits.",
        )
    return result


def _class_numbers(labels: np.ndarray[Any, Any], names: np.ndarray[Any, Any], used: np.ndarray[Any, Any]) -> Tensor:
    order = np.argsort(names)
    place = np.clip(np.searchsorted(names[order], labels), 0, len(names) - 1)
    numbers = order[place]
    known = names[numbers] == labels
    wrong = used & ~known
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(
            "y",
            rule=f"labels must lie in the class list {names.tolist()[:20]}",
            got=f"{labels[row]!r} in row {row}",
            fix="Pass classes=[...], or label a training node of that class, or take the node out of the masks.",
        )
    return torch.from_numpy(np.where(known & used, numbers, -1).astype(np.int64))


def _networkx_columns(graph: Any) -> dict[str, Any]:
    attributes = [graph.nodes[node] for node in graph.nodes]
    if not attributes or any("x" not in entry for entry in attributes):
        raise InputError("features", rule="every node needs an attribute 'x'", got="nodes without it", fix="Add it.")
    position = {node: row for row, node in enumerate(graph.nodes)}
    ends = [(position[first], position[second]) for first, second in graph.edges()]
    splits = [entry.get("split", "") for entry in attributes]
    has_split = any(splits)
    return {
        "features": np.stack([np.asarray(entry["x"], dtype=float) for entry in attributes]),
        "labels": np.asarray([entry.get("y", -1) for entry in attributes]),
        "edges": torch.tensor(ends, dtype=torch.int64).reshape(-1, 2).T,
        "train_mask": np.asarray([split == "train" for split in splits]) if has_split else None,
        "validation_mask": np.asarray([split == "val" for split in splits]) if has_split else None,
        "test_mask": np.asarray([split == "test" for split in splits]) if has_split else None,
    }
