"""Public nodes: features, labels and splits, checked when they are made. No edge comes near this module.

Tables too large for memory are read a batch of rows at a time; the features of many nodes may lie on disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.util import find_spec
from itertools import combinations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcon.columns import FeatureColumns
from gcon.errors import AnswersWarning, InputError, warn_caller

BATCH_ROWS = 65_536
BATCH_ENTRIES = 2**23
MOST_SCALES = 1000
FEWEST_SCORED = 20  # nodes: fewer say nothing about a model
# Digests that are kept, the smallest ones: of larger tables they are a sample, the same for every part of the table.
MOST_DIGESTS = 2**20
_SHARES_SLACK, _ROUNDING = 0.02, 1e-9  # people round shares; and numbers their sum
_LEAST_SHARE = 1e-6
_NAMED = 12  # classes in a message
_RECOGNISED = 0.1  # of the rows: so many are no coincidence
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_TOGETHER = 8  # rows


def features_fingerprint(table: Tensor | PublicNodes) -> str:
    """A checksum of public features (their shape and values as float32): tells whether two node tables are the same one."""
    features = table.features if isinstance(table, PublicNodes) else table
    digest = hashlib.sha256(str(tuple(features.shape)).encode())
    for rows in row_slices(features.shape[0], width=features.shape[-1]):
        digest.update(features[rows].detach().cpu().float().contiguous().numpy().tobytes())
    return digest.hexdigest()


@dataclass(frozen=True, eq=False, kw_only=True)
class PublicNodes:
    """The public side of a graph.

    Attributes:
        features: n x k finite numbers; they may lie in a file (a memory map), and nobody writes to them.
        labels: n class numbers in [0, num_classes); rows outside all masks are never read and may hold -1.
        num_classes: the public number of classes, at least two.
        train_mask: the labelled nodes.
        validation_mask: nodes whose labels may be used for choices (may be empty).
        test_mask: nodes whose labels are used for scores only (may be empty).
        class_names: what the class numbers stand for.
        class_shares: how common each class is among all nodes, where that is known; they add to 1. None: the labels tell.
        feature_columns: what was done with the columns of a table to get the features; None if they came as numbers.
        num_nodes: the public number of nodes, n.
        fingerprint: the checksum of the features, made once.

    Privacy:
        Everything here is public.
    """

    features: Tensor
    labels: Tensor
    num_classes: int
    train_mask: Tensor
    validation_mask: Tensor
    test_mask: Tensor
    class_names: tuple[object, ...] = ()
    class_shares: tuple[float, ...] | None = None
    feature_columns: FeatureColumns | None = None
    num_nodes: int = field(init=False)
    fingerprint = cached_property(features_fingerprint)

    def __post_init__(self) -> None:
        check_features(self.features)
        num_nodes = len(self.features)
        object.__setattr__(self, "num_nodes", num_nodes)
        masks = {name: getattr(self, name) for name in ("train_mask", "validation_mask", "test_mask")}
        for name, mask in masks.items():
            if mask.dtype != torch.bool or tuple(mask.shape) != (num_nodes,):
                rule = f"must hold one boolean per node ({num_nodes})"
                got = f"{mask.dtype} of shape {tuple(mask.shape)}"
                raise InputError(name, rule=rule, got=got, fix="Pass a boolean vector.")
        for first, second in combinations(masks, 2):
            shared = int((masks[first] & masks[second]).sum())
            if shared:
                fix = "Give every node to one part of the split at most."
                raise InputError(f"{first}, {second}", rule="must not overlap", got=f"{shared} shared nodes", fix=fix)
        if not bool(self.train_mask.any()):
            rule = "needs at least one labelled node"
            raise InputError("train_mask", rule=rule, got="an empty mask", fix="Label some nodes.")
        if self.num_classes < 2:
            got = f"{self.num_classes} class{'es' if self.num_classes != 1 else ''}"
            fix = "With one class there is nothing to learn."
            raise InputError("labels", rule="need at least two classes", got=got, fix=fix)
        labels = self.labels
        if tuple(labels.shape) != (num_nodes,) or labels.is_floating_point() or labels.dtype == torch.bool:
            rule = f"must hold one class number per node ({num_nodes})"
            got = f"{labels.dtype} of shape {tuple(labels.shape)}"
            fix = "Number the classes from 0; put -1 where the label is unknown."
            raise InputError("labels", rule=rule, got=got, fix=fix)
        used = self.train_mask | self.validation_mask | self.test_mask
        wrong = used & ((labels < 0) | (labels >= self.num_classes))
        if bool(wrong.any()):
            row = int(wrong.nonzero()[0])
            rule = f"must lie in the class list 0..{self.num_classes - 1} for every node in a mask"
            fix = "Correct the label, or take the node out of the masks."
            raise InputError("labels", rule=rule, got=f"{int(labels[row])} in row {row}", fix=fix)
        if not self.class_names:
            object.__setattr__(self, "class_names", tuple(range(self.num_classes)))
        if self.class_shares is not None:
            object.__setattr__(self, "class_shares", checked_shares(self.class_shares, self.num_classes))

    def __repr__(self) -> str:
        width = self.features.shape[1]
        masks = (("train", self.train_mask), ("validation", self.validation_mask), ("test", self.test_mask))
        parts = ", ".join(f"{int(mask.sum())} {name}" for name, mask in masks)
        return f"PublicNodes({self.num_nodes} nodes, {width} features, {self.num_classes} classes: {parts})"


def checked_shares(shares: Sequence[float], num_classes: int) -> tuple[float, ...]:
    """Class shares that add to 1; else `InputError`."""
    try:
        given = [float(share) for share in shares]
    except (TypeError, ValueError):
        given = []
    total = sum(given)
    if len(given) != num_classes or not all(share >= _LEAST_SHARE for share in given) or abs(total - 1) > _SHARES_SLACK:
        rule = f"must hold one share of at least {_LEAST_SHARE:g} for each of the {num_classes} classes, together 1"
        got = f"{len(given)} shares, together {total:g}"
        raise InputError("class_shares", rule=rule, got=got, fix="Rough ones will do, for example 0.6 and 0.4.")
    # A second look must find what the first one did: shares that add to 1 but for rounding stay as they are.
    return tuple(given) if abs(total - 1) < _ROUNDING else tuple(share / total for share in given)


def shares_in_order(shares: Mapping[Any, float], class_names: Sequence[object]) -> tuple[float, ...]:
    """The shares of named classes in the order of these names; files write all names as words."""
    known, given = [str(name) for name in class_names], {}
    if isinstance(shares, Mapping):
        given = {str(name): share for name, share in shares.items()}
    if not given or len(given) < len(shares) or len(set(known)) < len(known) or set(given) != set(known):
        names = ", ".join(known[:_NAMED]) + (", ..." if len(known) > _NAMED else "")
        got = ", ".join(sorted(given)[:_NAMED]) or type(shares).__name__
        rule, fix = f"must be a share for every class by its name: {names}", "Name all of them once, and no others."
        raise InputError("class_shares", rule=rule, got=got, fix=fix)
    return tuple(given[name] for name in known)


def known_rows(features: Tensor, *, repeated: bool = False) -> Tensor:
    """The sum of all rows' digests, then the digests of rows that occur once, rising: int64, at most 2^20 and one.

    By these short digests a model recognises parts and other orders of the table that it was trained on. They are there against
    mistakes: a table with every feature moved a little is not recognised. A row that many nodes share says nothing.

    A digest is one number, made of a row's values as float32 (as the table's checksum has them): its words go, one after the
    other, through the finaliser of splitmix64. Batches of rows take turns on all threads; numba, where it is, makes this loop
    three times as fast.

    Args:
        features: public.
        repeated: instead, the digests of all rows, however many these are: what a table is compared by.
    """
    num_rows, width = features.shape

    def digested(rows: slice) -> NDArray[np.int64]:
        values = features[rows].detach().cpu().float().add(0.0).contiguous().numpy()  # -0 becomes 0
        state = np.full(len(values), width, dtype=np.uint64)
        _mixer()(values.view(np.uint32), state)
        return state.view(np.int64)

    with ThreadPoolExecutor(torch.get_num_threads()) as threads:
        parts = list(threads.map(digested, row_slices(num_rows, width=width)))
    digests: NDArray[np.int64] = np.concatenate([np.empty(0, dtype=np.int64), *parts])
    total = digests.sum(dtype=np.int64)  # wraps, in any order to the same
    if not repeated:
        different, counts = np.unique(digests, return_counts=True)
        digests = different[counts == 1][:MOST_DIGESTS]
    return torch.from_numpy(np.concatenate([[total], digests]))


def mix_words(words: NDArray[np.uint32], state: NDArray[np.uint64]) -> None:
    """Take the words of every row into its state, one after the other. Rows of an array, or one row after the other compiled."""
    for word in words.T:
        state += _STEP
        state ^= word
        state ^= state >> np.uint64(30)
        state *= _FIRST
        state ^= state >> np.uint64(27)
        state *= _SECOND
        state ^= state >> np.uint64(31)


def _mix_words_in_loops(words: NDArray[np.uint32], state: NDArray[np.uint64]) -> None:
    for first in range(0, len(words), _TOGETHER):
        last = min(first + _TOGETHER, len(words))
        for place in range(words.shape[1]):
            for row in range(first, last):  # of several rows at once: each waits for its own last word
                mixed = (state[row] + _STEP) ^ np.uint64(words[row, place])
                mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
                mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
                state[row] = mixed ^ (mixed >> np.uint64(31))


@cache
def _mixer() -> Callable[[NDArray[np.uint32], NDArray[np.uint64]], None]:
    """The faster of the two that is there."""
    if find_spec("numba") is None:
        return mix_words
    from numba import njit

    compiled: Callable[[NDArray[np.uint32], NDArray[np.uint64]], None] = njit(nogil=True, cache=True)(
        _mix_words_in_loops
    )
    return compiled


def recognises(known: Tensor, features: Tensor) -> bool:
    """Whether a table is the known one in another order, or has a tenth of its rows from there."""
    given, kept = known_rows(features, repeated=True).numpy(), known[1:].numpy()
    digests = given[1:]
    if int(given[0]) == int(known[0]) and len(digests):
        return True
    if len(kept) == MOST_DIGESTS:
        digests = digests[digests <= kept[-1]]
    if not len(digests) or not len(kept):
        return False
    found = kept[np.minimum(np.searchsorted(kept, digests), len(kept) - 1)] == digests
    return bool(found.mean() >= _RECOGNISED)


def nothing_known() -> Tensor:
    """Of a model that was made by hand."""
    return torch.zeros(1, dtype=torch.int64)


def check_features(features: Tensor) -> None:
    """Features must be a matrix of finite numbers with at least one column and one row."""
    if features.dim() != 2:
        raise InputError(
            "features", rule="must be a matrix", got=f"{features.dim()} dimensions", fix="One row per node."
        )
    if features.shape[0] == 0:
        raise InputError("features", rule="needs at least one node", got="no rows", fix="Pass the public node table.")
    if features.shape[1] == 0:
        raise InputError(
            "features",
            rule="needs at least one column",
            got="zero width",
            fix="Without any features, pass one constant column or an edge-free embedding.",
        )
    for rows in row_slices(features.shape[0], width=features.shape[1]):
        if not all(
            torch.isfinite(extreme) for extreme in features[rows].aminmax()
        ):  # far faster than to ask all numbers
            row = rows.start + int((~torch.isfinite(features[rows]).all(dim=1)).nonzero()[0])
            raise InputError(
                "features",
                rule="must be finite",
                got=f"NaN or infinity in row {row}",
                fix="Fill in or drop such values.",
            )


def warn_of_scales(nodes: PublicNodes) -> None:
    """Warn before training if the largest numbers of the columns differ by more than 1000 times.

    Features are taken as they are: a rule that scaled them for everybody would spoil bags of words, where a rare word must not
    count more than a frequent one.
    """
    slices = row_slices(nodes.num_nodes, width=nodes.features.shape[1])
    reach = torch.stack([nodes.features[rows].float().abs().amax(dim=0) for rows in slices]).amax(dim=0)
    largest = int(reach.argmax())
    small = ((reach > 0) & (reach < reach[largest] / MOST_SCALES)).nonzero()[:, 0].tolist()
    if not small:
        return
    columns = nodes.feature_columns
    names = [f"column {place}" for place in range(len(reach))] if columns is None else columns.feature_names
    shown = ", ".join(f"{names[place]!a:.80} {reach[place]:.3g}" for place in small[:3])
    more = f" and {len(small) - 3} more" if len(small) > 3 else ""
    warn_caller(
        f"features: columns should differ in scale by at most {MOST_SCALES} times, or the small ones will hardly count. "
        f"{names[largest]!a:.80} reaches {reach[largest]:.3g}, but {shown}{more}. Divide each column by its largest number in "
        "the training table, in all tables alike, or drop what is no feature.",
        AnswersWarning,
    )


def row_slices(num_rows: int, batch_rows: int | None = None, *, width: int = 1) -> Iterator[slice]:
    """Consecutive slices that cover all rows, of `BATCH_ROWS` unless told; fewer where rows are wide.

    The width is for passes that look at every number and keep none.
    """
    rows = max(min(batch_rows or BATCH_ROWS, BATCH_ENTRIES // max(width, 1)), 1)
    return (slice(start, min(start + rows, num_rows)) for start in range(0, num_rows, rows))
