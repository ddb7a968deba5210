"""What a node's neighbours say about it, and what its owner makes of that: two ways, with one pass over her edges.

Every node *says* public numbers, and the owner of a node adds up what her neighbours say. Neighbours with a public label say it.

- *Evidence*, where no counts were released: every neighbour sends the logarithm of how likely her answer is under each class of
  the receiver, given how often edges stay inside a class. Messages are bounded, because answers of neighbours err together. Where
  friends are alike, the mean answer of the neighbourhood counts as one more witness.
- *Counts*, where they were: the regressions that were taught on noisy counts are asked at her exact ones and at what these say
  about each class, by the codes that were counted and, unless the classes moved far since, by those that the published answers
  give; the mean answer around her, over
  what edges lead to on average, counts as much as the counts taught. Where published answers are weak, messages add up as well,
  less what edges say anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

from gcon.edges.kernels.multiply import kernel_for
from gcon.edges.schemes import Schemes, propagate
from gcon.edges.source import Edges, RowBlock
from gcon.errors import InputError
from gcon.learn.after_counts import SHARES_SCALE
from gcon.learn.believed_counts import LEAST_ANSWER, LEAST_DEGREE, LEAST_EVIDENCE
from gcon.nodes import row_slices

LOUDEST = 1.0  # the largest message, in units of log-probability
_SMALLEST = 1e-4
_TELLING = 0.1  # homophily must be so far from chance, on a scale where 1 is perfect, to tell anything
_OWN_WEIGHT = 0.2  # of a node itself in the mean answer of its neighbourhood
_FAR = Schemes(0.1, (10,))
# A node's answer, its neighbours' messages and their mean err together: their sum is too sure of itself. Classes stay the same.
_TRUST = 0.4
_USUAL_NEIGHBOURS = 2.0  # added to every neighbourhood: few neighbours say little about the mean
_GRID = 2.0**24  # scores are whole numbers of 1/this
_PIECE_ROWS = 1024  # nodes whose scores are made at a time
_SAID_BYTES = 2**30  # of what all say together at a time, unless the columns of one class table take more
_RARE = 0.02  # added to shares of classes before their logarithm is taken

Numbers = NDArray[np.float64]


class Rows(Protocol):
    """One row per node, float64: a matrix, or what makes rows of one as they are asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, places: slice | Tensor) -> Tensor: ...


class Way(Protocol):
    """How an owner's scores follow from what her neighbours say; small, and reads no edge itself.

    Scores are made by NumPy: for one row, as a service asks, a call of torch takes several times as long as its work.
    """

    def rows(self, answers: Tensor) -> Tensor:
        """What is known of nodes of which nothing but an answer is known: the rows that the others take, float64."""

    def said(self, rows: Tensor) -> Tensor:
        """What nodes say, numbers from -1 to 1; no column if they say nothing. Rows as `scores` takes them."""

    def scores(self, rows: Numbers, sums: Numbers, degrees: Numbers) -> Numbers:
        """Log-scores of nodes from their own rows, and from the sums of what so many neighbours say; degrees are n x 1."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """Messages that add up. Rows are n x 2 c: answers, and answers with public labels.

    Attributes:
        homophily: the share of edges inside a class.
        shares: of the classes among all nodes.
    """

    homophily: float
    shares: Tensor

    def rows(self, answers: Tensor) -> Tensor:
        return torch.cat([answers, answers], dim=1).double()

    def said(self, rows: Tensor) -> Tensor:
        """Messages, and answers where friends are alike."""
        classes = rows.shape[1] // 2
        lean, answers = above_chance(self.homophily, classes), rows[:, classes:]
        if abs(lean) < _TELLING:
            return answers[:, :0]
        told = messages(answers, self.homophily, self.shares)
        return torch.cat([told, answers], dim=1) if lean >= 0 else told

    def scores(self, rows: Numbers, sums: Numbers, degrees: Numbers) -> Numbers:
        """The own answer, the messages of neighbours, and the mean answer around."""
        classes = rows.shape[1] // 2
        own = rows[:, :classes]
        scores: Numbers = np.log(np.maximum(own, _SMALLEST))
        if sums.shape[1] == 0:
            return scores
        scores += sums[:, :classes]
        if sums.shape[1] > classes:
            around = (1 - _OWN_WEIGHT) / (degrees + 1) * (sums[:, classes:] + own)
            around += _OWN_WEIGHT * own
            scores += np.log(np.maximum(around, _SMALLEST))
        scores *= _TRUST
        return scores


@dataclass(frozen=True, eq=False, kw_only=True)
class ExactCounts:
    """Regressions on counts. Rows are n x 4 c: the start, codes, later codes, and published answers with public labels.

    Attributes:
        table: regressions that released counts taught (`CountModel.tables`), side by side: (5 c + 1) x (regressions c).
        weights: of the regressions.
        proportions: c x c: of the codes among the neighbours of a class.
        crowding: c: the variance of a count over its mean.
        edge_shares, edge_messages: the mean answer and the mean message over the ends of edges: what edges say anyway.
        shares: of the classes among all nodes.
        homophily: the share of edges inside a class.
        lean: the weight of the mean answer around a node.
        voice: the weight of every neighbour's message; 0 if they send none.
        share_counted: of the nodes: what a code weighs.
    """

    table: Numbers
    weights: Numbers
    proportions: Numbers
    crowding: Numbers
    edge_shares: Tensor
    edge_messages: Tensor
    shares: Tensor
    homophily: float
    lean: float
    voice: float
    share_counted: float = 1.0

    def rows(self, answers: Tensor) -> Tensor:
        """Answers, and the code that they give."""
        coded = self.share_counted * one_hot(answers.argmax(dim=1), answers.shape[1]).double()
        return torch.cat([answers, coded, coded, answers], dim=1).double()

    def said(self, rows: Tensor) -> Tensor:
        """Codes, later codes and published answers; messages, where they are heard."""
        classes = rows.shape[1] // 4
        if self.voice == 0:
            return rows[:, classes:]
        told = messages(rows[:, -classes:], self.homophily, self.shares) - self.edge_messages
        return torch.cat([rows[:, classes:], told / 2], dim=1)  # halves: numbers stay below 1

    def scores(self, rows: Numbers, sums: Numbers, degrees: Numbers) -> Numbers:
        """What regressions say at exact counts, the mean answer around, and the messages."""
        classes = rows.shape[1] // 4
        # `CountModel.answers` at two kinds of counts per node, n x 2 x c, in one product.
        counts = np.maximum(sums[:, : 2 * classes].reshape(-1, 2, classes), 0.0)
        totals = counts.sum(axis=2, keepdims=True)
        # `CountBelief.of` without noise: counts x are normal around d p with variance v d p. Squares of x - d p multiplied out,
        # without what is the same for all classes, are two products.
        degree = np.maximum(totals, LEAST_DEGREE)
        varies = np.minimum(self.crowding, degree)
        told = (counts * counts / (varies * degree)) @ (1 / self.proportions).T
        told += (degree / varies) @ self.proportions.T + np.log(self.proportions).sum(axis=1)
        told = (told.min(axis=2, keepdims=True) - told) / 2
        told -= np.log(np.exp(told).sum(axis=2, keepdims=True))
        inputs = np.empty((*counts.shape[:2], len(self.table)))
        ways = inputs[..., :-1].reshape(*counts.shape[:2], 5, -1)
        ways[:, :, 0] = np.log(np.maximum(rows[:, :classes], LEAST_ANSWER))[:, None]
        ways[:, :, 1] = counts
        np.log1p(counts, out=ways[:, :, 2])
        np.multiply(SHARES_SCALE / (totals + 1), counts, out=ways[:, :, 3])
        np.maximum(told, LEAST_EVIDENCE, out=ways[:, :, 4])
        inputs[..., -1] = 1.0
        raised = (inputs.reshape(-1, inputs.shape[2]) @ self.table).reshape(*counts.shape[:2], -1, classes)
        raised -= raised.max(axis=3, keepdims=True)
        np.exp(raised, out=raised)
        raised *= self.weights[:, None] / raised.sum(axis=3, keepdims=True)
        asked = np.log(np.maximum(raised.sum(axis=2), _SMALLEST))
        usual = self.edge_shares.numpy()
        around = (sums[:, 2 * classes : 3 * classes] + _USUAL_NEIGHBOURS * usual) / (degrees + _USUAL_NEIGHBOURS)
        scores: Numbers = (asked[:, 0] + asked[:, 1]) / 2 + self.lean * np.log((around + _RARE) / (usual + _RARE))
        return scores if self.voice == 0 else scores + 2 * self.voice * sums[:, 3 * classes :]


@dataclass(frozen=True, eq=False, kw_only=True)
class PublishedAnswers:
    """Own edges add nothing: rows are n x c, the published answers."""

    def rows(self, answers: Tensor) -> Tensor:
        return answers.double()

    def said(self, rows: Tensor) -> Tensor:
        return rows[:, :0]

    def scores(self, rows: Numbers, sums: Numbers, degrees: Numbers) -> Numbers:
        scores: Numbers = np.log(np.maximum(rows, _SMALLEST))
        return scores


def messages(answers: Tensor, homophily: float, shares: Tensor | None = None) -> Tensor:
    """Log-likelihoods of the receiver's class, centred and bounded; one row per sender.

    Args:
        answers: class probabilities of the senders.
        homophily: the share of edges inside a class.
        shares: of the classes among all nodes; None for those of the answers.
    """
    classes = answers.shape[1]
    apart = (1 - homophily) / (classes - 1)
    likelihood = answers / (answers.mean(dim=0) if shares is None else shares).clamp_min(_SMALLEST)
    likelihood = apart * likelihood.sum(dim=1, keepdim=True) + (homophily - apart) * likelihood
    said = (likelihood / likelihood.sum(dim=1, keepdim=True)).clamp_min(_SMALLEST).log()
    said = said - said.mean(dim=1, keepdim=True)
    return LOUDEST * torch.tanh(said / LOUDEST)


def scores_with_own_edges(
    way: Way, rows: Rows, edges: Edges, num_classes: int, *, asked: Tensor | None = None
) -> Tensor:
    """Log-scores of every node, or of some, in one pass over the edges; in a few, some columns each, where nodes are many.

    What neighbours say is added up in fixed point, with a unit that depends on the number of nodes alone: sums are exact, the
    same in any order and on any machine, and no other row has a say in them. Only sums and degrees come from the blocks of the
    edges. Scores are made of them here, in one process and in the same pieces whatever the blocks are: logarithms and matrix
    products have other last bits on other processors, and at other places.

    Args:
        way: what owners make of it.
        rows: one per node, public, float64.
        edges: of all nodes.
        num_classes: columns of the scores.
        asked: a public mask of the nodes that scores are wanted for; None for all.

    Privacy:
        Works on opened edges, inside a gate; row i reads the edges of node i only.
    """
    if len(rows) != edges.num_nodes:
        rule = f"must have one row per node ({edges.num_nodes})"
        raise InputError("features", rule=rule, got=len(rows), fix="Pass all nodes.")
    num_nodes, width = len(rows), way.said(rows[:1]).shape[1]
    own = rows[:] if asked is None else rows[asked]
    asked = torch.ones(num_nodes, dtype=torch.bool) if asked is None else asked
    heard = torch.empty(len(own), width + 1, dtype=torch.float64)
    at_once = max(num_classes, _SAID_BYTES // (8 * num_nodes))
    for start in range(0, max(width, 1), at_once):  # once if nobody says anything: degrees are asked for all the same
        columns, known = slice(start, min(start + at_once, width)), 0
        said, unit = what_all_say(way, rows, columns)
        for part in edges.map_blocks(_heard, said, asked):
            heard[known : known + len(part), columns] = part[:, :-1]
            heard[known : known + len(part), -1] = part[:, -1]
            known += len(part)
        del said
    scores = torch.empty(len(own), num_classes, dtype=torch.float64)
    for first in range(0, len(own), _PIECE_ROWS):
        piece = slice(first, first + _PIECE_ROWS)
        sums, degrees = heard[piece, :-1] * unit, heard[piece, -1:]
        with np.errstate(all="ignore"):  # a warning of NumPy's would leave the gate
            found = way.scores(own[piece].numpy(), sums.numpy(), degrees.numpy())
            # Rounded: one row alone has other last bits than the same row among others.
            scores[piece] = torch.from_numpy(np.rint(found * _GRID) / _GRID)
    return scores


def what_all_say(way: Way, rows: Rows, columns: slice | None = None) -> tuple[Tensor, float]:
    """What every node tells its neighbours, in whole numbers, all of it or some columns; and their unit. Reads no edge."""
    some = slice(None) if columns is None else columns
    # Numbers are at most 1: those of all nodes together are below 2^52 units.
    unit = float(2.0 ** ((len(rows) - 1).bit_length() - 51))
    said = torch.empty(len(rows), way.said(rows[:1])[:, some].shape[1], dtype=torch.int64)
    for part in row_slices(len(rows)):
        said[part] = (way.said(rows[part])[:, some] / unit).round_().to(torch.int64)
    return said, unit


def _heard(block: RowBlock, said: Tensor, asked: Tensor) -> Tensor:
    """Sums of what neighbours say, whole numbers, and how many neighbours say it, for the nodes of a block that are asked."""
    some, degrees = asked[block.nodes], block.row_pointers.diff()
    heard = torch.zeros(int(some.sum()), said.shape[1] + 1, dtype=torch.float64)
    heard[:, -1] = degrees[some]
    if len(heard) < len(some):  # what nobody asks for is not added up, and only what is heard is looked at
        pointers = torch.zeros(len(heard) + 1, dtype=torch.int64)
        torch.cumsum(degrees[some], 0, out=pointers[1:])
        senders, columns = block.columns[torch.repeat_interleave(some, degrees)].unique(return_inverse=True)
        block = RowBlock(slice(0, len(heard)), pointers, columns.to(block.columns.dtype), len(senders))
        said = said[senders]
    if said.shape[1] and len(heard):  # both public: whether anybody is a neighbour decides nothing
        heard[:, :-1] = kernel_for(said).neighbour_totals(block, said)
    return heard


def row_scores(way: Way, rows: Tensor) -> Callable[[int, NDArray[Any]], NDArray[np.float64]]:
    """The same scores for one node at a time, from its row and its neighbours: for a service.

    What reads no edge is computed now.

    Privacy:
        The function is called inside a gate, or with neighbours that somebody named.
    """
    whole, unit = what_all_say(way, rows)
    said, known = whole.numpy(), rows.numpy()

    def scores(row: int, neighbours: NDArray[Any]) -> NDArray[np.float64]:
        sums = np.add.reduce(said.take(neighbours, axis=0), keepdims=True) * unit
        with np.errstate(all="ignore"):  # as above
            found = way.scores(known[row : row + 1], sums, np.array([[float(len(neighbours))]]))[0]
            rounded: Numbers = np.rint(found * _GRID) / _GRID
        return rounded

    return scores


def scores_from_far(answers: Tensor, edges: Edges, homophily: float) -> Tensor:
    """What answers from further away add on a public graph: nothing unless friends are alike."""
    if not above_chance(homophily, answers.shape[1]) >= _TELLING:
        return torch.zeros_like(answers)
    return _TRUST * propagate(edges, answers, _FAR).clamp_min(_SMALLEST).log()


def above_chance(homophily: float, num_classes: int) -> float:
    """0 for edges that do not care about classes, 1 if all stay inside a class; negative if they avoid their own."""
    return (homophily - 1 / num_classes) * num_classes / (num_classes - 1)


def tells(homophily: float, num_classes: int) -> bool:
    """Whether neighbours tell anything about a node's class."""
    return abs(above_chance(homophily, num_classes)) >= _TELLING
