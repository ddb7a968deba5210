"""The default method, whole: noisy statistics are released once, and everything after that is free (docs/moments.md).

1. An edge-free ensemble answers for all nodes (`gcon.learn`).
2. Released: noisy moments F' A F of its feature directions, and of its answers with a constant column, which tell how many
   edges there are and how often they stay inside a class.
3. Features rescaled by the moments join the ensemble.
4. Released, chosen from the first: where neighbours can be heard over the noise, how many neighbours of each class a node has,
   once or twice (the second time by the classes that the first gave); else the moments again, with all that is left.
5. Released, if there are so many that it tells: how many validation nodes their owners answer right. If own edges do worse than
   published answers, they are left out.

Every choice reads released numbers, public features, and labels: nothing is chosen with private edges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Annotated, Any

import numpy as np
import torch
from msgspec import Meta
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

from gcon.edges.source import Edges
from gcon.errors import AnswersWarning, InputError, PlanMismatchError, warn_caller
from gcon.learn.after_counts import AfterCounts, CountModel, after_counts
from gcon.learn.after_release import AfterMoments, after_moments
from gcon.learn.believed_counts import with_labels
from gcon.learn.edge_free import learn_without_edges
from gcon.learn.encoder import Encoder
from gcon.learn.perceptron import train_student
from gcon.learn.sample import blocks, with_validation
from gcon.machine import chosen_device
from gcon.mechanisms.counts import ENDS_OF_AN_EDGE, NeighbourCounts, NoisyCount, NoisyCounts, geometric_deviation
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_release import NoisyRelease, NoisyStatistic
from gcon.mechanisms.mixed_release import KINDS, MOST_ROUNDS, mixed_plan, mixed_plan_from
from gcon.methods.evidence import (
    Evidence,
    ExactCounts,
    PublishedAnswers,
    Way,
    messages,
    row_scores,
    scores_from_far,
    scores_with_own_edges,
    tells,
)
from gcon.methods.graph_facts import counted_rows, graph_facts
from gcon.methods.method import Progress, check_seed, silent
from gcon.methods.model import Model, ReleasingMethod, Scorer
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
from gcon.nodes import (
    BATCH_ROWS,
    PublicNodes,
    checked_shares,
    features_fingerprint,
    known_rows,
    nothing_known,
    recognises,
    row_slices,
    shares_in_order,
)
from gcon.privacy.account import check_charge, spend
from gcon.privacy.boundary import Private
from gcon.privacy.budget import EDGES_FIELD, NOTHING, STATED_EDGES, Budget, checked_budget, protected_change
from gcon.privacy.ledger import Ledger
from gcon.privacy.randomness import Randomness
from gcon.privacy.receipt import Receipt

# All public constants. Of the squared distance: moments of directions, and of answers, before anything is chosen.
FEATURES_SHARE, ANSWERS_SHARE = 0.035, 0.015
FIRST_SHARE = FEATURES_SHARE + ANSWERS_SHARE
MOST_COUNTED = 0.05  # of epsilon, for the count of right answers
HEARD = 4.0  # neighbours over the noise of a count from which counts are worth their budget
LOUD, UNSURE = 10.0, 0.6  # the same from which a second table is, if codes are no surer than this
LEAST_LABELLED = 0.4  # of the nodes, for one-way counts; with fewer labels a second table is worth more
LEAN, LEAN_PER_GAIN, MOST_LEAN = 0.25, 6.0, 2.0  # of the mean answer around a node, by what counts added to the answers
# All of that from a fifth of doubt on: where answers are surer, their codes say what the mean would say. Answers may be too sure.
LEAN_PER_DOUBT, LEAST_DOUBT = 5.0, 0.2
FEW_CLASSES = 10  # with more, that mean weighs more, and counts are never one-way
# Published answers were chosen by the validation nodes, so they look better there than they are, by up to this share of them.
_FLATTERED = 0.03
_SURE_OF = 3.0  # standard deviations of the count of right answers: own edges are left out for what noise hardly makes
# Exact counts are heard where edges keep to classes, be it so many times as often as by chance where classes are many; or where
# noisy counts spared the judges so much, in log-probability.
MANY_TIMES, LEAST_GAIN = 3.0, 0.02
_TOLD = 0.1  # of the validation nodes: a count that cannot tell so much from noise is not worth its price
# Of every neighbour's message, where published answers are no surer than UNSURE, or classes are many: weak voices add up.
VOICE = 0.5
_MOVED = 0.1  # of the nodes: if the shares of the codes moved by more than that since they were counted, they are other codes
_PART = (
    "Nodes of the training table, but not the table as it was: they are answered from their features alone, as nodes never seen. "
    "Ask about the whole table, in its order, for the answers that the release holds."
)
_NOT_USED = (
    "class_shares (--class-share): not used, since validation nodes, marked or set aside from many labelled ones, tell better "
    "how common classes are. Leave it out."
)
_ROW_SLACK = 1e-3  # probabilities are kept in single precision
_LEAST_SHARE = 1e-30  # of a code among neighbours: one over it is a number
_SLACK = 1e-9  # shares may add to this much more than 1, by rounding


@dataclass(frozen=True, kw_only=True)
class Moments(ReleasingMethod):
    """Everything that the default can be told: one set of settings serves all graphs, so that is little.

    Attributes:
        seed: of the edge-free networks; it has nothing to do with the noise and may be public.
        device: where sums over edges run: `auto`, `cpu`, `cuda` or `cuda:NUMBER`.
        protect_edges: how many edges, 1 to 10, may change together within epsilon and delta; more of them, more noise.
        class_shares: how common each class is among all nodes, by its name, where that is publicly known; never read from edges.
            Without validation nodes nothing else tells, and rough numbers are worth points (docs/choosing.md); beside validation
            nodes they are not used.
    """

    name = "moments"
    about = "Releases noisy edge moments, then neighbour counts or more moments, once; Gaussian and geometric noise."

    seed: int = 0
    device: str = "auto"
    protect_edges: int = 1
    class_shares: Mapping[Any, float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        protected_change(self.protect_edges)
        chosen_device(self.device)
        check_seed("seed", self.seed)
        if self.class_shares is not None and not isinstance(self.class_shares, Mapping):
            rule, fix = "must be a share for every class by its name", "For example {'member': 0.7, 'guest': 0.3}."
            raise InputError("class_shares", rule=rule, got=repr(self.class_shares), fix=fix)

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
            The model is (epsilon, delta)-DP for one undirected edge, or for any `protect_edges` of them together: the
            statistics are released once, with noise, and all else is computed from them and from public data.
        """
        # Neighbours say public labels, also those of nodes that are set aside as judges. A count of the right answers of these
        # would hear their own labels come back, so it is for validation nodes that somebody marked.
        said, asked = nodes.train_mask, int(nodes.validation_mask.sum())
        nodes = with_validation(nodes)
        if self.class_shares is not None:
            shares = shares_in_order(self.class_shares, nodes.class_names)
            nodes = replace(nodes, class_shares=shares)
            if bool(nodes.validation_mask.any()):
                warn_caller(_NOT_USED, AnswersWarning)
                nodes = replace(nodes, class_shares=None)
        labels = torch.where(said, nodes.labels, -1)
        share = counted_share(self.epsilon, asked, protect_edges=self.protect_edges)
        asked = asked if share else 0
        plan = mixed_plan(  # first of all: a budget that no plan fits is refused before anything is learned
            self.epsilon,
            checked_budget(self.epsilon, self.delta, nodes.num_nodes).delta,
            first_share=FIRST_SHARE,
            answer_share=share,
            method=self.name,
            protect_edges=self.protect_edges,
            one_way=int(said.sum()) >= LEAST_LABELLED * nodes.num_nodes,
        )

        check_charge(plan.budget, ledger=ledger, randomness=randomness, purpose=purpose)

        progress("learn without edges")
        device = chosen_device(self.device)
        free = learn_without_edges(nodes, seed=self.seed, device=device)
        directions = EdgeMoments(free.rows, device=device)

        with spend(edges, plan, ledger=ledger, randomness=randomness, purpose=purpose) as account:
            progress("first release")
            moments = account.release(NoisyRelease(plan=plan, statistic=directions, share=FEATURES_SHARE))
            counted = EdgeMoments(counted_rows(free.answers), device=device)
            about = account.release(NoisyRelease(plan=plan, statistic=counted, share=ANSWERS_SHARE))
            facts = graph_facts(about, free.answers, free.examples)
            homophily = facts.cautious_homophily
            statistics, tables, heard, gain = [moments, about], [], None, 0.0
            if facts.mean_degree < HEARD * geometric_deviation(plan.rates[0]):
                progress("second release")
                again = account.release(NoisyRelease(plan=plan, statistic=directions, share=1 - FIRST_SHARE))
                statistics.append(again)
                after = after_moments(free, [(each.value, each.standard_deviation) for each in (moments, again)])
                published = after.answers
            else:
                progress("learn from the first release")
                after = after_moments(free, [(moments.value, moments.standard_deviation)])
                before: AfterMoments | AfterCounts = after
                published = after.answers
                rounds, one_way = 1, False
                if plan.one_way:
                    one_way = labels_say_more(published, labels, facts.mean_degree, plan.rates)
                elif facts.mean_degree >= LOUD * geometric_deviation(plan.rates[1]):
                    sure = float(with_labels(published, labels).max(dim=1).values.mean())
                    rounds = 2 if sure <= UNSURE else 1
                if rounds > 1:  # judges would hear their own labels in the second table
                    labels = torch.where(nodes.train_mask, nodes.labels, -1)
                rate = plan.rates[1 if one_way or rounds > 1 else 0]
                for _ in range(rounds):
                    progress("second release")
                    coded = labels if one_way else with_labels(published, labels).argmax(dim=1)
                    table = NeighbourCounts(
                        codes=coded,
                        num_codes=nodes.num_classes,
                        rate=rate,
                        rounds=rounds,
                        one_way=one_way,
                        device=device,
                    )
                    counts = account.release(table)
                    tables.append(counts)
                    found = after_counts(after, before, counts.value, table.deviations)
                    heard = owner_counts(
                        found, counts.value, coded=coded, before=published, labels=labels, homophily=homophily
                    )
                    before, published, gain = found, found.answers, found.gain
            published, right = published.float(), None
            if asked:
                progress("count right answers")
                way, rows = owners_way(published, labels, heard, homophily)
                right_ones = partial(_right_answers, way, rows, nodes.labels, nodes.validation_mask, nodes.num_classes)
                count = NoisyCount(plan.answer_epsilon, right_ones, ENDS_OF_AN_EDGE)
                right = account.release(count)

        progress("learn from what was released")
        margin = 0.0 if right is None else _SURE_OF * count.standard_deviation + _FLATTERED * asked
        alone = int((published.argmax(dim=1) == nodes.labels)[nodes.validation_mask].sum())
        # Where neither the first release nor noisy counts tell anything, exact counts would be noise to their owners.
        edges_tell = (
            tells(homophily, nodes.num_classes) or homophily * nodes.num_classes >= MANY_TIMES or gain >= LEAST_GAIN
        )
        return MomentsModel(
            answers=after.answers.float(),
            cached=published if tables else None,
            labels=labels,
            counts=heard,
            encoder=train_student(nodes.features, published),
            homophily=homophily,
            class_names=nodes.class_names,
            training_nodes=nodes.fingerprint,
            training_rows=known_rows(nodes.features),
            right=right,
            asked=asked,
            # The noise alone would leave own edges out now and then: only what is worse by more than that is.
            gain=gain,
            own_edges=edges_tell and (right is None or right >= alone - margin),
            class_shares=nodes.class_shares,
            statistics=tuple(statistics),
            tables=tuple(tables),
            receipt=account.receipt,
        )


def counted_share(epsilon: float, num_validation: int, *, protect_edges: int = 1) -> float:
    """Of epsilon, for the count of right answers: what it takes to tell a tenth of the validation nodes from noise.

    If that is more than `MOST_COUNTED`, nothing is counted: the budget is worth more elsewhere. Reads public numbers.
    """
    if num_validation == 0 or math.isinf(epsilon):
        return MOST_COUNTED if num_validation else 0.0
    # The deviation of the count's noise is sqrt(2) times its sensitivity over its epsilon, or a little less.
    told = epsilon * _TOLD * num_validation
    share = protect_edges * _SURE_OF * math.sqrt(2) * ENDS_OF_AN_EDGE / told if told > 0 else math.inf
    return share if share <= MOST_COUNTED else 0.0


def labels_say_more(answers: Tensor, labels: Tensor, degree: float, rates: tuple[float, ...]) -> bool:
    """Whether counts of labelled neighbours alone, one way, tell more about a node than counts of all, with twice the noise.

    The signal of a class is that of all neighbours who are heard; one without a label is worth the square of how far above chance
    its code is right, as the answers say of themselves. A count varies by its noise, and by as much as it is itself.

    Args:
        answers: of all nodes, as they are coded.
        labels: of all nodes, -1 for unknown ones.
        degree: the mean one, as it was released.
        rates: of the noise of counts of all, and of one-way ones.
    """
    classes, labelled, above = answers.shape[1], int((labels >= 0).sum()), 0.0
    if classes > FEW_CLASSES:  # owners ask at counts of all, and of so many classes few labelled neighbours are of one
        return False
    for part in blocks(len(answers)):
        sure = answers[part].max(dim=1).values.double()[labels[part] < 0]
        above += float((sure - 1 / classes).sum()) / (1 - 1 / classes)
    share, worth = labelled / len(labels), (above / max(len(labels) - labelled, 1)) ** 2
    every, alone = (geometric_deviation(rate) ** 2 for rate in rates)
    usual = degree / classes
    return (share + (1 - share) * worth) ** 2 * (alone + share * usual) <= share**2 * (every + usual)


def _right_answers(way: Way, rows: OwnerRows, labels: Tensor, mask: Tensor, num_classes: int, edges: Edges) -> int:
    """How many nodes of a mask their owners answer right. Works on opened edges: called by the account."""
    scores = scores_with_own_edges(way, rows, edges, num_classes, asked=mask)
    return int((scores.argmax(dim=1) == labels[mask]).sum())


@dataclass(frozen=True, eq=False, kw_only=True)
class OwnerCounts:
    """What the owner of a node of the training table needs to ask regressions at her exact counts; all of it public.

    Attributes:
        start: n x c, float32: class probabilities without the last counts.
        codes: n: by which code every node was counted; -1 for nodes that nobody counted.
        model: the regressions.
        proportions, crowding: how counts come about (`CountBelief`), float64.
        edge_shares: c, float64: of the classes among the ends of edges, as the released counts tell them.
        edge_messages: c, float64: the mean message among the ends of edges.
        lean: the weight of the mean answer around a node.
        voice: the weight of every neighbour's message.
    """

    start: Tensor
    codes: Tensor
    model: CountModel
    proportions: Tensor
    crowding: Tensor
    edge_shares: Tensor
    edge_messages: Tensor
    lean: float
    voice: float

    @cached_property
    def share_counted(self) -> float:
        """Of the nodes: later codes are those of all, so every one of them weighs so much less."""
        return float((self.codes >= 0).double().mean())


def owner_counts(
    found: AfterCounts, counts: Tensor, *, coded: Tensor, before: Tensor, labels: Tensor, homophily: float
) -> OwnerCounts:
    """The same, from what released counts made of the answers before them."""
    degrees = counts.sum(dim=1).clamp_min(0).double()
    degrees = degrees / degrees.sum() if bool(degrees.sum() > 0) else torch.full_like(degrees, 1 / len(degrees))
    # The mean answer and the mean message over the ends of edges; of a large graph a block of nodes at a time.
    shares, edge_shares, edge_messages = torch.zeros(3, before.shape[1], dtype=torch.float64)
    for part in blocks(len(before)):
        heard = with_labels(found.answers[part], labels[part])
        shares += heard.sum(dim=0)
        edge_shares += degrees[part] @ heard
    for part in blocks(len(before)):
        heard = with_labels(found.answers[part], labels[part])
        edge_messages += degrees[part] @ messages(heard, homophily, shares / len(before))
    alike = homophily > 1 / before.shape[1]
    # Of calibrated answers the mean probability of the likeliest class is the share of them that is right.
    sure, less_sure = (float(each.max(dim=1).values.mean(dtype=torch.float64)) for each in (found.answers, before))
    lean = (LEAN + LEAN_PER_GAIN * max(sure - less_sure, 0.0)) * max(1.0, before.shape[1] / FEW_CLASSES)
    lean = min(lean, MOST_LEAN) * min(max(LEAN_PER_DOUBT * (1 - sure), LEAST_DOUBT), 1.0)
    return OwnerCounts(
        start=found.start.float(),
        codes=coded,
        model=found.model,
        proportions=found.belief.proportions,
        crowding=found.belief.crowding,
        edge_shares=edge_shares,
        edge_messages=edge_messages,
        # The mean answer around a node speaks for its class only where friends are alike. With many classes there are few
        # neighbours of each, and counts, noisy as they are, taught little: the mean must speak for itself.
        lean=lean if alike else 0.0,
        voice=VOICE if alike and (sure <= UNSURE or before.shape[1] > FEW_CLASSES) else 0.0,
    )


@dataclass(frozen=True, eq=False)
class OwnerRows:
    """The rows of all nodes for their owners, made as they are asked for: four tables side by side would be the largest of all.

    Attributes:
        published: n x c, class probabilities that read no edge of their own.
        labels: n: public labels, -1 for unknown ones.
        counts: None where no counts were released.
        counted_alone: owners count neighbours by the codes that were counted, not by the published answers too.
    """

    published: Tensor
    labels: Tensor
    counts: OwnerCounts | None
    counted_alone: bool = False

    def __len__(self) -> int:
        return len(self.published)

    def __getitem__(self, places: slice | Tensor) -> Tensor:
        """Rows as the way takes them, float64."""
        published, counts = self.published[places], self.counts
        classes, heard = published.shape[1], with_labels(published, self.labels[places])
        if counts is None:
            return torch.cat([published.double(), heard], dim=1)
        coded = later = counts.share_counted * one_hot(heard.argmax(dim=1), classes).double()
        if counts.share_counted == 1:  # else labels are among the later codes, and those of more neighbours tell more
            coded = one_hot(counts.codes[places], classes).double()
            later = coded if self.counted_alone else later
        return torch.cat([counts.start[places].double(), coded, later, heard], dim=1)


def owners_way(
    published: Tensor, labels: Tensor, counts: OwnerCounts | None, homophily: float
) -> tuple[Way, OwnerRows]:
    """How owners are answered, and the rows of all nodes for that.

    Args:
        published: n x c, class probabilities that read no edge of their own.
        labels: n: public labels, -1 for unknown ones.
        counts: None where no counts were released.
        homophily: the share of edges inside a class.
    """
    rows, classes = OwnerRows(published, labels, counts), published.shape[1]
    nothing = torch.zeros(classes, dtype=torch.float64)
    if counts is None:
        total = sum((part.double().sum(dim=0) for part in published.split(BATCH_ROWS)), nothing)
        return Evidence(homophily=homophily, shares=total / len(rows)), rows
    total = sum((rows[part].sum(dim=0) for part in row_slices(len(rows))), nothing.repeat(4))
    _, counted, later, total = total.split(classes)
    # Regressions were taught on the codes that were counted. Where classes became far more common or rarer since, they cannot be
    # asked at the later ones.
    moved = float((counted - later).abs().sum()) / 2 > _MOVED * float(later.sum())
    rows = OwnerRows(published, labels, counts, moved)
    way = ExactCounts(
        table=torch.cat(counts.model.tables.unbind(), dim=1).numpy(),
        weights=counts.model.weights.numpy(),
        proportions=counts.proportions.numpy(),
        crowding=counts.crowding.numpy(),
        edge_shares=counts.edge_shares,
        edge_messages=counts.edge_messages,
        shares=total / len(rows),
        homophily=homophily,
        lean=counts.lean,
        voice=counts.voice,
        share_counted=counts.share_counted,
    )
    return way, rows


class StatisticRecord(Record, frozen=True, kw_only=True):
    """A released statistic, but for its numbers."""

    name: str
    shape: tuple[Count, Count]
    standard_deviation: NotNegative
    symmetric: bool
    sensitivity: NotNegative
    share: NotNegative


class TableRecord(Record, frozen=True, kw_only=True):
    """A released table of neighbour counts, but for its numbers; no rate: no noise. `one_way` is there where it is true."""

    rate: NotNegative | None
    rounds: Count
    one_way: bool | None = None


class MomentsRecord(Record, frozen=True, kw_only=True):
    """The settings in `release.json`, with what the tensors are; `class_shares` is there if they were told."""

    homophily: UpToOne
    nodes: Count
    training_nodes: Checksum
    training_rows: Count
    right: Annotated[int, Meta(ge=-(2**62), le=2**62)] | None
    asked: Annotated[int, Meta(ge=0, le=2**62)]
    own_edges: bool
    gain: NotNegative
    lean: NotNegative
    voice: UpToOne
    regressions: Annotated[int, Meta(ge=0, le=1000)]
    statistics: list[StatisticRecord]
    tables: list[TableRecord]
    class_shares: list[float] | None = None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MomentsModel(Model):
    """Everything here is public: each part is a function of public data and of the noisy statistics.

    Attributes:
        answers: n x c, float32: class probabilities of the nodes of the training table, without counts.
        cached: the same with the released counts; None where there are none.
        labels: n: the public labels of labelled nodes, -1 elsewhere.
        counts: what owners need to ask at exact counts; None where no counts were released.
        encoder: the student, a linear model taught by the answers: it answers for nodes never seen.
        homophily: the share of edges inside a class (`GraphFacts.cautious_homophily`).
        right: the noisy number of validation nodes that their owners answer right; None if that was not counted.
        asked: the number of validation nodes; 0 if nothing was counted, though there may be some.
        gain: the mean loss that counts spared the nodes that judge; 0 without counts.
        own_edges: whether owners are answered from their edges; False where that would be worse than published answers, as the
            released numbers say.
        class_shares: how common classes are, as whoever trained said; None if nobody did.
        statistics, tables: what was released, so that anybody can make something better of it.
    """

    method = Moments.name
    accesses = ("none", "cached", "own-edges", "public-graph")
    record_type = MomentsRecord
    answers: Tensor
    cached: Tensor | None
    labels: Tensor
    counts: OwnerCounts | None
    homophily: float
    right: int | None
    asked: int
    gain: float = 0.0
    own_edges: bool
    class_shares: tuple[float, ...] | None = None
    statistics: tuple[NoisyStatistic, ...]
    tables: tuple[NoisyCounts, ...]

    @property
    def choices(self) -> str:
        """With no validation nodes, or too few, nothing was counted, so nothing was chosen by that."""
        price, edges = self.receipt.plan.get("answer_epsilon"), self.receipt.plan.get(EDGES_FIELD, 1)
        price = price * edges if isinstance(price, float) and isinstance(edges, int) else math.inf
        counted = (
            "; whether owners are answered from their edges was chosen by these too, and by a noisy count of right answers"
            + (f", which takes {price!r} of epsilon." if math.isfinite(price) else ".")
        )
        uncounted = (
            "; so was whether owners are answered from their edges: no right answers were counted to check that."
        )
        told = (
            " How common classes are was told by whoever trained, who vouches that this is public knowledge: no promise covers "
            "shares that were counted with private edges."
        )
        return (
            "nothing was chosen by looking at private edges for free. Constants are the same for all graphs; what is automatic "
            "was chosen from public features and labels, or from the released numbers, which is free"
        ) + ((counted if self.asked else uncounted) + ("" if self.class_shares is None else told))

    def taught(self, nodes: PublicNodes, mask: Tensor) -> int:
        return int((self.labels >= 0)[mask].sum()) if nodes.fingerprint == self.training_nodes else 0

    @property
    def access_words(self) -> dict[str, str]:
        """Also where an access gives what another one gives."""
        words = super().access_words
        if not self.tables:
            words["cached"] = f"No counts were released, so this gives what `none` gives. {words['none']}"
        if not self.own_edges:
            words["own-edges"] = (
                "Own edges are left out, since the released numbers say that they are no help here: this gives what `cached` "
                "gives. No answer depends on an edge, so the model's promise covers every answer; it is delivered to the owner "
                "of the node all the same."
            )
        return words

    @property
    def best_public_access(self) -> Access:
        return "cached" if self.tables else "none"

    @property
    def best_answers(self) -> Tensor:
        """Of the nodes of the training table: with counts where there are any."""
        return self.answers if self.cached is None else self.cached

    def by_edges(self, numbers: Sequence[int] = STATED_EDGES) -> Mapping[int, Budget | None]:
        """From the exact curve of its plan."""
        receipt = self.receipt
        if not receipt.keeps_promise or receipt.budget == NOTHING:
            return {}
        return mixed_plan_from(receipt.plan, receipt.budget).by_edges(numbers)

    def tensors(self) -> dict[str, Tensor]:
        """The answers, what owners need, and what was released."""
        counts, named = self.counts, {"answers": self.answers, "labels": self.labels}
        named["training_rows"] = self.training_rows
        named |= {f"statistic.{place}": statistic.value for place, statistic in enumerate(self.statistics)}
        named |= {f"counts.{place}": table.value for place, table in enumerate(self.tables)}
        if self.cached is not None:
            named["cached"] = self.cached
        if counts is not None:
            named |= {
                "start": counts.start,
                "codes": counts.codes,
                "proportions": counts.proportions,
                "crowding": counts.crowding,
                "edge_shares": counts.edge_shares,
                "edge_messages": counts.edge_messages,
                "weights": counts.model.weights,
                "regressions": counts.model.tables,
            }
        return named

    def description(self) -> str:
        """What it is, for the model card."""
        names = ", ".join(
            dict.fromkeys([*(each.name for each in self.statistics), *["neighbour counts"] * len(self.tables)])
        )
        told = "" if self.class_shares is None else ", and class shares that were told,"
        return (
            f"Noisy statistics of the edges of a private graph were released once ({names}). From these and from public\n"
            f"features and labels{told} alone an ensemble answers for the nodes of that graph, and a linear model, taught by it, "
            "for\n"
            f"nodes never seen. Share of edges inside a class, cautiously estimated: {self.homophily:.2f}."
            + ("\nCounts are of labelled neighbours alone." if any(each.one_way for each in self.tables) else "")
            + ("" if self.tables else "\nNo counts were released, so access `cached` gives what `none` gives.")
            + ("" if self.own_edges else "\nOwn edges were no help here: `own-edges` gives what `cached` gives.")
        )

    def scorer(self, *, restart: float | None = None, device: str = "cpu") -> Scorer:
        if restart is not None:
            rule = f"belongs to models of the paper's method, not of the method '{self.method}'"
            raise InputError("inference_restart", rule=rule, got=restart, fix="Leave it out for this model.")
        best = self.best_answers
        way, made = owners_way(best, self.labels, self.counts, self.homophily)
        rows = made[:] if self.own_edges else best.double()
        return AnswersScorer(
            answers=self.answers,
            published=best,
            student=self.encoder.on(device),
            way=way if self.own_edges else PublishedAnswers(),
            rows=rows,
            homophily=self.homophily,
            training_nodes=self.training_nodes,
            training_rows=self.training_rows,
        )

    def record(self) -> MomentsRecord:
        counts = self.counts
        return MomentsRecord(
            homophily=self.homophily,
            nodes=len(self.answers),
            training_nodes=self.training_nodes,
            training_rows=len(self.training_rows),
            right=self.right,
            asked=self.asked,
            own_edges=self.own_edges,
            gain=self.gain,
            class_shares=None if self.class_shares is None else list(self.class_shares),
            lean=0.0 if counts is None else counts.lean,
            voice=0.0 if counts is None else counts.voice,
            regressions=0 if counts is None else len(counts.model.weights),
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
            tables=[
                TableRecord(
                    rate=each.rate if math.isfinite(each.rate) else None,
                    rounds=each.rounds,
                    one_way=each.one_way or None,
                )
                for each in self.tables
            ],
        )

    @classmethod
    def layout(cls, record: MomentsRecord, *, width: int, num_classes: int) -> Layout:
        """Answers, what owners need, and what was released."""
        if any(entry.symmetric and entry.shape[0] != entry.shape[1] for entry in record.statistics):
            refuse(RELEASE, "a symmetric table in 'statistics' must be square")
        if math.fsum(entry.share for entry in record.statistics) > 1 + _SLACK:
            refuse(RELEASE, "the shares in 'statistics' must add to at most 1")
        if len(record.tables) > MOST_ROUNDS or bool(record.tables) != (record.regressions > 0):
            refuse(RELEASE, "'tables' must be at most two, with regressions on them")
        if (record.lean or record.voice or record.gain) and not record.tables:
            refuse(RELEASE, "'lean', 'voice' and 'gain' must be 0 without 'tables'")
        nodes, table = (record.nodes,), (record.nodes, num_classes)
        layout: Layout = {"answers": ("F32", table), "labels": ("I64", nodes)}
        layout["training_rows"] = ("I64", (record.training_rows,))
        layout |= {f"statistic.{place}": ("F64", entry.shape) for place, entry in enumerate(record.statistics)}
        layout |= {f"counts.{place}": ("I64", table) for place in range(len(record.tables))}
        if record.tables:
            layout["cached"] = ("F32", table)
        if record.regressions:
            layout |= {"start": ("F32", table), "codes": ("I64", nodes)}
            layout |= {"edge_shares": ("F64", (num_classes,)), "edge_messages": ("F64", (num_classes,))}
            layout |= {"weights": ("F64", (record.regressions,))}
            layout |= {"proportions": ("F64", (num_classes, num_classes)), "crowding": ("F64", (num_classes,))}
            layout["regressions"] = ("F64", (record.regressions, 5 * num_classes + 1, num_classes))
        return layout

    @classmethod
    def from_parts(cls, record: MomentsRecord, tensors: Mapping[str, Tensor], common: Common) -> MomentsModel:
        """The model again, if its answers are probabilities and its noise is what its promise needs."""
        if common.receipt.keeps_promise:
            _check_promise(record, common.receipt)  # `gcon statement --verify` checks more, by other code
        classes, counts, told = len(common.class_names), None, None
        if record.class_shares is not None:
            try:
                told = checked_shares(record.class_shares, classes)
            except InputError:
                refuse(RELEASE, "'class_shares' must hold a share for every class, together 1")
        for name in tensors.keys() & {"answers", "cached", "start"}:
            table = tensors[name]
            if bool((table < 0).any()) or not bool(((table.double().sum(dim=1) - 1).abs() <= _ROW_SLACK).all()):
                refuse(TENSORS, f"'{name}' must hold class probabilities, row by row")
        one_way = any(entry.one_way for entry in record.tables)
        ranges = {"labels": -1} | ({"codes": -1 if one_way else 0} if record.regressions else {})
        for name, least in ranges.items():
            if not least <= int(tensors[name].min()) <= int(tensors[name].max()) < classes:
                refuse(TENSORS, f"'{name}' must hold class numbers")
        if record.regressions:
            for name in ("edge_shares", "weights"):
                if bool((tensors[name] < 0).any()) or not abs(float(tensors[name].sum()) - 1) <= _ROW_SLACK:
                    refuse(TENSORS, f"'{name}' must hold shares that add to 1")
            if not bool((tensors["crowding"] >= _LEAST_SHARE).all()):
                refuse(TENSORS, "'crowding' must hold numbers above 0")
            proportions = tensors["proportions"]
            adding = bool(((proportions.sum(dim=1) - 1).abs() <= _ROW_SLACK).all())
            if not adding or not bool((proportions >= _LEAST_SHARE).all()):
                refuse(TENSORS, "'proportions' must hold shares above 0, row by row")
            if bool((tensors["edge_messages"].abs() > 1 + _ROW_SLACK).any()):
                refuse(TENSORS, "'edge_messages' must hold messages, from -1 to 1")
            counts = OwnerCounts(
                start=tensors["start"],
                codes=tensors["codes"],
                model=CountModel(tensors["weights"], tensors["regressions"]),
                proportions=tensors["proportions"],
                crowding=tensors["crowding"],
                edge_shares=tensors["edge_shares"],
                edge_messages=tensors["edge_messages"],
                lean=float(record.lean),
                voice=float(record.voice),
            )
        return cls(
            answers=tensors["answers"],
            cached=tensors.get("cached"),
            labels=tensors["labels"],
            counts=counts,
            encoder=common.encoder,
            homophily=record.homophily,
            class_names=common.class_names,
            training_nodes=record.training_nodes,
            training_rows=tensors["training_rows"],
            right=record.right,
            asked=record.asked,
            own_edges=record.own_edges,
            gain=float(record.gain),
            class_shares=told,
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
            tables=tuple(
                NoisyCounts(
                    value=tensors[f"counts.{place}"],
                    rate=math.inf if entry.rate is None else float(entry.rate),
                    rounds=entry.rounds,
                    one_way=bool(entry.one_way),
                )
                for place, entry in enumerate(record.tables)
            ),
            receipt=common.receipt,
        )


def _check_promise(record: MomentsRecord, receipt: Receipt) -> None:
    """The plan costs what the receipt says, and statistics and tables have the plan's noise."""
    said = receipt.plan
    try:
        rates: Any = said["rates"]
        numbers: list[Any] = [said["distance"], said["first_share"], said["answer_epsilon"], *rates]
        if any(type(number) is not float for number in numbers):
            raise TypeError
        plan = mixed_plan_from(said, receipt.budget)
    except (PlanMismatchError, InputError, TypeError, ValueError, KeyError, ArithmeticError):
        refuse(RELEASE, "'receipt' claims a smaller budget than the noise in its plan costs")
    distance = numbers[0]
    for entry in record.statistics:
        needed = entry.sensitivity / max(distance * math.sqrt(max(entry.share, 1e-300)), 1e-300)
        if entry.sensitivity > 0 and not entry.standard_deviation >= needed:
            refuse(RELEASE, "'receipt' claims a promise that the noise in 'statistics' is too small for")
    before = math.fsum(entry.share for entry in record.statistics)
    for table in record.tables:
        rounds = table.rounds
        kinds, kind = KINDS[plan.one_way], (rounds, bool(table.one_way))
        if kind not in kinds or table.rate != plan.rates[kinds.index(kind)] or len(record.tables) > rounds:
            refuse(RELEASE, "'receipt' claims a promise that the noise in 'tables' is too small for")
        if before > plan.first_share + _SLACK:
            refuse(RELEASE, "'receipt' claims a promise for more moments than may come before 'tables'")
    if record.right is not None and plan.answer_epsilon == 0:
        refuse(RELEASE, "'receipt' claims a promise for a count of right answers that its plan does not pay")


@dataclass(frozen=True, eq=False, kw_only=True)
class AnswersScorer(Scorer):
    """The start is class probabilities: known answers of the nodes of the training table, the student's for other nodes.

    Attributes:
        answers: of the nodes of the training table, for access `none`.
        published: of the nodes of the training table, for access `cached`.
        student: answers for nodes never seen.
        way: how owners are answered.
        rows: of the nodes of the training table, for owners.
        homophily: the share of edges inside a class.
        training_nodes: checksum of the feature table that the answers belong to.
        training_rows: digests of its rows.
    """

    answers: Tensor
    published: Tensor
    student: Encoder
    way: Way
    rows: Tensor
    homophily: float
    training_nodes: str
    training_rows: Tensor = field(default_factory=nothing_known)

    def start_of_rows(self, features: Tensor, access: Access) -> Callable[[slice], Tensor]:
        """Known answers for the nodes of the training table, the student's for others; for owners the rows of their way."""
        self.student.check(features[:0])  # the width alone: no row is read
        if features_fingerprint(features) == self.training_nodes:
            known = {"none": self.answers, "cached": self.published}.get(access, self.rows)
            return lambda rows: known[rows].double()
        if access == "cached":
            rule, fix = "must be the training table for access='cached'", "Use access='none' for other nodes."
            got = "others"
            if recognises(self.training_rows, features):
                got = "a part of it, another order, or changed rows"
                fix = "Pass the whole table as it was and pick rows afterwards, or use access='none'."
            raise InputError("nodes", rule=rule, got=got, fix=fix)
        if access == "none":
            if recognises(self.training_rows, features):
                warn_caller(_PART, AnswersWarning)
            return lambda rows: self.student.probabilities(features[rows]).double()
        return lambda rows: self.way.rows(self.student.probabilities(features[rows]))

    def without_edges(self, start: Tensor) -> Tensor:
        return start.clamp_min(1e-12).log()

    def own_edges_of_rows(self, start: Tensor, edges: Edges) -> Callable[[slice], Tensor]:
        scores = scores_with_own_edges(self.way, start, edges, self.answers.shape[1])
        return lambda rows: scores[rows]

    def own_edges_of_one(self, start: Tensor) -> Callable[[int, NDArray[Any]], NDArray[np.float64]]:
        of_row = row_scores(self.way, start)

        def shares(row: int, neighbours: NDArray[Any]) -> NDArray[np.float64]:
            scores = of_row(row, neighbours)
            raised: NDArray[np.float64] = np.exp(scores - np.maximum.reduce(scores))
            raised /= np.add.reduce(raised)
            return raised

        return shares

    def public_graph(self, start: Tensor, edges: Edges) -> Tensor:
        """The same, and answers from further away."""
        classes = self.answers.shape[1]
        near = scores_with_own_edges(self.way, start, edges, classes)
        return near + scores_from_far(start[:, -classes:].contiguous(), edges, self.homophily)
