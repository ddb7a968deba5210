"""Four denser real graphs, for measuring: friendships, streamers, photographers, products bought together.

They are read from `GCON_DATA/social/NAME.npz` and are no part of the package. `social/NAME` has few labels, 20 per class;
`social/NAME@many` has 60 % of the nodes labelled. Every run draws its own split.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcon.edges.graph import PrivateGraph, private_graph
from gcon.errors import InputError
from gcon.files.datasets.folders import DATA_VARIABLE
from gcon.files.splits import Split, per_class_split
from gcon.nodes import PublicNodes

FOLDER = "social"
MANY = "@many"
_TRAIN, _BEFORE_TEST = 0.6, 0.8  # of the nodes, with many labels
_VALIDATION, _TEST = 500, 2000
_ARRAYS = ("edges", "feature_values", "feature_columns", "feature_rows", "feature_shape", "labels")


@dataclass(frozen=True)
class Sizes:
    """What is published about a graph."""

    nodes: int
    edges: int
    features: int
    classes: int


_FILES = {
    "fb100-johns-hopkins": Sizes(4_425, 162_995, 244, 6),
    "twitch-de": Sizes(9_498, 153_138, 3_170, 2),
    "flickr-groups": Sizes(7_575, 239_738, 12_047, 9),
    "amazon-photo": Sizes(7_650, 119_081, 745, 8),
}
FEW_LABELS = {f"{FOLDER}/{name}": sizes for name, sizes in _FILES.items()}
MANY_LABELS = {f"{name}{MANY}": sizes for name, sizes in FEW_LABELS.items()}
SOCIAL = FEW_LABELS | MANY_LABELS


@dataclass(frozen=True, eq=False)
class SocialFile:
    """A file as it is: one column of edges per undirected edge, features as they were counted, labels from 0."""

    edges: Tensor
    features: Tensor
    labels: Tensor

    @property
    def sizes(self) -> Sizes:
        """What the file holds."""
        nodes, features = self.features.shape
        return Sizes(nodes, self.edges.shape[1], features, int(self.labels.max()) + 1)


def load_social(name: str, *, run: int) -> PrivateGraph:
    """The graph with the split of one run.

    Args:
        name: one of `SOCIAL`.
        run: the seed of the split.

    Raises:
        InputError: GCON_DATA is not set, or the file is missing or another one.

    Privacy:
        These graphs are in print; the wrapping makes experiments follow the rules of a private graph. They are records of real
        people without names: measure with them, and look at no single one.
    """
    wanted, path = SOCIAL[name], _path(name.removesuffix(MANY))
    found = read_social(path)
    if found.sizes != wanted:
        raise InputError(DATA_VARIABLE, rule=f"must hold {name} as {wanted}", got=found.sizes, fix=f"Replace {path}.")
    split = many_labels_split(len(found.labels), seed=run) if name.endswith(MANY) else _few(found.labels, run)
    nodes = PublicNodes(
        features=found.features,
        labels=found.labels,
        num_classes=wanted.classes,
        train_mask=split.train,
        validation_mask=split.validation,
        test_mask=split.test,
    )
    return private_graph(nodes, found.edges, name=name)


def check_social(name: str) -> None:
    """That the file of a social graph is there; other graphs are none of its business."""
    if name in SOCIAL and not (path := _path(name.removesuffix(MANY))).is_file():
        raise _missing(f"no file {path}")


def read_social(path: Path) -> SocialFile:
    """The arrays of a file: `edges`, CSR parts of the features, and `labels`. Pickles are refused."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            parts: dict[str, NDArray[Any]] = {name: arrays[name] for name in _ARRAYS}
        rows = scipy.sparse.csr_matrix(
            (parts["feature_values"], parts["feature_columns"], parts["feature_rows"]),
            shape=tuple(parts["feature_shape"]),
        )
    except FileNotFoundError as error:
        raise _missing(f"no file {path}") from error
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        rule = f"must hold a file {path.name} with the arrays {', '.join(_ARRAYS)}"
        raise InputError(DATA_VARIABLE, rule=rule, got=f"another one at {path}", fix="Copy it anew.") from error
    return SocialFile(
        edges=torch.from_numpy(parts["edges"].astype(np.int64)),
        features=torch.from_numpy(rows.astype(np.float32).toarray()),
        labels=torch.from_numpy(parts["labels"].astype(np.int64)),
    )


def many_labels_split(num_nodes: int, *, seed: int) -> Split:
    """All nodes in random order: the first 60 % train, the next 500 validate, and 2,000 of the last 20 % are the test."""
    order = torch.from_numpy(np.random.default_rng(seed).permutation(num_nodes))
    first, last = int(_TRAIN * num_nodes), int(_BEFORE_TEST * num_nodes)
    parts = order[:first], order[first : min(first + _VALIDATION, last)], order[last : last + _TEST]
    masks = [torch.zeros(num_nodes, dtype=torch.bool).index_fill_(0, part, True) for part in parts]
    return Split(*masks)


def _few(labels: Tensor, run: int) -> Split:
    return per_class_split(labels, seed=run, num_validation=_VALIDATION, num_test=_TEST)


def _path(name: str) -> Path:
    folder = os.environ.get(DATA_VARIABLE)
    if not folder:
        raise _missing(f"{DATA_VARIABLE} is not set")
    return Path(folder).expanduser() / f"{name}.npz"


def _missing(got: str) -> InputError:
    return InputError(
        DATA_VARIABLE,
        rule=f"must name a folder that holds {FOLDER}/NAME.npz",
        got=got,
        fix="The social graphs are no part of the package: put their files there, or leave these graphs out with --graphs.",
    )
