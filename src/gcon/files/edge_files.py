"""The edges file -> private edges, batch by batch. No message holds an id, a row or a count from it.

Tables by their columns of ids; .npz with PyG's edge_index, or a sparse adjacency matrix as scipy saves it. What can be wrong has
fixed words, so that no message depends on an edge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import torch
from numpy.typing import NDArray

from gcon.edges.edge_list import CLEANED, EDGES, EdgeHygiene, EdgeList, public_edges, simple_undirected
from gcon.edges.store_format import SUFFIX
from gcon.errors import InputError, wants_memory
from gcon.files.array_files import load_archive
from gcon.files.edges import as_edge_index
from gcon.files.file_problems import (
    TABLES,
    TOO_LARGE,
    Problem,
    TooLargeError,
    check_file,
    listed,
    raise_problems,
    shortened,
)
from gcon.files.node_ids import NodeIds, as_node_ids, row_finder
from gcon.files.readers import pl
from gcon.files.store_files import open_store, store_chunks
from gcon.files.table_files import READ_ERRORS, open_table
from gcon.privacy.boundary import Private, without_frames

SUFFIXES = (*TABLES, ".npz", SUFFIX)
SPARSE = {"format", "shape", "data", "indices", "indptr", "row", "col", "offsets", "_is_array", "coords"}
# kind: (rule, what was found, the way out). {names} are columns of a real header or names that the caller gave.
KINDS = {
    "missing": ("every edge needs two ids", "a missing id or a blank line", "Complete or drop such edges."),
    "unknown": (
        "every end must be an id of the nodes file",
        "an id that is not there",
        "Add the missing nodes to the nodes file, or drop their edges.",
    ),
    "number": (
        "ids must be whole numbers, like those of the nodes file",
        "an id that is something else",
        "Write the ids the same way in both files.",
    ),
    "unreadable": (
        "must be readable to its end in the format of its ending",
        "a damaged or truncated file, a line with another number of fields, or text that is not UTF-8",
        "Write the file again, in UTF-8 and with two ids per line.",
    ),
    "memory": (
        "must fit into the memory that is left",
        "out of memory, or no thread left to read with",
        "Nothing is wrong with the file. Use a machine with more memory, or an edge store (gcon data convert --format csr).",
    ),
    "unpacked": (
        TOO_LARGE,
        "far more",
        "Save it uncompressed (numpy.savez), or as CSV.",
    ),
    "columns": (
        "needs two columns of ids, by name",
        "no usable column {names}",
        "Separate fields by commas, or by tabs in a .tsv. Name both columns (--source-column, --target-column), or say that "
        "there is no header (--no-header). In Python: source_column, target_column, header=False.",
    ),
    "repeated": ("every column needs a name of its own", "{names} more than once", "Rename or drop one of them."),
    "further": (
        "may hold two columns of ids and nothing else",
        "the further column {names}",
        "Drop it, or leave it unread, --ignore-column NAME (in Python ignore_columns=): weights and attributes are not used.",
    ),
    "ignored": ("ignore_columns must name columns of the file", "no column {names}", "Correct the names."),
    "two columns": (
        "without a header there must be exactly two columns, and none to ignore",
        "another number of columns, or ignore_columns",
        "Drop the other columns, or add a header.",
    ),
    "type": ("ids must be whole numbers or strings", "a column of another type", "Convert the ids."),
    "arrays": (
        "must hold edge_index, or a sparse matrix as scipy saves it",
        "the arrays {names}",
        "Save it with numpy.savez(path, edge_index=...) or scipy.sparse.save_npz.",
    ),
    "shape": ("edge_index must have two rows of whole numbers", "another shape or type", "Transpose a list of pairs."),
    "matrix": (
        "an adjacency matrix must have one row and one column per node",
        "another shape",
        "Use the order of the nodes file, and give the matrix its shape.",
    ),
    "row numbers": (
        "edge_index in .npz counts the rows of the nodes file from 0, so numeric node ids must be 0, 1, 2, ... too",
        "other node ids, which could be meant as well",
        "Use CSV or Parquet for edges between ids, or a sparse matrix for edges between rows.",
    ),
}


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

    Privacy:
        Reads the edges; the result is wrapped. Errors name kinds of problems, columns of a real header and nothing
        else from the file.
    """
    path, known = Path(path), ids if isinstance(ids, NodeIds) else as_node_ids(ids)
    if path.suffix.lower() == SUFFIX:
        store = open_store(path, ids=known)
        edges, hygiene = store.load(), store.hygiene
    else:
        names = {"source_column": source_column, "target_column": target_column}
        chunks = list(edge_chunks(path, ids=known, header=header, ignore_columns=ignore_columns, **names))
        dtype = np.int32 if all(chunk.dtype == np.int32 for chunk in chunks) else np.int64
        index = np.empty((2, sum(chunk.shape[1] for chunk in chunks)), dtype=dtype)
        start = 0
        chunks.reverse()
        while chunks:
            chunk = chunks.pop()  # let go once it is copied
            index[:, start : start + chunk.shape[1]] = chunk
            start += chunk.shape[1]
        edges, hygiene = simple_undirected(torch.from_numpy(index), len(known.column))
    return Private(edges, EDGES), Private(hygiene, CLEANED)


def read_public_edges(
    path: str | Path, *, ids: NodeIds | Sequence[object] | NDArray[Any], **options: Unpack[EdgeOptions]
) -> EdgeList:
    """Read edges that the caller declares public, for access='public-graph'.

    Args: those of `read_edges`.

    Privacy:
        Nothing is promised about these edges.
    """
    known = ids if isinstance(ids, NodeIds) else as_node_ids(ids)
    chunks = edge_chunks(Path(path), ids=known, **options)
    index = np.concatenate([np.empty((2, 0), dtype=np.int64), *chunks], axis=1, dtype=np.int64)
    return public_edges(torch.from_numpy(index), len(known))


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
    check_file(path, "edges", suffixes=SUFFIXES)
    if path.suffix.lower() == ".npz":
        yield from _arrays(path, ids=ids, ignored=ignore_columns)
        return
    table, kinds, find = None, set[str](), None if ids is None else row_finder(ids)
    try:
        table = open_table(path, header=header)
    except READ_ERRORS as error:
        kinds.add(_unreadable(error))
    if table is None:
        raise_problems([_problem(path, kind) for kind in kinds])

    # The two columns of ids. What is wrong with the columns is told at once, before a row is read.
    found, names = [name for name, _ in table.types], [source_column, target_column]
    if header or path.suffix.lower() == ".parquet":
        # The first line of a text file is only known to be a header if both names are in it.
        missing = [name for name in dict.fromkeys(names) if name not in found]
        if missing or source_column == target_column:
            raise_problems([_problem(path, "columns", names=missing or [source_column])])
        wrong = {
            "repeated": sorted(name for name, times in Counter(found).items() if times > 1),
            "further": [name for name in found if name not in (*names, *ignore_columns)],
            "ignored": [name for name in ignore_columns if name not in found],
        }
        problems = [_problem(path, kind, names=each) for kind, each in wrong.items() if each]
    else:
        names = found
        problems = [_problem(path, "two columns")] if len(names) != 2 or ignore_columns else []
    if not problems and not all(kind in ("numbers", "strings") for name, kind in table.types if name in names):
        problems = [_problem(path, "type")]
    if problems:
        raise_problems(problems)

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
                if find is not None:
                    rows, unfit = find(values)
                    kinds |= unfit
                    ends.append(rows)
            if find is not None and not kinds:
                yield np.stack(ends)
    except TooLargeError:
        kinds.add("unpacked")
    except READ_ERRORS as error:
        kinds.add(_unreadable(error))
    if kinds:
        raise_problems([_problem(path, kind) for kind in sorted(kinds)])


def _unreadable(error: BaseException) -> str:
    """The kind of problem that a reader had. What it says may hold ids: only the kind is kept."""
    return "memory" if wants_memory(error) else "unreadable"


def _arrays(path: Path, *, ids: NodeIds | None, ignored: Sequence[str]) -> list[NDArray[Any]]:
    """The ends as rows of the nodes file (bare and private!); an `InputError` with all that is wrong."""
    kind, names, entries = "", set[str](), list[NDArray[Any]]()
    try:
        index, matrix, listed = load_archive(path, ("edge_index",))
        names, fits = set(listed), ids is None or matrix is None or matrix.shape == (len(ids), len(ids))
        if matrix is not None and ids is not None and fits:
            entries = [as_edge_index(matrix, num_nodes=len(ids)).numpy()]
    except TooLargeError:
        kind = "unpacked"
    except Exception as error:
        kind = _unreadable(error)
    if kind or not names:
        raise_problems([_problem(path, kind or "unreadable")])
    if index is None and matrix is None:
        raise_problems([_problem(path, "arrays", names=sorted(names))])
    further = sorted(names - set(ignored) - (SPARSE if index is None else {"edge_index"}))
    problems = [_problem(path, "further", names=further)] if further else []
    if index is None:
        kind = "" if fits else "matrix"
    elif index.ndim != 2 or index.shape[0] != 2 or index.dtype.kind not in "iu":
        kind = "shape"
    elif ids is not None:
        entries = [index]
        if ids.column.dtype.is_integer() and not np.array_equal(ids.column.to_numpy(), np.arange(len(ids))):
            kind = "row numbers"
        elif index.size and (int(index.min()) < 0 or int(index.max()) >= len(ids)):
            kind = "unknown"
    problems += [_problem(path, kind)] if kind else []
    if problems:
        raise_problems(problems)
    return entries


def _problem(path: Path, kind: str, *, names: Sequence[str] = ()) -> Problem:
    """A problem of the edges file, in fixed words and public names."""
    rule, got, fix = KINDS[kind]
    return Problem("edges", path.name, rule, shortened(got.format(names=listed(names))), fix)
