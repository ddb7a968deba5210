"""Reading the published graphs through PyG: quietly, offline, and with nothing written beside the data."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from torch import Tensor

from gcon.errors import InputError, MissingExtraError
from gcon.files.datasets.facts import DatasetFacts
from gcon.files.datasets.folders import cache_folder, find_raw
from gcon.files.splits import Split
from gcon.writing import whole_folder

Build = Callable[[type[Any], Path], Any]
"""Makes PyG's dataset from its class and a root folder, the one that holds `facts.folder`."""


@dataclass(frozen=True, eq=False)
class PublishedGraph:
    """A graph as PyG returns it: directions, loops and made-up labels included.

    Privacy:
        The edges are bare: these graphs are in print. They are wrapped by `load`.
    """

    features: Tensor
    labels: Tensor
    edge_index: Tensor
    split: Split | None


def read(
    facts: DatasetFacts,
    class_name: str,
    build: Build,
    *,
    folder: str | os.PathLike[str] | None = None,
    download: bool = False,
) -> PublishedGraph:
    """Read one dataset.

    Args:
        facts: the dataset.
        class_name: PyG's class for it.
        build: how to make an object of that class.
        folder: the data folder, by default GCON_DATA; only read.
        download: fetch the files into the cache when the folder does not have them; else stay offline.

    Privacy:
        Keeps downloaded graphs, edges included, in the cache folder. These are in print; a private graph of your own does not go
        through here.
    """
    kind = _pyg_class(class_name)
    with contextlib.ExitStack() as stack:
        try:
            raw = find_raw(facts, folder)
        except InputError:
            if not download:
                raise
            root = cache_folder() / "downloads" / facts.name
            if not root.is_dir():
                root = stack.enter_context(whole_folder(root, mode=0o700, keep_existing=True))
        else:  # PyG writes beside the raw files, so they are linked to where it may
            root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            (root / facts.folder).mkdir()
            (root / facts.folder / "raw").symlink_to(raw, target_is_directory=True)
            kind = type(f"Offline{kind.__name__}", (kind,), {"download": _refuse_download})
        stack.enter_context(_quiet())
        data = build(kind, root)[0]
    has_one_split = "train_mask" in data and data.train_mask.dim() == 1
    split = Split(data.train_mask, data.val_mask, data.test_mask) if has_one_split else None
    graph = PublishedGraph(data.x, data.y, data.edge_index, split)
    _check_published(facts, graph)
    return graph


def _pyg_class(class_name: str) -> type[Any]:
    try:
        with _quiet():
            importlib.import_module("torch_geometric")
            datasets = importlib.import_module("torch_geometric.datasets")
    except ModuleNotFoundError as error:
        if error.name != "torch_geometric":
            raise
        raise MissingExtraError("torch_geometric", extra="datasets") from error
    found: type[Any] = getattr(datasets, class_name)
    return found


def _refuse_download(dataset: object) -> NoReturn:
    raise InputError(
        "folder",
        rule="must hold all raw files while they are read",
        got="a folder without some of them",
        fix="Put them back; the network is used only with download=True.",
    )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """PyG prints its progress, uses a function that torch calls old, and changes the warning filters."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.filterwarnings("ignore", r"`torch\.jit\.script` is deprecated", DeprecationWarning)
        yield


def _check_published(facts: DatasetFacts, graph: PublishedGraph) -> None:
    published = (facts.num_nodes, facts.num_features, facts.num_classes)
    found = (*graph.features.shape, int(graph.labels.max()) + 1)
    if found != published:
        raise InputError(
            "folder",
            rule=f"must hold {facts.title} as published, with nodes, features and classes {published}",
            got=found,
            fix=f"Take the files from {facts.source}.",
        )
