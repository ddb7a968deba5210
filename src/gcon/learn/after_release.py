"""The ensemble once moments are released: features rescaled by them join it, and then the released sums.

Of graphs up to `EXACT_NODES` nodes every member answers for all nodes at once; of larger ones members are taught on a
sample (sampled_pool.py) and asked in blocks. Free: reads released and public numbers only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import final

import torch
from torch import Tensor
from torch.nn.functional import normalize

from gcon.learn.edge_free import PENALTIES, EdgeFree
from gcon.learn.large_features import gram
from gcon.learn.members import best_average, pseudo_labels, taught_members, true_labels
from gcon.learn.rescaling import FILTERS, rescaled_rows, rescaling_matrix
from gcon.learn.sampled_pool import Reader, SampledPool, Source
from gcon.learn.sizes import blocks, is_large
from gcon.nodes import PublicNodes

_SUM_PENALTIES = (1.0, 10.0)
TAUGHT_SHARE = 0.8  # of the unlabelled nodes; answers that have seen the graph may teach more than edge-free ones
_LEAST_ANSWER, _LEAST_SCALE = 1e-4, 1e-12


class AfterRelease(ABC):
    """Answers of all nodes from moments, or from moments and sums."""

    @abstractmethod
    def with_moments(self, moments: Tensor) -> Tensor:
        """The best average with members on rescaled features; the last one is remembered."""

    @abstractmethod
    def with_sums(self, moments: Tensor, sums: Tensor) -> Tensor:
        """The same with members on released sums beside the answers."""


def ensemble_after_release(nodes: PublicNodes, free: EdgeFree) -> AfterRelease:
    """The ensemble that fits the number of nodes."""
    return SampledAfter(nodes, free) if is_large(nodes.num_nodes) else WholeAfter(nodes, free)


@final
class WholeAfter(AfterRelease):
    """Every member answers for all nodes."""

    def __init__(self, nodes: PublicNodes, free: EdgeFree) -> None:
        self._nodes, self._free = nodes, free
        self._last: tuple[Tensor, list[Tensor], Tensor, Tensor] | None = None

    def with_moments(self, moments: Tensor) -> Tensor:
        """All members, with those on rescaled features."""
        return self._found(moments)[2]

    def with_sums(self, moments: Tensor, sums: Tensor) -> Tensor:
        """Released sums as features beside the answers."""
        nodes = self._nodes
        _, members, answers, view = self._found(moments)
        heard, own = _standard(sums), _standard(answers.clamp_min(_LEAST_ANSWER).log())
        views = [torch.cat(parts, dim=1).float() for parts in ((own, heard), (heard,), (view.double(), heard))]
        every = [*members, *taught_members(nodes, views, true_labels(nodes), penalties=_SUM_PENALTIES)]
        taught = pseudo_labels(best_average(every, nodes), nodes, TAUGHT_SHARE)
        every += taught_members(nodes, views, taught, penalties=_SUM_PENALTIES)
        return best_average(every, nodes)

    def _found(self, moments: Tensor) -> tuple[Tensor, list[Tensor], Tensor, Tensor]:
        """The moments, all members, their average, and the first rescaled features."""
        if self._last is None or not torch.equal(self._last[0], moments):
            nodes, rows = self._nodes, self._free.base.rows
            views = [rescaled_rows(rows, moments, ridge=ridge, power=power) for ridge, power in FILTERS]
            members = [*self._free.members, *taught_members(nodes, views, true_labels(nodes), penalties=PENALTIES)]
            taught = pseudo_labels(best_average(members, nodes), nodes, TAUGHT_SHARE)
            members += taught_members(nodes, views, taught, penalties=PENALTIES)
            self._last = (moments, members, best_average(members, nodes), views[0])
        return self._last


@final
class Given(Source):
    """One matrix of class probabilities."""

    def __init__(self, answers: Tensor) -> None:
        self._answers = answers

    @property
    def count(self) -> int:
        """One."""
        return 1

    def reader(self) -> Reader:
        """Its rows."""
        return lambda place, nodes: self._answers[nodes]


@final
class Rescaled(Source):
    """Rows times small matrices, scaled to length 1."""

    def __init__(self, rows: Tensor, matrices: Sequence[Tensor]) -> None:
        self._rows, self._matrices = rows, tuple(matrices)

    @property
    def count(self) -> int:
        """One a matrix."""
        return len(self._matrices)

    def reader(self) -> Reader:
        """Multiplies when read."""
        return lambda place, nodes: normalize(self._rows[nodes].double() @ self._matrices[place], dim=1).float()


@final
class BesideSums(Source):
    """Released sums beside the logarithms of answers, alone, and beside rescaled features."""

    def __init__(self, answers: Tensor, sums: Tensor, rescaled: Rescaled) -> None:
        self._answers, self._sums, self._rescaled = answers, sums, rescaled
        self._own, self._heard = _Scale.of(answers, logs=True), _Scale.of(sums, logs=False)

    @property
    def count(self) -> int:
        """Three."""
        return 3

    def reader(self) -> Reader:
        """Puts blocks beside each other."""
        rescaled = self._rescaled.reader()

        def read(place: int, nodes: Tensor | slice) -> Tensor:
            heard = self._heard.scaled(self._sums[nodes])
            if place == 1:
                return heard
            first = self._own.scaled(self._answers[nodes]) if place == 0 else rescaled(0, nodes)
            return torch.cat([first, heard], dim=1)

        return read


@final
class SampledAfter(AfterRelease):
    """Members are taught on a sample of the nodes."""

    def __init__(self, nodes: PublicNodes, free: EdgeFree) -> None:
        self._nodes, self._free = nodes, free
        self._last: tuple[Tensor, SampledPool, Tensor, Rescaled] | None = None

    @cached_property
    def _start(self) -> SampledPool:
        return SampledPool(self._nodes).given(Given(self._free.answers), as_they_are=True)

    @cached_property
    def _products(self) -> Tensor:
        return gram(self._free.base.rows)

    def with_moments(self, moments: Tensor) -> Tensor:
        """The edge-free answers, with members on rescaled features."""
        return self._found(moments)[2]

    def with_sums(self, moments: Tensor, sums: Tensor) -> Tensor:
        """Released sums as features beside the answers."""
        _, pool, answers, rescaled = self._found(moments)
        views = pool.views(BesideSums(answers, sums, rescaled))
        return pool.taught(views, _SUM_PENALTIES).taught(views, _SUM_PENALTIES, TAUGHT_SHARE).average()

    def _found(self, moments: Tensor) -> tuple[Tensor, SampledPool, Tensor, Rescaled]:
        if self._last is None or not torch.equal(self._last[0], moments):
            matrices = [rescaling_matrix(self._products, moments, ridge=ridge, power=power) for ridge, power in FILTERS]
            rescaled = Rescaled(self._free.base.rows, matrices)
            views = self._start.views(rescaled)
            pool = self._start.taught(views, PENALTIES).taught(views, PENALTIES, TAUGHT_SHARE)
            self._last = (moments, pool, pool.average(), rescaled)
        return self._last


def _standard(rows: Tensor) -> Tensor:
    centred = rows - rows.mean(dim=0)
    return centred / max(float(centred.std()), _LEAST_SCALE)


@final
class _Scale:
    """`_standard` for blocks: the mean of every column and one deviation, from all rows."""

    def __init__(self, *, logs: bool, centre: Tensor, deviation: float) -> None:
        self._logs, self._centre, self._deviation = logs, centre, max(deviation, _LEAST_SCALE)

    @classmethod
    def of(cls, rows: Tensor, *, logs: bool) -> _Scale:
        """Two passes: the means, then the spread around them."""
        centre = sum((_taken(rows[nodes], logs).sum(dim=0) for nodes in blocks(len(rows))), torch.zeros(1)) / len(rows)
        spread = sum(float((_taken(rows[nodes], logs) - centre).square().sum()) for nodes in blocks(len(rows)))
        return cls(logs=logs, centre=centre, deviation=(spread / (rows.numel() - 1)) ** 0.5)

    def scaled(self, rows: Tensor) -> Tensor:
        """Some rows, float32."""
        return ((_taken(rows, self._logs) - self._centre) / self._deviation).float()


def _taken(rows: Tensor, logs: bool) -> Tensor:
    return rows.double().clamp_min(_LEAST_ANSWER).log() if logs else rows.double()
