"""Predictions -> a table in a file that says who may see it, a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gcon.errors import InputError, PrivateComputationError
from gcon.files.node_ids import NodeIds
from gcon.files.readers import pl
from gcon.files.write_files import checked_target, table_writer
from gcon.methods.predictions import Predictions, audience_of

Ids = NodeIds | Sequence[object]


def write_predictions(path: str | Path, ids: Ids, predictions: Predictions) -> None:
    """Write id, label, `probability_CLASS` for every class, and `audience` (who may see it), row by row.

    Args:
        path: ends in .csv, .tsv or .parquet.
        ids: one per node, in row order.
        predictions: what to write.

    Privacy:
        A table that may not be published is readable by its owner only (mode 0600).
    """
    with prediction_writer(path, ids, owner_only=not predictions.publishable) as write:
        write(predictions)


@contextmanager
def prediction_writer(path: str | Path, ids: Ids, *, owner_only: bool) -> Iterator[Callable[[Predictions], None]]:
    """Gives a function that appends the predictions of the next nodes to such a table.

    The file is in its place when the block ends well and every node has its row; otherwise nothing is.

    Args:
        path: ends in .csv, .tsv or .parquet.
        ids: one per node, in row order.
        owner_only: nobody but the file's owner may read it (mode 0600): for all that may not be published.

    Raises:
        OSError: the disk refuses. That is no secret: it is told as what it is, also where a gate that answers owners has put a
            fixed error in its place.
    """
    if isinstance(ids, NodeIds):
        names = ids.column.alias("id")
    elif isinstance(ids, range):
        names = pl.int_range(ids.start, ids.stop, ids.step, eager=True).alias("id")
    else:
        names = pl.Series("id", list(ids))
    written, refused = 0, None

    def write(predictions: Predictions) -> None:
        nonlocal written, refused
        size, audience = len(predictions.classes), audience_of(predictions.access, predictions.no_promise)
        if not owner_only and audience != "public":
            raise ValueError("these predictions may not be published")
        labels = pl.Series([str(name) for name in predictions.class_names], dtype=pl.String)
        columns = [names.slice(written, size), labels.gather(predictions.classes.numpy()).alias("label")]
        for number, name in enumerate(predictions.class_names):
            columns.append(pl.Series(f"probability_{name}", predictions.probabilities[:, number].numpy()))
        columns.append(pl.repeat(audience, size, dtype=pl.String, eager=True).alias("audience"))
        written += size
        if written > len(names):
            raise other_count()
        try:
            append(pl.DataFrame(columns))
        except OSError as error:
            refused = OSError(error.errno, error.strerror, error.filename)
            raise

    def other_count() -> InputError:  # a new one: what is raised in a gate keeps frames with opened edges
        return InputError("ids", rule="one a prediction", got=len(names), fix="Pass the ids of the same graph.")

    try:
        with table_writer(checked_target(path), owner_only=owner_only) as append:
            yield write
            if written != len(names):
                raise other_count()
    except PrivateComputationError:
        if refused is not None:
            raise refused from None
        raise
