"""Results on disk: one small JSON file per finished unit of work, written whole or not at all, so work can resume."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gcon.writing import write_whole


class UnitStore:
    """Finished units of an experiment in a folder.

    Example:
        >>> import tempfile
        >>> store = UnitStore(Path(tempfile.mkdtemp()))
        >>> store.write("run-0", {"score": 0.5})
        >>> store.read("run-0")
        {'score': 0.5}
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def read(self, name: str) -> Any | None:
        """The unit of this name, or None if it is not finished (a damaged file counts as unfinished)."""
        try:
            return json.loads((self._folder / f"{name}.json").read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def write(self, name: str, content: Any) -> None:
        write_whole(self._folder / f"{name}.json", json.dumps(content))
