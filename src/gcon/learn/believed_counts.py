"""What noisy neighbour counts are taken to be, and what they say about a node's class. Free: reads released and public numbers.

Nodes of one class are taken to have neighbours in the same proportions, up to their degrees. Proportions, degrees and how far
counts scatter are read from noisy counts, whose noise is known and has mean 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from gcon.nodes import row_slices

LEAST_ANSWER, LEAST_EVIDENCE = 1e-4, -12.0  # owners' exact counts are asked with the same ones (gcon.methods.evidence)
_LEAST_COUNT, LEAST_DEGREE = 0.05, 0.3  # what is expected of a count, and of a degree
_LEAST_SPREAD = 1e-3  # of degrees, relative and squared
_LEAST_CROWDING = 0.2  # the variance of a count over its mean; 1 for a Poisson number
_RIDGE = 1e-3
_NOTHING = 1e-12  # instead of a division by 0
_ROUNDS = 2  # classes tell proportions, and proportions tell classes
_STEPS = (-1.2, 0.0, 1.2)  # in standard deviations: the degrees that a node may have
_PIECE = 2**18  # nodes x classes x codes at a time: so many numbers stay in the processor's cache


@final
@dataclass(frozen=True, eq=False)
class BelievedCounts:
    """What is believed of some nodes once their noisy counts are known.

    Attributes:
        counts: n x K, posterior means, float64.
        evidence: n x c, float64: logarithms of how likely the noisy counts of a node are for each class. They are shifted so that
            they are logarithms of probabilities, and bounded from below.
    """

    counts: Tensor
    evidence: Tensor


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class CountBelief:
    """How counts come about.

    A node has a class and a degree; its counts are the proportions of its class times its degree on average, and the variance
    of a count is proportional to its mean.

    Attributes:
        usual: (1 + c) x K: what counts are expected to be, linear in 1 and a node's answer.
        spread: of degrees around what is expected, relative and squared.
        proportions: c x K: of the codes among the neighbours of a class.
        crowding: K: the variance of a count over its mean.
    """

    usual: Tensor
    spread: float
    proportions: Tensor
    crowding: Tensor

    @classmethod
    def fitted(
        cls, noisy: Tensor, deviations: Tensor | float, answers: Tensor, labels: Tensor | None = None
    ) -> CountBelief:
        """By the noisy counts of many nodes: first by least squares on answers, then by the classes that this makes likely.

        Args:
            noisy: n x K.
            deviations: of the noise of an entry, row by row, or one for all.
            answers: n x c, class probabilities.
            labels: n: of nodes whose class is known, -1 elsewhere; None if it is known of none.
        """
        counts, start = noisy.double(), answers.double()
        noise = torch.as_tensor(deviations, dtype=torch.float64).square().expand(len(counts))
        loudest = noise.max()
        usual, _ = _least_squares(start, counts)
        expected, heard = (
            pad(start, (1, 0), value=1.0).matmul(usual).clamp_min(_LEAST_COUNT).sum(dim=1),
            counts.sum(dim=1),
        )
        excess = (heard / expected - 1).square() - counts.shape[1] * noise / expected.square()
        classes = start if labels is None else with_labels(start, labels)
        found, errors = _least_squares(classes, counts)
        belief = cls(
            usual=usual,
            spread=max(float(excess.mean()), _LEAST_SPREAD),
            proportions=_proportions(found[0] + found[1:], float(loudest) * errors),
            crowding=torch.ones(counts.shape[1], dtype=torch.float64),
        )
        # Degrees as `_heard` believes them: they do not depend on what is found out about classes below.
        trust = belief.spread * expected.square()
        trust = trust / (trust + counts.shape[1] * noise)
        degrees = (expected + trust * (heard - expected)).clamp_min(LEAST_DEGREE)
        pieces = list(row_slices(len(counts), max(_PIECE // belief.proportions.numel(), 1)))
        for known in range(1 + _ROUNDS):
            if known:
                told = torch.cat([belief._heard(counts[rows], noise[rows], start[rows], (0.0,))[0] for rows in pieces])
                likely = torch.softmax(start.clamp_min(LEAST_ANSWER).log() + told, dim=1)
                classes = likely if labels is None else with_labels(likely, labels)
                totals = classes.T @ counts
                errors = ((noise / loudest.clamp_min(_NOTHING))[:, None] * classes.square()).sum(dim=0)
                belief = replace(belief, proportions=_proportions(totals, loudest * errors))
            # The crowding that these classes tell: counts vary by more than their noise.
            above = below = torch.zeros_like(belief.crowding)
            for rows in pieces:
                mean = degrees[rows, None, None] * belief.proportions
                excess = (counts[rows, None] - mean).square_() - noise[rows, None, None]
                above = above + torch.einsum("nc,nck->k", classes[rows], excess * mean)
                below = below + torch.einsum("nc,nck->k", classes[rows], mean.square_())
            belief = replace(belief, crowding=(above / below).clamp_min(_LEAST_CROWDING))
        return belief

    def of(self, noisy: Tensor, deviations: Tensor | float, answers: Tensor) -> BelievedCounts:
        """What is believed of nodes with these noisy counts, whose noise has these deviations, and with these answers before."""
        every = torch.as_tensor(deviations, dtype=torch.float64).square().expand(len(noisy))
        believed = torch.empty(noisy.shape, dtype=torch.float64)
        evidence = torch.empty(answers.shape, dtype=torch.float64)
        for rows in row_slices(
            len(noisy), max(_PIECE // self.proportions.numel(), 1)
        ):  # beside the two tables nothing is as long as the nodes
            counts = noisy[rows].double()
            noise = every[rows]
            told, means = self._heard(counts, noise, answers[rows].double(), _STEPS)
            evidence[rows] = torch.log_softmax(told, dim=1).clamp_min_(LEAST_EVIDENCE)
            believed[rows] = (
                means.clamp_min_(0.0) if bool((noise > 0).any()) else counts
            )  # without noise they are what they are
        return BelievedCounts(believed, evidence)

    def _heard(self, counts: Tensor, entry: Tensor, answers: Tensor, steps: tuple[float, ...]) -> tuple[Tensor, Tensor]:
        """Logarithms of how likely counts are for each class, up to a constant per node; and the counts' posterior means."""
        # What degrees are expected to be, their posterior means, and the standard deviation of these.
        usual = pad(answers, (1, 0), value=1.0).matmul(self.usual).clamp_min(_LEAST_COUNT).sum(dim=1)
        variance, noise = self.spread * usual.square(), counts.shape[1] * entry
        trust = variance / (variance + noise)
        degrees = (usual + trust * (counts.sum(dim=1) - usual)).clamp_min(LEAST_DEGREE)
        error = (trust * noise).sqrt()
        told, means = [], []
        for step in steps if bool((entry > 0).any()) else (0.0,):
            degree = (degrees + step * error).clamp_min(LEAST_DEGREE)
            mean = degree[:, None, None] * self.proportions
            # A count between 0 and the degree varies by no more than that.
            own = torch.minimum(self.crowding, degree[:, None, None]) * mean
            variance, rest = own + entry[:, None, None], counts[:, None] - mean
            likely = -0.5 * (rest.square() / variance + variance.log()).sum(dim=2)
            told.append(likely - 0.5 * ((degree - usual).square() / (self.spread * usual.square()))[:, None])
            means.append(mean + own / variance * rest)
        each = torch.stack(told)
        total = each.logsumexp(dim=0)
        weights = torch.softmax(each, dim=0) * torch.softmax(answers.clamp_min(LEAST_ANSWER).log() + total, dim=1)
        return total, torch.einsum("snc,snck->nk", weights, torch.stack(means))


def _proportions(totals: Tensor, noise: Tensor) -> Tensor:
    """Shares of totals, one row per class, with what the noise of their entries may have made taken out.

    Codes differ, and so do classes, as far as totals differ by more than their noise.
    """

    def beyond_noise(found: Tensor, expected: Tensor, noise: Tensor) -> Tensor:
        """What is expected, and of what was found beyond it a part, row by row: the larger, the more of it cannot be noise."""
        beyond = found - expected
        heard = (beyond.square().mean(dim=1) - noise).clamp_min(0.0)
        return expected + (heard / (heard + noise).clamp_min(_NOTHING))[:, None] * beyond

    codes = totals.sum(dim=0, keepdim=True)
    usual = beyond_noise(codes, codes.mean().expand_as(codes), noise.sum()[None]).clamp_min(_LEAST_COUNT)
    found = beyond_noise(totals, totals.sum(dim=1, keepdim=True) * usual / usual.sum(), noise).clamp_min(_LEAST_COUNT)
    return found / found.sum(dim=1, keepdim=True)


def _least_squares(answers: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Counts as they follow from 1 and answers; and the variance of what follows from a sure answer, over that of an entry."""
    rows = pad(answers, (1, 0), value=1.0)
    products = rows.T @ rows
    products += _RIDGE * products.diagonal().mean() * torch.eye(len(products), dtype=torch.float64)
    sure = pad(torch.eye(answers.shape[1], dtype=torch.float64), (1, 0), value=1.0)
    return torch.linalg.solve(products, rows.T @ counts), (sure * torch.linalg.solve(products, sure.T).T).sum(dim=1)


def with_labels(answers: Tensor, labels: Tensor) -> Tensor:
    """Class probabilities, certain where a label is public; float64."""
    known, certain = labels >= 0, answers.to(torch.float64, copy=True)
    certain[known] = one_hot(labels[known], answers.shape[1]).double()
    return certain
