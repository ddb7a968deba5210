"""Public labels and masks, as users pass them: one label per node, the list of classes, and which nodes count."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcon.errors import InputError


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


def unlabelled(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Which labels say that there is none: -1 as in scikit-learn's semi-supervised models, None, NaN, and pandas's NA."""

    def missing(label: Any) -> bool:
        return label is None or type(label).__name__ in ("NAType", "NaTType") or bool(label == -1 or label != label)

    return np.fromiter((missing(label) for label in labels.tolist()), dtype=bool, count=len(labels))


def labelled_mask(mask: Any, name: str, labels: NDArray[Any], *, default: bool, split: int | None = None) -> Tensor:
    """One boolean per node; a chosen node without a label is refused.

    Args:
        mask: one boolean per node, or several columns of them, or the numbers of the chosen rows, each once. None: all nodes
            that have a label, or no node.
        name: of the parameter, for messages.
        labels: one per node.
        default: whether it is all of them, where there is no mask.
        split: which column, if there are several.
    """
    known = torch.from_numpy(~unlabelled(labels))
    if mask is None:
        return known if default else torch.zeros_like(known)
    given, num_nodes, chosen = as_tensor(mask), len(labels), None
    if given is not None and given.dtype == torch.bool:
        if tuple(given.shape) == (num_nodes,):
            chosen = given
        elif given.dim() == 2 and len(given) == num_nodes:
            chosen = given[:, _checked_split(split, name, int(given.shape[1]))]
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
            got=f"{labels.tolist()[lost[0]]!r} in row {lost[0]}",
            fix="Label the node, or take it out of the mask.",
        )
    return chosen


def _checked_split(split: Any, name: str, count: int) -> int:
    if isinstance(split, int | np.integer) and not isinstance(split, bool) and 0 <= split < count:
        return int(split)
    raise InputError(
        "split",
        rule=f"must choose one of the {count} columns of {name}, 0 to {count - 1}",
        got=repr(split),
        fix="Pass split=0, for example.",
    )


def class_list(labelled: NDArray[Any], classes: Any, *, gaps: bool) -> list[object]:
    """The classes that were named, or those that occur.

    Args:
        labelled: the labels of training nodes.
        classes: the list of names, or None.
        gaps: whole numbers are fractions only because there are gaps among all labels.
    """
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


def as_tensor(values: Any) -> Tensor | None:
    """A dense tensor that may share memory with what was passed (nothing here writes to it); None if not numbers."""
    if isinstance(values, Tensor):
        return values.detach().cpu().to_dense()
    try:
        return torch.from_numpy(np.require(values, requirements=["C", "W"]))
    except (TypeError, ValueError):
        return None
