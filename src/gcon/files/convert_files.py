"""A pair of files in one format -> the same graph in another, all of it written or nothing.

Formats: csv, tsv and parquet have nodes.FORMAT and edges.FORMAT. npz has features.npz and edges.npz (a sparse adjacency
as scipy saves it, whose rows are those of the nodes file) beside a nodes.csv with ids, labels and splits. csr has
nodes.parquet, features.npy and the edge store edges.csr, for edges that do not fit in memory.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from gcon.edges.store_format import HEADER, SUFFIX
from gcon.errors import InputError
from gcon.files.edge_files import EdgeOptions, edge_chunks
from gcon.files.edge_store import MEMORY_BYTES, Step, build_store, check_memory, no_step, set_permissions
from gcon.files.file_problems import TABLES
from gcon.files.node_files import RawNodes, read_raw_nodes
from gcon.files.node_ids import NodeIds
from gcon.files.readers import pl, pyarrow
from gcon.files.table_files import BATCH, READ_ERRORS
from gcon.files.write_files import feature_columns, table_writer, write_frame
from gcon.privacy.boundary import without_frames
from gcon.writing import move_together, whole_file, work_folder

FORMATS = ("csv", "tsv", "parquet", "npz", "csr")
SAMPLE_BYTES = 2**20


@dataclass(frozen=True, kw_only=True)
class Conversion:
    """What was written, by what it is ("nodes", "features", "edges"), and whether text made the features narrower.

    Text is read as 32-bit numbers: features of 64 bits keep them in Parquet and npz only.
    """

    files: Mapping[str, Path]
    features_narrowed: bool


@without_frames
def convert_files(
    nodes: Path,
    edges: Path | None,
    *,
    out: Path,
    file_format: str,
    features: Path | None = None,
    drop: Sequence[str] = (),
    memory_bytes: int = MEMORY_BYTES,
    step: Step = no_step,
    **edge_options: Unpack[EdgeOptions],
) -> Conversion:
    """Write the same graph in another format into a folder.

    The work is done in a hidden folder there, readable by its owner only. A kill leaves it behind, and the same call removes it
    and starts again.

    Args:
        nodes: the nodes file. Ids, labels (also those outside the splits), splits and features are kept.
        edges: the edges file, streamed; every edge as it stands there, ids in the writing of the nodes file.
        out: an existing folder; an existing file is never replaced.
        file_format: one of `FORMATS`.
        features: an .npz or .npy beside the nodes file.
        drop: columns of the nodes file to leave out; all others beside id, label and split must hold numbers.
        memory_bytes: for sorting the edges of an edge store (csr); at least 4096.
        step: told what is being done for an edge store, and which share of it is.
        edge_options: how the edges file is written, as for `read_edges`.

    Privacy:
        No release: the owner's own edges, from one file of the owner into another one with the same permissions. They
        stay bare inside this module, nothing about them is returned, and errors name kinds of problems only. The budget
        that was spent on them stays spent: the ledger of the old file is the ledger of the new one.
    """
    check_memory(memory_bytes)
    targets = _targets(out, file_format, with_edges=edges is not None)
    table = read_raw_nodes(nodes, features_path=features, drop=drop)
    like = {"nodes": nodes, "features": features or nodes}
    with _refusals(), work_folder(targets["edges" if edges is not None else "nodes"]) as folder:
        written = {kind: folder / target.name for kind, target in targets.items()}
        if edges is not None:
            chunks = edge_chunks(edges, ids=table.ids, **edge_options)
            if file_format == "csr":
                expected = _expected_edges(edges)
                sorting: dict[str, Any] = {"memory_bytes": memory_bytes, "expected": expected, "step": step}
                build_store(chunks, written["edges"], num_nodes=len(table.ids), ids=table.ids, **sorting)
                set_permissions(written["edges"], _mode(edges))
            else:
                _write_edges(chunks, written["edges"], table.ids)
                written["edges"].chmod(_mode(edges))
        _write_nodes(table, written, like)
        _check_free(targets)
        move_together((path, targets[kind]) for kind, path in written.items())
    narrowed = file_format in ("csv", "tsv") and table.features.dtype == np.float64
    return Conversion(files=targets, features_narrowed=narrowed)


def _mode(path: Path) -> int:
    """The permissions of a file, or of the files of a store."""
    return stat.S_IMODE((path / HEADER if path.suffix.lower() == SUFFIX else path).stat().st_mode)


@contextmanager
def _refusals() -> Iterator[None]:
    """What the system refuses, as an `InputError`: the reason only, no path and no content."""
    try:
        yield
    except OSError as error:
        raise InputError(
            "out",
            rule="must take the files, and all files must be readable",
            got=error.strerror or type(error).__name__,
            fix="Check permissions and free space. Nothing was written.",
        ) from None


def _targets(out: Path, file_format: str, *, with_edges: bool) -> dict[str, Path]:
    """What will be written, by what it is; checked before anything is read."""
    if file_format not in FORMATS:
        raise InputError("format", rule=f"must be one of {', '.join(FORMATS)}", got=repr(file_format), fix="Use csv.")
    if not out.is_dir() or not os.access(out, os.W_OK):
        raise InputError("out", rule="must be an existing folder to write to", got=str(out), fix="Make it first.")
    names = {"nodes": f"nodes.{file_format}"}
    if file_format == "npz":
        names = {"nodes": "nodes.csv", "features": "features.npz"}
    if file_format == "csr":
        names = {"nodes": "nodes.parquet", "features": "features.npy"}
    if with_edges:
        names["edges"] = f"edges.{file_format}"
    targets = {kind: out / name for kind, name in names.items()}
    _check_free(targets)
    return targets


def _check_free(targets: Mapping[str, Path]) -> None:
    taken = [path.name for path in targets.values() if path.exists()]
    if taken:
        rule, fix = "may not hold these files yet", "Choose another folder, or move them away."
        raise InputError("out", rule=rule, got=", ".join(taken), fix=fix)


def _write_nodes(table: RawNodes, written: Mapping[str, Path], like: Mapping[str, Path]) -> None:
    """The public side; the features in a file of their own if there is one."""
    frame = pl.DataFrame({"id": table.ids.column, **table.texts})
    if "features" not in written:
        nested = written["nodes"].suffix == ".parquet"
        frame = frame.with_columns(feature_columns(table.features, table.feature_names, nested=nested))
    elif written["features"].suffix == ".npy":
        np.save(written["features"], table.features)
    else:
        np.savez_compressed(written["features"], features=table.features)
    write_frame(written["nodes"], frame)
    for kind in like.keys() & written.keys():
        written[kind].chmod(_mode(like[kind]))


def _write_edges(chunks: Iterator[NDArray[Any]], target: Path, ids: NodeIds) -> None:
    if target.suffix == ".npz":
        with whole_file(target) as file:
            scipy.sparse.save_npz(file, _matrix(chunks, len(ids)))
        return
    with table_writer(target) as append:
        for table in _tables(chunks, ids):
            append(table)


def _matrix(chunks: Iterator[NDArray[Any]], num_nodes: int) -> Any:
    """One entry per edge, repeats included: summed ones could overflow to 0, which means no edge."""
    dtype = np.int32 if num_nodes < 2**31 else np.int64
    parts = [np.empty((2, 0), dtype=dtype), *(chunk.astype(dtype, copy=False) for chunk in chunks)]
    row, column = (np.concatenate([part[end] for part in parts]) for end in (0, 1))
    return scipy.sparse.coo_array((np.ones(row.size, dtype=np.int8), (row, column)), shape=(num_nodes, num_nodes))


def _tables(chunks: Iterator[NDArray[Any]], ids: NodeIds) -> Iterator[pl.DataFrame]:
    """Ids of both ends, a bounded number of edges at a time; the first table is empty and names the columns."""
    names = ("source", "target")
    called = ids.column
    yield pl.DataFrame({name: called.clear() for name in names})
    for chunk in chunks:
        for start in range(0, chunk.shape[1], BATCH):
            ends = chunk[:, start : start + BATCH]
            yield pl.DataFrame({name: called.gather(rows) for name, rows in zip(names, ends, strict=True)})


def _expected_edges(path: Path) -> int | None:
    """About how many edges a table holds: from the length of its first lines, or as Parquet says; None if there is no telling."""
    if path.suffix.lower() not in TABLES:
        return None
    try:
        if path.suffix.lower() == ".parquet":
            with pyarrow.parquet.ParquetFile(path) as file:
                return int(file.metadata.num_rows)
        with path.open("rb") as file:
            sample = file.read(SAMPLE_BYTES)
        return int(os.path.getsize(path) * max(1, sample.count(b"\n")) / max(1, len(sample)))
    except READ_ERRORS:  # the reading itself will say what is wrong
        return None
