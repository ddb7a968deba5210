"""Tables -> files, at once or a batch of rows at a time, written whole or not at all."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gcon.errors import InputError
from gcon.files.file_problems import TABLES
from gcon.files.node_features import LIST_COLUMN
from gcon.files.node_ids import NodeIds, as_node_ids
from gcon.files.readers import pl, pyarrow
from gcon.files.table_files import SEPARATORS
from gcon.nodes import PublicNodes
from gcon.writing import OWNER_ONLY, whole_file

ROW_GROUP = 1_000_000


def write_nodes(
    path: str | Path, nodes: PublicNodes, *, ids: NodeIds | Sequence[object] | NDArray[Any] | None = None
) -> None:
    """Write public nodes: id, label, split and the features (columns in text files, a list column in Parquet).

    Args:
        path: ends in .csv, .tsv or .parquet; an existing file is replaced.
        nodes: the nodes. A label of -1 is written as empty.
        ids: what to call the nodes; by default 0, 1, 2, ...

    Privacy:
        Everything here is public.
    """
    target = checked_target(path)
    names = _ids(ids, nodes.num_nodes)
    split = np.full(nodes.num_nodes, "", dtype=object)
    for word, mask in (("train", nodes.train_mask), ("val", nodes.validation_mask), ("test", nodes.test_mask)):
        split[mask.numpy()] = word
    labels = [None if label < 0 else nodes.class_names[label] for label in nodes.labels.tolist()]
    parts = pl.Series(split.tolist(), dtype=pl.String).replace("", None)
    frame = pl.DataFrame({"id": names.column, "label": labels, "split": parts})
    nested = target.suffix.lower() == ".parquet"
    write_frame(target, frame.with_columns(feature_columns(nodes.features.numpy(), (), nested=nested)))


def feature_columns(features: NDArray[Any], names: Sequence[str], *, nested: bool) -> list[pl.Series]:
    """Features under their own names; those without as one column of lists if it may be nested, else as x0, x1, ..."""
    if not names and nested:
        return [pl.Series(LIST_COLUMN, features).cast(pl.List(pl.Series(features[:1, 0]).dtype))]
    names = names or [f"x{place}" for place in range(features.shape[1])]
    return [pl.Series(name, features[:, place]) for place, name in enumerate(names)]


def write_edges(
    path: str | Path,
    edge_index: Tensor,
    *,
    num_nodes: int,
    ids: NodeIds | Sequence[object] | NDArray[Any] | None = None,
) -> None:
    """Write edges that belong to no real people: columns source and target.

    Args:
        path: ends in .csv, .tsv or .parquet; an existing file is replaced.
        edge_index: 2 x k row numbers in [0, num_nodes).
        num_nodes: the number of nodes.
        ids: what the nodes are called; by default 0, 1, 2, ...

    Privacy:
        Takes a bare `edge_index`, which is public: synthetic edges, made from a seed. Private edges come wrapped and
        cannot be written.
    """
    target = checked_target(path)
    names = _ids(ids, num_nodes)
    ends = edge_index.numpy()
    if ends.ndim != 2 or ends.shape[0] != 2 or (ends.size and not 0 <= ends.min() <= ends.max() < num_nodes):
        rule = "must be a 2 x k matrix of row numbers below num_nodes"
        raise InputError("edge_index", rule=rule, got=f"shape {ends.shape}", fix="Pass a PyG edge_index.")
    called = names.column
    write_frame(target, pl.DataFrame({"source": called.gather(ends[0]), "target": called.gather(ends[1])}))


def write_frame(target: Path, frame: pl.DataFrame) -> None:
    """Write a table at once; an existing file is replaced."""
    with table_writer(target) as append:
        append(frame)


@contextmanager
def table_writer(target: Path, *, owner_only: bool = False) -> Iterator[Callable[[pl.DataFrame], None]]:
    """Gives a function that appends a batch of rows; the file is in its place when the block ends well, else nothing is.

    Args:
        target: a path that `checked_target` approved; its ending decides the format. An existing file is replaced.
        owner_only: readable by the file's owner only (mode 0600); otherwise the system's usual permissions.

    Raises:
        OSError: what the disk refuses to polars or pyarrow, as what it is.
    """
    separator, parquet = SEPARATORS.get(target.suffix.lower()), None
    with whole_file(target, mode=OWNER_ONLY if owner_only else None) as file, ExitStack() as until:

        def append(frame: pl.DataFrame) -> None:
            nonlocal parquet
            try:
                if separator is not None:
                    frame.write_csv(file, separator=separator, include_header=not file.tell())
                    return
                # Strings as every version of pyarrow can write and read them.
                table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
                if parquet is None:
                    parquet = until.enter_context(pyarrow.parquet.ParquetWriter(file, table.schema, compression="zstd"))
                parquet.write_table(table, row_group_size=ROW_GROUP)
            except (pl.exceptions.PolarsError, OSError) as error:
                told = re.search(r"\(os error (\d+)\)", str(error))
                if isinstance(error, OSError) and not told:
                    raise
                number = int(told[1]) if told else errno.EIO
                raise OSError(number, os.strerror(number)) from None

        yield append


def checked_target(path: str | Path, parameter: str = "path") -> Path:
    """The path, if a table can be written there; worth asking before anything is computed or recorded."""
    target = Path(path)
    if target.suffix.lower() not in TABLES:
        rule = f"must end in {', '.join(TABLES)}"
        raise InputError(parameter, rule=rule, got=repr(target.suffix), fix="The ending decides the format.")
    if not target.parent.is_dir():
        raise InputError(parameter, rule="the folder must exist", got=str(target.parent), fix="Make it first.")
    if target.is_dir():
        raise InputError(parameter, rule="must be a file", got=f"the folder {target}", fix="Choose another name.")
    return target


def _ids(ids: NodeIds | Sequence[object] | NDArray[Any] | None, num_nodes: int) -> NodeIds:
    if ids is None:
        ids = np.arange(num_nodes)
    names = ids if isinstance(ids, NodeIds) else as_node_ids(ids)
    if len(names) != num_nodes:
        raise InputError(
            "ids", rule=f"must name all {num_nodes} nodes", got=f"{len(names)} ids", fix="Pass one per node."
        )
    return names
