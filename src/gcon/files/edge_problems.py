"""The kinds of problems that an edges file can have: fixed words, so that no message depends on an edge."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gcon.errors import wants_memory
from gcon.files.array_files import TOO_LARGE
from gcon.files.file_problems import Problem, listed, shortened

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


def unreadable(error: BaseException) -> str:
    """The kind of problem that a reader had. What it says may hold ids: only the kind is kept."""
    return "memory" if wants_memory(error) else "unreadable"


def edge_problem(path: Path, kind: str, *, names: Sequence[str] = ()) -> Problem:
    """A problem of the edges file, in fixed words and public names."""
    rule, got, fix = KINDS[kind]
    return Problem("edges", path.name, rule, shortened(got.format(names=listed(names))), fix)
