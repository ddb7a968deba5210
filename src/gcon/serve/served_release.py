"""What a service holds: a release ready to answer, the public node table, and private edges behind their gate.

Everything that reads no edge is computed when a release is taken in. A new release takes the place of the old one as a whole:
whoever is being answered keeps the old one to the end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcon.columns import FeatureColumns, same_features
from gcon.edges.edge_list import EdgeList, public_edges
from gcon.edges.stored import StoredEdges
from gcon.errors import AccessRefusedError, InputError, ReleaseFormatError
from gcon.methods.model import Model, Scorer
from gcon.methods.record import RELEASE
from gcon.nodes import PublicNodes
from gcon.privacy.gates import OwnerAnswers
from gcon.release.layout import NAMES
from gcon.release.read import load_release

RowEdges = EdgeList | StoredEdges
Signature = tuple[int, ...]
Shares = NDArray[np.float64]  # probabilities of the classes


@dataclass(frozen=True, eq=False, kw_only=True)
class NodeTable:
    """Public nodes by their ids.

    Attributes:
        rows: the row of every id.
        features: one row per node.
        nodes: the same with labels and splits, where the table has them: for the page about the model.
        feature_columns: what was done with its columns to get the features; None if they were numbers.
    """

    rows: Mapping[str, int]
    features: Tensor
    nodes: PublicNodes | None = None
    feature_columns: FeatureColumns | None = None


class ServedRelease:
    """One release, ready to answer.

    Args:
        model: the released model.
        release: the beginning of its checksum.
        table: the public node table, if the service has one.
        owners: the gate to private edges, if the service has any; their nodes are those of the table.
    """

    def __init__(
        self,
        model: Model,
        release: str,
        *,
        table: NodeTable | None = None,
        owners: OwnerAnswers[RowEdges] | None = None,
    ) -> None:
        self.model, self.release, self.table, self.owners = model, release, table, owners
        if len({str(name) for name in model.class_names}) < len(model.class_names):
            rule, fix = "must have class names that differ as text", "Train with other names."
            raise InputError("release", rule=rule, got="two that do not", fix=fix)
        self._scorer: Scorer = model.scorer()
        self.num_features = model.encoder.num_features
        if table is not None:
            if not same_features(table.feature_columns, model.feature_columns):
                rule, fix = "must treat the columns of the node table as before", "Start the service again with it."
                raise InputError("release", rule=rule, got="other columns or categories", fix=fix)
            model.encoder.check(table.features)
            self._alone = self._scorer.start(table.features, "none")
            self._start = self._scorer.start(table.features, "own-edges")
            self._of_one = self._scorer.own_edges_of_one(self._start)
            for kind in (np.int32, np.int64):  # kernels are compiled now, and not while the first person waits
                self._of_one(0, np.zeros(1, dtype=kind))

    def without_edges(self, person: int | Tensor) -> Shares:
        """Access `none`: a row of the table, or features."""
        start = (
            self._alone[person : person + 1] if isinstance(person, int) else self._scorer.start(person[None], "none")
        )
        return _shares(self._scorer.probabilities(self._scorer.without_edges(start)))

    def from_rows(self, rows: Sequence[int]) -> Shares:
        """Access `own-edges`, from people that she named: rows of the table, herself first."""
        return self._of_one(rows[0], np.array(rows[1:], dtype=np.int64))

    def from_people(self, people: Sequence[int | Tensor]) -> Shares:
        """Access `own-edges`, from what she sent: herself first, everybody as a row of the table or as features."""
        sent = self._scorer.start(torch.stack([each for each in people if isinstance(each, Tensor)]), "own-edges")
        encoded = iter(sent)
        start = torch.stack([next(encoded) if isinstance(each, Tensor) else self._start[each] for each in people])
        others = torch.arange(1, len(people))
        star = public_edges(torch.stack([torch.zeros_like(others), others]), len(people))
        return _shares(self._scorer.probabilities(self._scorer.own_edges(start, star)[:1]))

    def for_owner(self, row: int, owner: str) -> Shares:
        """Access `own-edges`, from the private row of a node. Who asks must have been checked before.

        Privacy:
            Through the gate: logged first, and computed from the edges of this node alone.
        """
        if self.owners is None:
            raise AccessRefusedError("This service holds no edges.")
        return self.owners.answer(lambda edges: self._of_one(row, edges.neighbour_array(row)), owner=owner)


def _shares(probabilities: Tensor) -> Shares:
    found: Shares = probabilities[0].to(torch.float64).numpy()
    return found


def read_served_release(
    folder: Path, *, table: NodeTable | None = None, owners: OwnerAnswers[RowEdges] | None = None
) -> tuple[ServedRelease, Signature]:
    """Take in the release that is in a folder now, and what tells it from the next one there."""
    for _ in range(3):  # the folder may be exchanged while it is read
        before = signature(folder)
        model = load_release(folder)
        try:
            content = (folder / RELEASE).read_bytes()
        except OSError:
            continue
        if signature(folder) == before:
            release = hashlib.sha256(content).hexdigest()[:16]
            return ServedRelease(model, release, table=table, owners=owners), before
    raise ReleaseFormatError(f"folder: '{folder}' changes while it is read. Put a new release in its place at once.")


def signature(folder: Path) -> Signature:
    """Tells what is in a folder from what comes next: of every file of a release its number, size and time of change."""
    found: list[int] = []
    for name in NAMES:
        try:
            facts = (folder / name).stat()
        except OSError:
            continue
        found += [len(name), facts.st_ino, facts.st_size, facts.st_mtime_ns]
    return tuple(found)


def known_row(table: NodeTable | None, node: str) -> int:
    """The row of a public id."""
    if table is None:
        raise InputError(
            "id",
            rule="needs a service with a node table",
            got="none here",
            fix="Send features, or start it with --nodes.",
        )
    row = table.rows.get(node)
    if row is None:
        raise InputError("id", rule="must be in the service's node table", got=repr(node[:60]), fix="Check the id.")
    return row
