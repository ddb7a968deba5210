"""Results on disk: one Parquet file per finished unit, written whole or not at all; any tool that reads Parquet can ask it.

polars.scan_parquet("OUT/store/grid-*.parquet").filter(polars.col("graph") == "cora-ml")
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from gcon.writing import UNFINISHED, whole_file


class ResultStore:
    """Finished units in a folder.

    Example:
        >>> import tempfile
        >>> store = ResultStore(Path(tempfile.mkdtemp()))
        >>> store.write("unit", pl.DataFrame({"test": [0.5]}))
        >>> store.has("unit"), store.read(["unit", "another"]).height
        (True, 1)
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def has(self, name: str) -> bool:
        return self._path(name).exists()

    def write(self, name: str, results: pl.DataFrame) -> None:
        with whole_file(self._path(name)) as file:
            results.write_parquet(file, statistics=False)

    def read(self, names: Iterable[str]) -> pl.DataFrame:
        """The finished ones of these units, one below the other."""
        paths = [self._path(name) for name in names if self.has(name)]
        return pl.concat([pl.read_parquet(path) for path in paths]) if paths else pl.DataFrame()

    def tidy(self) -> None:
        """Remove what a killed run left half written. Not while another run writes here."""
        for path in self._folder.glob(UNFINISHED):
            path.unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.parquet"
