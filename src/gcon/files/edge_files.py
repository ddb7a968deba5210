"""The edges file -> private edges, batch by batch. No message holds an id, a row or a count from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import torch
from numpy.typing import NDArray

from gcon.edges.edge_list import EdgeHygiene, EdgeList, simple_undirected
from gcon.edges.store_format import SUFFIX
from gcon.errors import InputError
from gcon.files.array_files import TooLargeError
from gcon.files.edge_arrays import scan_arrays
from gcon.files.edge_problems import edge_problem, unreadable
from gcon.files.file_problems import TABLES, Problem, file_problem, raise_problems, require_readers
from gcon.files.node_ids import IdLookup, NodeIds, as_node_ids
from gcon.files.store_files import open_store, store_chunks
from gcon.files.table_files import TableFile, read_errors
from gcon.privacy.boundary import Private
from gcon.privacy.frames import without_frames

SUFFIXES = (*TABLES, ".npz", SUFFIX)


class EdgeOptions(TypedDict, total=False):
    """How to read an edges file: see `read_edges`."""

    source_column: str
    target_column: str
    header: bool
    ignore_columns: Sequence[str]


@without_frames
def read_edges(
    path: str | Path,
    *,
    ids: NodeIds | Sequence[object] | NDArray[Any],
    source_column: str = "source",
    target_column: str = "target",
    header: bool = True,
    ignore_columns: Sequence[str] = (),
) -> tuple[Private[EdgeList], Private[EdgeHygiene]]:
    """Read private edges from CSV, TSV, Parquet, .npz or an edge store, all of them into memory, but not the whole table.

    Args:
        path: the file; its ending decides the format. An .npz holds `edge_index` (2 x k row numbers of the nodes
            file, from 0) or a sparse matrix as scipy saves it, whose values count as present or absent. An edge store
            (.csr) is a folder that `gcon data convert` wrote; to leave it on disk, see `gcon.edges.stored`.
        ids: the node ids in row order, from `read_nodes`. If they are numbers, the ids of this file are read as
            whole numbers; if they are strings, as strings.
        source_column: the column with one end of each edge.
        target_column: the column with the other end.
        header: whether a text file starts with column names; without, it has exactly two columns.
        ignore_columns: further columns to leave out; any other further column is refused.

    Raises:
        InputError: the file breaks the format; says what kinds of problems there are.
        MissingExtraError: polars or pyarrow is not installed.

    Privacy:
        Reads the edges; the result is wrapped. Errors name kinds of problems, columns of a real header and nothing
        else from the file.
    """
    options: EdgeOptions = {"source_column": source_column, "target_column": target_column}
    options |= {"header": header, "ignore_columns": ignore_columns}
    edges, hygiene = _read(Path(path), ids, **options)
    return Private(edges, "edges of a simple undirected graph"), Private(hygiene, "counts of cleaned edges")


def read_public_edges(
    path: str | Path, *, ids: NodeIds | Sequence[object] | NDArray[Any], **options: Unpack[EdgeOptions]
) -> EdgeList:
    """Read edges that the caller declares public, for access='public-graph'.

    Args: those of `read_edges`.

    Privacy:
        Nothing is promised about these edges.
    """
    return _read(Path(path), ids, **options)[0]


def problems_of_edges(path: Path, *, ids: NodeIds | None, **options: Unpack[EdgeOptions]) -> list[Any]:
    """All that is wrong with an edges file, or the first thing in an edge store, read to the last byte.

    Without ids the format alone is checked.
    """
    try:
        if path.suffix.lower() == SUFFIX:
            open_store(path, ids=ids).verify()
        else:
            for _ in edge_chunks(path, ids=ids, **options):
                pass
    except InputError as error:
        return list(error.problems) or [Problem("edges", path.name, error.rule, str(error.got), error.fix)]
    return []


def edge_chunks(
    path: Path,
    *,
    ids: NodeIds | None,
    source_column: str = "source",
    target_column: str = "target",
    header: bool = True,
    ignore_columns: Sequence[str] = (),
) -> Iterator[NDArray[Any]]:
    """The ends as rows of the nodes file (bare and private!), 2 x k at a time.

    After a problem reading goes on to find the other kinds, but gives no more chunks; all are raised at the end. The chunks
    before are worth nothing then.
    """
    if path.suffix.lower() == SUFFIX:
        yield from store_chunks(path, ids=ids)
        return
    wrong = file_problem(path, "edges", suffixes=SUFFIXES)
    if wrong is not None:
        raise_problems([wrong])
    if path.suffix.lower() == ".npz":
        chunks, problems = scan_arrays(path, ids=ids, ignored=ignore_columns)
        yield from chunks
        if problems:
            raise_problems(problems)
        return
    import polars as pl

    table, names = _table(path, (source_column, target_column), header=header, ignored=ignore_columns)
    lookup, kinds = None if ids is None else IdLookup(ids), set[str]()
    try:
        for batch in table.batches(names):
            ends = []
            for column in batch.iter_columns():
                whole = column.dtype.is_integer()
                values = column if whole else column.cast(pl.String)  # categories too
                lost = values.is_null() if whole else values.fill_null("") == ""
                if lost.any():
                    kinds.add("missing")
                    values = values.filter(~lost)
                if lookup is not None:
                    rows, unfit = lookup.rows(values)
                    kinds |= unfit
                    ends.append(rows)
            if lookup is not None and not kinds:
                yield np.stack(ends)
    except TooLargeError:
        kinds.add("unpacked")
    except read_errors() as error:
        kinds.add(unreadable(error))
    if kinds:
        raise_problems([edge_problem(path, kind) for kind in sorted(kinds)])


def _table(
    path: Path, wanted: tuple[str, str], *, header: bool, ignored: Sequence[str]
) -> tuple[TableFile, Sequence[str]]:
    """The table and the names of its two id columns; an `InputError` with all that is wrong with its columns."""
    table, kind = None, ""
    try:
        table = TableFile(path, header=header)
    except read_errors() as error:
        kind = unreadable(error)
    if table is None:
        raise_problems([edge_problem(path, kind)])
    found = names = [name for name, _ in table.types]
    problems: list[Problem] = []
    if header or path.suffix.lower() == ".parquet":
        # The first line of a text file is only known to be a header if both names are in it.
        missing = [name for name in dict.fromkeys(wanted) if name not in found]
        if missing or wanted[0] == wanted[1]:
            raise_problems([edge_problem(path, "columns", names=missing or [wanted[0]])])
        names = list(wanted)
        told = {
            "repeated": sorted(name for name, times in Counter(found).items() if times > 1),
            "further": [name for name in found if name not in (*wanted, *ignored)],
            "ignored": [name for name in ignored if name not in found],
        }
        problems += [edge_problem(path, kind, names=listed) for kind, listed in told.items() if listed]
    elif len(names) != 2 or ignored:
        problems.append(edge_problem(path, "two columns"))
    if not problems and not all(kind in ("numbers", "strings") for name, kind in table.types if name in names):
        problems.append(edge_problem(path, "type"))
    if problems:
        raise_problems(problems)
    return table, names


def _read(
    path: Path, ids: NodeIds | Sequence[object] | NDArray[Any], **options: Unpack[EdgeOptions]
) -> tuple[EdgeList, EdgeHygiene]:
    """All edges in memory (bare and private!), and what cleaning removed."""
    require_readers()
    known = as_node_ids(ids)
    if path.suffix.lower() == SUFFIX:
        store = open_store(path, ids=known)
        return store.load(), store.hygiene
    chunks = list(edge_chunks(path, ids=known, **options))
    dtype = np.int32 if all(chunk.dtype == np.int32 for chunk in chunks) else np.int64
    index = np.empty((2, sum(chunk.shape[1] for chunk in chunks)), dtype=dtype)
    start = 0
    chunks.reverse()
    while chunks:
        chunk = chunks.pop()  # let go once it is copied
        index[:, start : start + chunk.shape[1]] = chunk
        start += chunk.shape[1]
    return simple_undirected(torch.from_numpy(index), len(known))
