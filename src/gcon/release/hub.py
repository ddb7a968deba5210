"""A released model as a folder for a model hub: the card with the hub's metadata on top, the release untouched below.

| file       | holds                                                                                     |
|------------|-------------------------------------------------------------------------------------------|
| `README.md`| the model card; at its head what hubs sort by, and the licence if one was chosen          |
| `release/` | what `save_release` writes: its checksums cover its own card, so that no line of it changes |
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from gcon.errors import InputError
from gcon.methods.model import Model
from gcon.release.layout import texts
from gcon.release.store import save_release
from gcon.writing import whole_folder

RELEASE_FOLDER = "release"


def save_for_hub(model: Model, folder: str | os.PathLike[str], *, licence: str | None = None) -> None:
    """Write a folder that can be uploaded as it is, all of it or nothing.

    Args:
        model: the released model.
        folder: where to; must not exist yet.
        licence: an identifier that the hub knows, such as `apache-2.0` or `cc-by-4.0`; None leaves the choice to the hub.

    Privacy:
        Writes what `save_release` writes, and words: all of it is public.
    """
    folder = Path(folder).absolute()
    if licence is not None and re.fullmatch(r"[a-z0-9][a-z0-9.+-]{0,60}", licence) is None:
        rule, fix = "must be an identifier of a hub: small letters, digits, dots, dashes", "For example apache-2.0."
        raise InputError("licence", rule=rule, got=repr(licence[:80]), fix=fix)
    if os.path.lexists(folder):
        raise InputError("folder", rule="must not exist yet", got=f"'{folder}', which does", fix="Choose another name.")
    with whole_folder(folder) as new:
        save_release(model, new / RELEASE_FOLDER)
        (new / "README.md").write_bytes(_card(model, licence).encode())


def _card(model: Model, licence: str | None) -> str:
    """The card of the release with more at its head, and with the place of the release in its example."""
    first = "library_name: gcon\n"
    more = "pipeline_tag: graph-ml\n" + ("" if licence is None else f"license: {licence}\n")
    card = texts(model)["README.md"].decode().replace(first, first + more, 1)
    return card.replace('"path/to/this/folder"', f'"path/to/this/folder/{RELEASE_FOLDER}"')
