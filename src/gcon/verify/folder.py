"""A release folder as the verifier sees it: the model that the strict reader gives, and the documents as they lie there."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcon.methods.model import Model
from gcon.release.layout import NAMES, texts
from gcon.release.read import load_release

_TEXTS = ("README.md", "privacy.json", "privacy.md")


@dataclass(frozen=True, kw_only=True)
class Folder:
    """Everything that a verification may look at.

    Attributes:
        model: what `load_release` gave; sizes, checksums, types and shapes are checked there.
        document: `release.json`, parsed once more.
        texts: the bytes of the files that people read.
        others: what else lies in the folder, by name.
    """

    model: Model
    document: dict[str, Any]
    texts: dict[str, bytes]
    others: tuple[str, ...]

    @property
    def plan(self) -> dict[str, Any]:
        return dict(self.model.receipt.plan)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings, as `release.json` has them."""
        settings: dict[str, Any] = self.document["settings"]
        return settings


def read_folder(folder: str | os.PathLike[str]) -> Folder:
    """Read a release, or raise `ReleaseFormatError`.

    Privacy:
        Reads public files.
    """
    model = load_release(folder)
    path = Path(folder)
    return Folder(
        model=model,
        document=json.loads((path / "release.json").read_bytes()),
        texts={name: (path / name).read_bytes() for name in _TEXTS},
        others=tuple(sorted(each.name for each in path.iterdir() if each.name not in NAMES)),
    )


def expected_texts(model: Model) -> dict[str, bytes]:
    """What these files must say, from the receipt and the settings."""
    said = model.statement()
    statement = _strict({"sentences": list(said.sentences), "fields": said.fields})
    written = json.dumps(statement, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    return {**texts(model), "privacy.json": f"{written}\n".encode()}


def _strict(value: Any) -> Any:
    """Infinity as the word that stands for it in these files."""
    if isinstance(value, dict):
        return {key: _strict(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(entry) for entry in value]
    return "inf" if value == math.inf else value
