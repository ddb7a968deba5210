"""One function for all published graphs."""

from __future__ import annotations

import os
from collections.abc import Callable

from gcon.edges.graph import PrivateGraph
from gcon.errors import InputError
from gcon.files.datasets import actor, cora_ml, planetoid
from gcon.files.datasets.facts import facts_of

_LOADERS: dict[str, Callable[..., PrivateGraph]] = {
    "cora-ml": cora_ml.load,
    "citeseer": planetoid.load,
    "pubmed": planetoid.load,
    "actor": actor.load,
    "cora": planetoid.load,
}


def load(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    split: int = 0,
    download: bool = False,
) -> PrivateGraph:
    """Load a published graph, with its edges treated as private.

    Needs the extra `datasets` (PyG). PyG's processed files go to the cache folder: GCON_CACHE, else `gcon` in
    XDG_CACHE_HOME, else `.cache/gcon` in the home folder. The data folder is only read.

    Args:
        name: one of `names()`; capitals and hyphen or underscore do not matter.
        folder: the data folder, with one sub-folder a dataset; by default the environment variable GCON_DATA.
        split: 0 is the paper's split (the public one of CiteSeer, PubMed and Cora; the reference split of
            Cora-ML; the first of Actor's five); k >= 1 is a random split of the same kind, drawn with seed k.
        download: fetch the raw files into the cache when the folder does not have them; once is enough, later
            calls with download=True find them there. Without it the network is never touched.

    Raises:
        InputError: the name is unknown, the split is not a whole number from 0, or raw files are missing.
        MissingExtraError: PyG is not installed.

    Privacy:
        Features, labels and splits are public; the edges come wrapped in `Private`. The edges of these graphs
        are in print: the wrapping makes experiments follow the rules of a private graph, it hides nothing.
    """
    facts = facts_of(name)
    if isinstance(split, bool) or not isinstance(split, int) or split < 0:
        raise InputError(
            "split",
            rule="must be a whole number from 0",
            got=repr(split),
            fix="0 is the paper's split, k >= 1 the random split with seed k.",
        )
    return _LOADERS[facts.name](facts, folder=folder, split=split, download=download)
