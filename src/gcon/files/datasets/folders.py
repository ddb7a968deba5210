"""Where raw files are read, and where downloaded ones are kept."""

from __future__ import annotations

import os
from pathlib import Path

from gcon.errors import InputError
from gcon.files.datasets.facts import DatasetFacts

DATA_VARIABLE = "GCON_DATA"
CACHE_VARIABLE = "GCON_CACHE"
_WAY_OUT = f"Set {DATA_VARIABLE} to the folder of the raw files, pass folder=, or pass download=True."


def find_raw(facts: DatasetFacts, folder: str | os.PathLike[str] | None) -> Path:
    """The folder with the raw files of a dataset.

    Args:
        facts: the dataset.
        folder: the data folder, with one sub-folder per dataset; by default the environment variable GCON_DATA.

    Raises:
        InputError: no folder was named, or a raw file is not there.
    """
    parameter, given = "folder", folder
    if given is None:
        parameter, given = DATA_VARIABLE, os.environ.get(DATA_VARIABLE) or None
    if given is None:
        raise InputError(
            "folder",
            rule=f"must name the folder that holds {facts.folder}/raw",
            got=f"no folder, and {DATA_VARIABLE} is not set",
            fix=_WAY_OUT,
        )
    raw = (Path(given).expanduser() / facts.folder / "raw").resolve()
    for file in facts.raw_files:
        if not (raw / file).is_file():
            raise InputError(
                parameter,
                rule=f"must hold every raw file of {facts.title} ({facts.source})",
                got=f"a folder {raw} without {file}",
                fix=_WAY_OUT,
            )
    return raw


def cache_folder() -> Path:
    """The folder for downloaded files, made if need be.

    GCON_CACHE, else `gcon` in XDG_CACHE_HOME, else `.cache/gcon` in the home folder.
    """
    named = os.environ.get(CACHE_VARIABLE)
    shared = os.environ.get("XDG_CACHE_HOME")
    try:
        base = Path(shared) if shared else Path.home() / ".cache"
        folder = Path(named).expanduser() if named else base / "gcon"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        raise InputError(
            CACHE_VARIABLE,
            rule="must name a folder that can be written, for downloaded files",
            got=named or "none, and the default cannot be made",
            fix=f"Set {CACHE_VARIABLE} to a folder of your own.",
        ) from error
    return folder.resolve()
