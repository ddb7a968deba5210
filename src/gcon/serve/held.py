"""What a service holds: a release ready to answer, the public node table, and private edges behind their gate.

Everything that reads no edge is computed when a release is taken in. A new release takes the place of the old one as a whole:
whoever is being answered keeps the old one to the end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from gcon.errors import InputError, ReleaseFormatError
from gcon.graphs.edges import EdgeList, public_edges
from gcon.graphs.nodes import PublicNodes
from gcon.graphs.source import RowBlock
from gcon.graphs.stored import StoredEdges
from gcon.predict.predictions import Predictions
from gcon.predict.scored import predictions_from
from gcon.predict.scorers import Scorer, scorer_of
from gcon.release.gate import OwnerAnswers
from gcon.release.published import PublishedModel
from gcon.release.read import load_release
from gcon.release.strict import RELEASE

RowEdges = EdgeList | StoredEdges
Signature = tuple[int, int, int]


@dataclass(frozen=True, eq=False, kw_only=True)
class NodeTable:
    """Public nodes by their ids.

    Attributes:
        rows: the row of every id.
        features: one row a node.
        nodes: the same with labels and splits, where the table has them: for the page about the model.
    """

    rows: Mapping[str, int]
    features: Tensor
    nodes: PublicNodes | None = None


class Held:
    """One release, ready to answer.

    Args:
        model: the released model.
        release: the beginning of its checksum.
        table: the public node table, if the service has one.
        owners: the gate to private edges, if the service has any; their nodes are those of the table.
    """

    def __init__(
        self,
        model: PublishedModel,
        release: str,
        *,
        table: NodeTable | None = None,
        owners: OwnerAnswers[RowEdges] | None = None,
    ) -> None:
        self.model, self.release, self.table, self.owners = model, release, table, owners
        self._scorer: Scorer = scorer_of(model)
        self._none: Tensor | None = None
        if table is not None:
            model.encoder.check(table.features)
            self._start = self._scorer.start(table.features, "own-edges")
            self._block_scores: Callable[[RowBlock], Tensor] = self._scorer.own_edges_of_block(self._start)
            self._none = self._scorer.start(table.features, "none")
            for kind in (torch.int32, torch.int64):  # kernels are compiled now, and not while the first person waits
                self._answer_block(_block(0, torch.zeros(1, dtype=kind), len(self._start)))

    def without_edges(self, *, row: int | None = None, features: Tensor | None = None) -> Predictions:
        """Access `none`: from a row of the table, or from features."""
        known = row is not None and self._none is not None
        start = self._none[row : row + 1] if known else self._start_of(features, "none")  # type: ignore[index, operator]
        return predictions_from(self.model, self._scorer, self._scorer.without_edges(start), access="none")

    def from_rows(self, row: int, neighbours: Sequence[int]) -> Predictions:
        """Access `own-edges`, from neighbours that she named: rows of the table."""
        columns = torch.tensor(sorted(neighbours), dtype=torch.int64)
        return self._answer_block(_block(row, columns, len(self._start)))

    def from_features(self, people: Sequence[int | Tensor]) -> Predictions:
        """Access `own-edges`, from what she sent: herself first, everybody as a row of the table or as features."""
        sent = [person for person in people if isinstance(person, Tensor)]
        encoded = iter(self._start_of(torch.stack(sent), "own-edges") if sent else ())
        start = torch.stack([next(encoded) if isinstance(each, Tensor) else self._start[each] for each in people])
        others = torch.arange(1, len(people))
        star = public_edges(torch.stack([torch.zeros_like(others), others]), len(people))
        scores = self._scorer.own_edges(start, star)[:1]
        return predictions_from(self.model, self._scorer, scores, access="own-edges")

    def for_owner(self, row: int, owner: str) -> Predictions:
        """Access `own-edges`, from the private row of a node. Who asks must have been checked before.

        Privacy:
            Through the gate: logged first, and computed from the edges of this node alone.
        """
        assert self.owners is not None
        return self.owners.answer(lambda edges: self._answer_block(edges.block(slice(row, row + 1))), owner=owner)

    def _answer_block(self, block: RowBlock) -> Predictions:
        return predictions_from(self.model, self._scorer, self._block_scores(block), access="own-edges")

    def _start_of(self, features: Tensor | None, access: str) -> Tensor:
        assert features is not None
        rows = features.reshape(-1, features.shape[-1])
        self.model.encoder.check(rows)
        return self._scorer.start(rows, "none" if access == "none" else "own-edges")


def _block(row: int, columns: Tensor, num_nodes: int) -> RowBlock:
    return RowBlock(slice(row, row + 1), torch.tensor([0, len(columns)]), columns, num_nodes)


def read_held(
    folder: Path, *, table: NodeTable | None = None, owners: OwnerAnswers[RowEdges] | None = None
) -> tuple[Held, Signature]:
    """Take in the release that is in a folder now, and what tells it from the next one there."""
    for _ in range(3):  # the folder may be exchanged while it is read
        before = signature(folder)
        model = load_release(folder)
        content = (folder / RELEASE).read_bytes()
        if signature(folder) == before:
            release = hashlib.sha256(content).hexdigest()[:16]
            return Held(model, release, table=table, owners=owners), before
    raise ReleaseFormatError(f"folder: '{folder}' changes while it is read. Put a new release in its place at once.")


def signature(folder: Path) -> Signature:
    """Tells one release in a folder from the next: of release.json the number, size and time of change."""
    try:
        facts = (folder / RELEASE).stat()
    except OSError:
        raise ReleaseFormatError(f"{RELEASE}: is missing in '{folder}'. Check the path.") from None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


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
