"""A pair of files -> nodes.parquet, features.npy and an edge store, for graphs whose edges do not fit in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from gcon.files.edge_files import SUFFIXES, edge_chunks
from gcon.files.edge_store import MEMORY_BYTES, build_store, work_folder
from gcon.files.file_problems import TABLES, Problem, file_problem, raise_problems
from gcon.files.node_ids import NodeIds
from gcon.files.sort_progress import SortProgress, Step, no_step
from gcon.files.store_files import ids_fingerprint, is_store, open_store
from gcon.files.table_files import read_errors

SAMPLE_BYTES = 2**20


def edges_identity(edges: Path, ids: NodeIds, options: Mapping[str, Any]) -> dict[str, object]:
    """What tells this input and these settings from others, for going on after a kill."""
    wrong = None if is_store(edges) else file_problem(edges, "edges", suffixes=SUFFIXES)
    if wrong is not None:
        raise_problems([wrong])
    if is_store(edges):
        open_store(edges, ids=ids)  # or a refusal
    found = edges.stat()
    return {
        "name": edges.name,
        "size": found.st_size,
        "modified": found.st_mtime_ns,
        "node_ids": ids_fingerprint(ids),
        "options": {name: list(value) if isinstance(value, list | tuple) else value for name, value in options.items()},
    }


def convert_to_store(
    edges: Path,
    folder: Path,
    progress: SortProgress,
    *,
    ids: NodeIds,
    options: Mapping[str, Any],
    memory_bytes: int = MEMORY_BYTES,
    step: Step = no_step,
) -> Path:
    """Make the store of an edges file in a workplace.

    Privacy:
        The edges stay bare inside; errors name kinds of problems only.
    """

    def chunks() -> Iterator[NDArray[Any]]:
        problems: list[Problem] = []
        yield from edge_chunks(edges, problems, ids=ids, **options)
        if problems:
            raise_problems(problems)

    return build_store(
        chunks,
        folder,
        progress,
        num_nodes=len(ids),
        ids=ids,
        memory_bytes=memory_bytes,
        expected=None if progress.merging else expected_edges(edges),
        step=step,
    )


def expected_edges(path: Path) -> int | None:
    """About how many edges a table holds: from the length of its first lines, or as Parquet says; None if nobody knows."""
    if path.suffix.lower() not in TABLES:
        return None
    try:
        if path.suffix.lower() == ".parquet":
            import pyarrow.parquet  # type: ignore[import-untyped]

            with pyarrow.parquet.ParquetFile(path) as file:
                return int(file.metadata.num_rows)
        with path.open("rb") as file:
            sample = file.read(SAMPLE_BYTES)
        return int(os.path.getsize(path) * max(1, sample.count(b"\n")) / max(1, len(sample)))
    except read_errors():  # the reading itself will say what is wrong
        return None


def store_workplace(out: Path) -> Path:
    """The hidden folder beside the store to be."""
    return work_folder(out / "edges.csr")
