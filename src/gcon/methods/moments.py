"""The default method, whole: noisy statistics are released once, and everything after that is free (docs/moments.md).

1. An edge-free ensemble answers for all nodes (`gcon.learn`).
2. Released: noisy moments F' A F of its feature directions, and of its answers with a constant column, which tell how many
   edges there are and how often they stay inside a class.
3. Features rescaled by the moments join the ensemble.
4. Released, chosen from the first: sums of the answers' messages over neighbours where a node has enough of them to be heard
   over the noise; else the moments again, which together are one release at the full budget.

Every choice reads released numbers, public features, and labels: nothing is chosen with private edges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcon.edges.source import Edges
from gcon.errors import InputError
from gcon.learn import sizes
from gcon.learn.after_release import after_moments
from gcon.learn.edge_free import EdgeFree, learn_without_edges
from gcon.learn.encoder import Encoder
from gcon.learn.rescaling import shrunk_moments
from gcon.learn.student import train_student
from gcon.machine import chosen_device
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_curve import gaussian_delta
from gcon.mechanisms.gaussian_release import NoisyStatistic, gaussian_plan
from gcon.mechanisms.neighbour_rows import NeighbourRows
from gcon.methods.evidence import messages, row_scores, scores_on_public_graph, scores_with_own_edges, tells
from gcon.methods.graph_facts import counted_rows, graph_facts
from gcon.methods.method import Progress, check_seed, silent
from gcon.methods.model import Model, ReleasingMethod, Scorer, check_rows
from gcon.methods.predictions import Access
from gcon.methods.record import (
    RELEASE,
    TENSORS,
    Checksum,
    Common,
    Count,
    Layout,
    NotNegative,
    Record,
    UpToOne,
    refuse,
)
from gcon.nodes import BATCH_ROWS, PublicNodes, features_fingerprint, mean_row
from gcon.privacy.account import spend
from gcon.privacy.boundary import Private
from gcon.privacy.ledger import Ledger
from gcon.privacy.randomness import Randomness
from gcon.privacy.receipt import Receipt

FEATURES_SHARE, ANSWERS_SHARE, SECOND_SHARE = 0.35, 0.05, 0.6  # of the squared distance; all public constants
HEARD = 2.25  # neighbours over noise from which sums are worth their budget
# A node's answer, its neighbours' messages and their mean err together: their sum is too sure of itself. Classes stay the same.
_TRUST = 0.6
_ROW_SLACK = 1e-3  # probabilities are kept in single precision
_SLACK = 1e-9  # shares may add to this much more than 1, by rounding


@dataclass(frozen=True, kw_only=True)
class Moments(ReleasingMethod):
    """Everything that the default can be told: one set of settings serves all graphs, so that is little.

    Attributes:
        seed: of the edge-free networks; it has nothing to do with the noise and may be public.
        device: where sums over edges run: `auto`, `cpu`, `cuda` or `cuda:NUMBER`.
    """

    name = "moments"
    about = "Releases noisy edge moments and neighbour sums of edge-free answers, once; Gaussian noise."

    seed: int = 0
    device: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        chosen_device(self.device)
        check_seed("seed", self.seed)

    def train(
        self,
        nodes: PublicNodes,
        edges: Private[Edges],
        *,
        ledger: Ledger,
        randomness: Randomness,
        progress: Progress = silent,
        purpose: str = "node classification",
    ) -> MomentsModel:
        """Train on private edges and release the model.

        Privacy:
            The model is (epsilon, delta)-DP for one undirected edge: the statistics are released once, with noise, and all
            else is computed from them and from public data.
        """
        progress("learn without edges")
        free, device = learn_without_edges(nodes, seed=self.seed), chosen_device(self.device)
        directions = EdgeMoments(free.rows, device=device)
        counted = EdgeMoments(counted_rows(free.answers), device=device)

        plan = gaussian_plan(self.epsilon, self.delta_for(nodes), method=self.name)
        with spend(edges, plan, ledger=ledger, randomness=randomness, purpose=purpose) as account:
            progress("first release")
            moments = account.release(plan.noisy(directions, share=FEATURES_SHARE))
            counts = account.release(plan.noisy(counted, share=ANSWERS_SHARE))
            facts = graph_facts(counts, free.answers, nodes)
            # Sums pay where neighbours can be heard over their noise, and tell something. That noise would be the one of the
            # answers' moments, scaled by sensitivity and share. Their constant column makes that sensitivity positive (but
            # for a single node); features may all be 0.
            per_unit = counts.standard_deviation / max(counts.sensitivity, 1e-300)
            per_unit *= math.sqrt(ANSWERS_SHARE / SECOND_SHARE)
            heard = facts.mean_degree >= HEARD * per_unit * math.sqrt(2)
            dense = heard and tells(facts.homophily, nodes.num_classes)
            if dense:
                progress("learn from the first release")
                after = after_moments(free, believed_moments((moments,), free))
                spoken = NeighbourRows(spoken_rows(after.answers, facts.homophily), device=device)
            progress("second release")
            last = account.release(plan.noisy(spoken if dense else directions, share=SECOND_SHARE))

        progress("learn from what was released")
        if not dense:
            after = after_moments(free, believed_moments((moments, last), free))
        answers, cached = after.answers, after.with_sums(last.value) if dense else None
        return MomentsModel(
            answers=answers.float(),
            cached=None if cached is None else cached.float(),
            encoder=train_student(nodes.features, answers if cached is None else cached),
            settings=MomentsSettings(
                homophily=facts.homophily, class_names=nodes.class_names, training_nodes=nodes.fingerprint
            ),
            statistics=(moments, counts, last),
            receipt=account.receipt,
        )


def believed_moments(moments: tuple[NoisyStatistic, ...], free: EdgeFree) -> Tensor:
    """What the moments of the directions are taken to be.

    Independent releases of one statistic, weighted by their precisions, are one release at their joint budget.
    """
    value, deviation = moments[0].value, 0.0
    if all(each.standard_deviation > 0 for each in moments):
        precisions = [each.standard_deviation**-2 for each in moments]
        total = sum(precisions)
        values = [each.value * precision for each, precision in zip(moments, precisions, strict=True)]
        value, deviation = torch.stack(values).sum(dim=0) / total, total**-0.5
    return shrunk_moments(value, deviation=deviation, rows=free.rows, expected=free.expected_moments)


def spoken_rows(answers: Tensor, homophily: float) -> Tensor:
    """Messages as rows of length at most 1: the longest tenth is cut, so that few loud nodes do not drown the others."""
    rows = messages(answers, homophily)
    rows = rows - rows.mean(dim=0)
    lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    longest = max(_quantile(lengths, 0.9), 1e-12)
    return torch.div(rows, lengths.clamp_min(longest))


def _quantile(values: Tensor, share: float) -> float:
    """Torch's quantile refuses more than 16 million numbers; numpy's does not, and interpolates in the same way."""
    if len(values) > sizes.EXACT_NODES:
        return float(np.quantile(values.numpy(), share))
    return float(values.quantile(share))


@dataclass(frozen=True, kw_only=True)
class MomentsSettings:
    """What prediction needs to know: public numbers and names.

    Attributes:
        homophily: the share of edges inside a class, as the released statistics tell it.
        class_names: what the columns of the answers stand for.
        training_nodes: checksum of the public feature table that the model was trained on.
    """

    homophily: float
    class_names: tuple[object, ...]
    training_nodes: str


class StatisticRecord(Record, frozen=True, kw_only=True):
    """A released statistic, but for its numbers."""

    name: str
    shape: tuple[Count, Count]
    standard_deviation: NotNegative
    symmetric: bool
    sensitivity: NotNegative
    share: NotNegative


class MomentsRecord(Record, frozen=True, kw_only=True):
    """The settings in `release.json`, with what the tensors are."""

    homophily: UpToOne
    nodes: Count
    cached: bool
    training_nodes: Checksum
    statistics: list[StatisticRecord]


@dataclass(frozen=True, eq=False, kw_only=True)
class MomentsModel(Model):
    """Everything here is public: each part is a function of public data and of the noisy statistics.

    Attributes:
        answers: n x c, float32: class probabilities of the training nodes, without neighbour sums.
        cached: the same with the released neighbour sums; None where there are none.
        encoder: the student, a linear model taught by the answers: it answers for nodes never seen.
        settings: public numbers.
        statistics: what was released, so that anybody can make something better of it.
        receipt: what was paid and what is promised.
    """

    method = Moments.name
    accesses = ("none", "cached", "own-edges", "public-graph")
    record_type = MomentsRecord
    choices = (
        "nothing was chosen by looking at private edges. Constants are the same for all graphs; what is automatic was chosen "
        "from public features and labels, or from the released numbers, which is free."
    )

    answers: Tensor
    cached: Tensor | None
    encoder: Encoder
    settings: MomentsSettings
    statistics: tuple[NoisyStatistic, ...]
    receipt: Receipt

    @property
    def best_answers(self) -> Tensor:
        """Of the training nodes: with neighbour sums where there are any."""
        return self.answers if self.cached is None else self.cached

    def tensors(self) -> dict[str, Tensor]:
        """The answers and the noisy statistics."""
        named = {f"statistic.{place}": statistic.value for place, statistic in enumerate(self.statistics)}
        return {"answers": self.answers, **named} | ({} if self.cached is None else {"cached": self.cached})

    def description(self) -> str:
        """What it is, for the model card."""
        names = ", ".join(dict.fromkeys(statistic.name for statistic in self.statistics))
        return (
            f"Noisy statistics of the edges of a private graph were released once ({names}). From these and from public\n"
            "features and labels alone an ensemble answers for the nodes of that graph, and a linear model, taught by it, for\n"
            f"nodes never seen. Estimated share of edges inside a class: {self.settings.homophily:.2f}."
        )

    def scorer(self, *, restart: float | None = None, device: str = "cpu") -> Scorer:
        """From known answers, and what neighbours add to them."""
        if restart is not None:
            rule = f"belongs to models of the paper's method, not of the method '{self.method}'"
            raise InputError("inference_restart", rule=rule, got=restart, fix="Leave it out for this model.")
        best = self.best_answers
        return AnswersScorer(
            answers=self.answers,
            best=best,
            student=self.encoder.on(device),
            homophily=self.settings.homophily,
            shares=mean_row(best.split(BATCH_ROWS)),
            training_nodes=self.settings.training_nodes,
        )

    def record(self) -> MomentsRecord:
        return MomentsRecord(
            homophily=self.settings.homophily,
            nodes=len(self.answers),
            cached=self.cached is not None,
            training_nodes=self.settings.training_nodes,
            statistics=[
                StatisticRecord(
                    name=each.name,
                    shape=tuple(each.value.shape),  # type: ignore[arg-type]
                    standard_deviation=each.standard_deviation,
                    symmetric=each.symmetric,
                    sensitivity=each.sensitivity,
                    share=each.share,
                )
                for each in self.statistics
            ],
        )

    @classmethod
    def layout(cls, record: MomentsRecord, *, width: int, num_classes: int) -> Layout:
        """Two tables of answers and the statistics."""
        if any(entry.symmetric and entry.shape[0] != entry.shape[1] for entry in record.statistics):
            refuse(RELEASE, "a symmetric table in 'statistics' must be square")
        if math.fsum(entry.share for entry in record.statistics) > 1 + _SLACK:
            refuse(RELEASE, "the shares in 'statistics' must add to at most 1")
        layout: Layout = {"answers": ("F32", (record.nodes, num_classes))}
        if record.cached:
            layout["cached"] = layout["answers"]
        return layout | {f"statistic.{place}": ("F64", entry.shape) for place, entry in enumerate(record.statistics)}

    @classmethod
    def from_parts(cls, record: MomentsRecord, tensors: Mapping[str, Tensor], common: Common) -> MomentsModel:
        """The model again, if its answers are probabilities and its noise is what its promise needs."""
        receipt = common.receipt
        if receipt.keeps_promise:  # `gcon statement --verify` checks more, by other code
            distance, budget = receipt.plan.get("distance"), receipt.budget
            if not isinstance(distance, float) or not 0 < distance < math.inf:
                refuse(RELEASE, "'receipt' claims a promise without a Gaussian distance in its plan")
            if gaussian_delta(budget.epsilon, distance) > budget.delta:
                refuse(RELEASE, "'receipt' claims a smaller budget than the distance in its plan costs")
            for entry in record.statistics:
                needed = entry.sensitivity / max(distance * math.sqrt(max(entry.share, 1e-300)), 1e-300)
                if entry.sensitivity > 0 and not entry.standard_deviation >= needed:
                    refuse(RELEASE, "'receipt' claims a promise that the noise in 'statistics' is too small for")
        for name in ("answers", "cached") if record.cached else ("answers",):
            table = tensors[name]
            if bool((table < 0).any()) or not bool(((table.double().sum(dim=1) - 1).abs() <= _ROW_SLACK).all()):
                refuse(TENSORS, f"'{name}' must hold class probabilities, row by row")
        return cls(
            answers=tensors["answers"],
            cached=tensors.get("cached"),
            encoder=common.encoder,
            settings=MomentsSettings(
                homophily=record.homophily, class_names=common.class_names, training_nodes=record.training_nodes
            ),
            statistics=tuple(
                NoisyStatistic(
                    name=entry.name,
                    value=tensors[f"statistic.{place}"],
                    standard_deviation=entry.standard_deviation,
                    symmetric=entry.symmetric,
                    sensitivity=entry.sensitivity,
                    share=entry.share,
                )
                for place, entry in enumerate(record.statistics)
            ),
            receipt=receipt,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class AnswersScorer(Scorer):
    """The start is class probabilities: known answers of the training nodes, the student's for other nodes.

    Attributes:
        answers: of the training nodes, for access `none`.
        best: of the training nodes, for all other accesses.
        student: answers for nodes never seen.
        homophily: the share of edges inside a class.
        shares: of the classes, among the best answers.
        training_nodes: checksum of the feature table that the answers belong to.
    """

    answers: Tensor
    best: Tensor
    student: Encoder
    homophily: float
    shares: Tensor
    training_nodes: str

    def start_of_rows(self, features: Tensor, access: Access) -> Callable[[slice], Tensor]:
        """Known answers for the training nodes, the student's for others."""
        self.student.check(features[:0])  # the width alone: no row is read
        if features_fingerprint(features) == self.training_nodes:
            known = self.answers if access == "none" else self.best
            return lambda rows: known[rows].double()
        if access == "cached":
            rule, fix = "must be those of the training for access='cached'", "Use access='none' for other nodes."
            raise InputError("nodes", rule=rule, got="others", fix=fix)
        return lambda rows: self.student.probabilities(features[rows]).double()

    def without_edges(self, start: Tensor) -> Tensor:
        """The logarithms of the answers."""
        return start.clamp_min(1e-12).log()

    def own_edges_of_rows(self, start: Tensor, edges: Edges) -> Callable[[slice], Tensor]:
        """Answers and the evidence of neighbours."""
        check_rows(start, edges)
        scores = scores_with_own_edges(start, edges, self.homophily, self.shares)
        return lambda rows: _TRUST * scores[rows]

    def own_edges_of_one(self, start: Tensor) -> Callable[[int, NDArray[Any]], NDArray[np.float64]]:
        """The same evidence, from the messages of all nodes."""
        of_row = row_scores(start, self.homophily, self.shares)

        def shares(row: int, neighbours: NDArray[Any]) -> NDArray[np.float64]:
            scores = _TRUST * of_row(row, neighbours)
            raised: NDArray[np.float64] = np.exp(scores - scores.max())
            raised /= raised.sum()
            return raised

        return shares

    def public_graph(self, start: Tensor, edges: Edges) -> Tensor:
        """The same, and answers from further away."""
        check_rows(start, edges)
        return _TRUST * scores_on_public_graph(start, edges, self.homophily, self.shares)
