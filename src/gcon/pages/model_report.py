"""The report of one released model: made of the release, of public nodes, and of what the ledger has paid for."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor

from gcon.machine import threads_for
from gcon.mechanisms.counts import ENDS_OF_AN_EDGE, geometric_deviation
from gcon.mechanisms.gaussian_curve import gaussian_multiplier
from gcon.methods.calibration import calibration_error
from gcon.methods.controls import MomentsWithoutEdges
from gcon.methods.model import Model
from gcon.methods.moments import MomentsModel
from gcon.methods.predictions import why_no_promise
from gcon.nodes import FEWEST_SCORED, PublicNodes
from gcon.pages.frame import render
from gcon.pages.model_page import MOST_CLASSES, public_facts, spent
from gcon.pages.promise_page import several_edges
from gcon.pages.scored_nodes import ScoredNodes, no_measure, scored
from gcon.pages.shares import Share, paid_share, share_of
from gcon.privacy.attacker import in_words, right_at_most
from gcon.privacy.budget import MOST_EDGES, NOTHING, Budget, compose, protected_change
from gcon.privacy.ledger import LedgerEntry, Outcome
from gcon.version import __version__
from gcon.writing import OWNER_ONLY, write_whole

NOT_MEASURED = (
    "How often owners are answered right from their own edges is not known: that number depends on private edges, and nobody "
    "has paid enough to publish one that says something. gcon evaluate MODEL --access own-edges --paid EPSILON buys it."
)
NO_HELP = "Own edges were no help here, by a noisy count that was paid for: owners get the published answers."
NOT_COMPARED = (
    "A model that never saw an edge in training can be asked with own edges too. What it reaches then would have to be paid "
    "for, so the number for own edges alone does not say what the budget bought."
)


@dataclass(frozen=True, kw_only=True)
class Report:
    """A page about one model. A notebook shows it; `save` writes it.

    Attributes:
        html: the page, which needs nothing but itself.
        headline: what it says first, in sentences.
        publishable: whether it may be published: the model keeps its promise, and all else is public or was paid for.
    """

    html: str
    headline: tuple[str, ...]
    publishable: bool

    def save(self, path: str | Path) -> Path:
        """Write the page, whole or not at all; only its owner can read a file that is not for publication."""
        return write_whole(Path(path), self.html, mode=0o644 if self.publishable else OWNER_ONLY)

    def __repr__(self) -> str:
        return "\n".join(self.headline)

    def _repr_html_(self) -> str:
        """The page in a frame of its own, so that its style and the notebook's do not meet."""
        inside = html.escape(self.html, quote=True)
        return (
            f'<iframe title="gcon report" sandbox style="width:100%;height:40rem;border:0" srcdoc="{inside}"></iframe>'
        )


def model_report(
    model: Model,
    nodes: PublicNodes | None = None,
    *,
    name: str | None = None,
    control_seed: int | None = 0,
    entries: Sequence[LedgerEntry] = (),
    step: Callable[[str], None] = lambda stage: None,
) -> Report:
    """The report of a model.

    Args:
        model: the released model.
        nodes: public nodes, for accuracy, confusion and calibration; those of the training table also for the control.
        name: of the data set, for people; the one in the release unless told.
        control_seed: of the control's networks; None leaves the control out.
        entries: of the data set's ledger, if its spending is to be shown line by line.
        step: is called with the name of every stage.

    Privacy:
        Reads the released model, public nodes, and of the ledger what was charged and what was bought: no edge. It may be
        published if the model keeps a promise, and says so on its face.
    """
    receipt, reason = model.receipt, why_no_promise(model.receipt)
    answers, against, part = _answers(model, nodes, step)
    shown = answers[0] if answers else None
    trained_on = nodes is not None and nodes.fingerprint == model.training_nodes
    control = None
    if shown is not None and nodes is not None and trained_on and control_seed is not None:
        step("train the control, without edges")
        control_nodes = nodes
        if (
            isinstance(model, MomentsModel)
            and model.class_shares is not None
            and nodes.class_names == model.class_names
        ):
            control_nodes = replace(nodes, class_shares=model.class_shares)  # what was told is no gain of the edges
        control = _control(control_nodes, part, control_seed)
    own = paid_share(model, entries)
    compared = None if shown is None or control is None else _compared(shown, control)
    no_help = isinstance(model, MomentsModel) and not model.own_edges
    published = "Answers that may be published" if reason is None else "Answers that read no edge"
    headline = _headline(published, shown or str(against), part, compared, own, NO_HELP if no_help else NOT_MEASURED)
    counted = [entry for entry in entries if _counts(entry)]
    known = compose(entry.request.cost for entry in counted)  # less than the receipt's, if that is an old copy
    total = Budget(max(known.epsilon, receipt.total.epsilon), max(known.delta, receipt.total.delta))
    values = {
        "name": name or receipt.data_set,
        "model": model,
        "receipt": receipt,
        "reason": reason,
        "version": __version__,
        "headline": headline,
        "answers": None if shown is None else share_of(shown.right, part),
        "control": None if control is None else share_of(control, part),
        "own": own,
        "not_compared": NOT_COMPARED,
        "by_access": [(_ACCESSES[each.access, trained_on], share_of(each.right, part)) for each in answers],
        "as_new": any(each.access == "new" for each in answers),
        "scored": shown,
        "part": part,
        "not_scored": against,
        "most_classes": MOST_CLASSES,
        "calibration_error": 0.0 if shown is None else calibration_error(shown.reliability),
        "right_at_most": right_at_most(receipt.budget),
        "total": total,
        "right_in_all": right_at_most(total),
        "shown_dots": math.ceil(100 * right_at_most(receipt.budget) - 1e-9),
        "reads_nothing": receipt.budget == NOTHING,
        "edges": protected_change(record=receipt.plan).edges,
        "several": several_edges(model, (1, 2, MOST_EDGES)),
        "sentences": (
            *model.statement().sentences,
            *([in_words(receipt.budget)] if reason is None and receipt.budget != NOTHING else []),
        ),
        "bells": _bells(model),
        "noise": noise_rows(model),
        "facts": public_facts(model, name),
        "spent": spent(model),
        "entries": [_line(entry) for entry in counted],
    }
    return Report(html=render("model_report.html", values), headline=headline, publishable=reason is None)


_ACCESSES = {  # by access, and whether the nodes are those of the training table
    ("cached", True): "nodes of the training table, with their released counts (cached)",
    ("none", True): "nodes of the training table, looked up in the model (none)",
    ("new", True): "new nodes, from their features alone (none)",
    ("none", False): "any node, from its features alone (none)",
}


def _answers(
    model: Model, nodes: PublicNodes | None, step: Callable[[str], None]
) -> tuple[list[ScoredNodes], str | None, str]:
    """Every published way to answer, the best one first; or why there is none; and which nodes are asked about."""
    if nodes is None:
        return [], "no table of public nodes was given (--nodes FILE, or a data set by name; in Python X and y)", ""
    masks = {"test": nodes.test_mask, "validation": nodes.validation_mask}
    part = next((part for part, mask in masks.items() if int(mask.sum()) >= FEWEST_SCORED), None)
    if part is None:
        return [], f"the table has fewer than {FEWEST_SCORED} labelled test or validation nodes", ""
    if (reason := no_measure(model, nodes, masks[part])) is not None:
        return [], reason, part
    step("ask the model")
    kinds = ["none"]
    if nodes.fingerprint == model.training_nodes and isinstance(model, MomentsModel):
        kinds = ["cached", "none", "new"] if model.tables else ["none", "new"]
    return [scored(model, nodes, mask=masks[part], access=kind) for kind in kinds], None, part


def _control(nodes: PublicNodes, part: str, seed: int) -> Tensor:
    """Which nodes are answered right by the same pipeline without any edge: public learning, which costs nothing."""
    with threads_for(*nodes.features.shape):
        trained = MomentsWithoutEdges(seed=seed).learn(nodes)
    mask = nodes.test_mask if part == "test" else nodes.validation_mask
    classes = trained.score_functions["none"](nodes.features, None).argmax(dim=1)
    return classes[mask] == nodes.labels[mask]


def _compared(shown: ScoredNodes, control: Tensor) -> tuple[float, float, float]:
    """The control's share, how much better the model is, and the standard error of that, node by node."""
    gap = shown.right.double() - control.double()
    error = float(gap.std(correction=0)) / math.sqrt(len(gap))
    return float(control.double().mean()), float(gap.mean()), error


def _headline(
    published: str,
    shown: ScoredNodes | str,
    part: str,
    compared: tuple[float, float, float] | None,
    own: Share | None,
    without: str,
) -> tuple[str, ...]:
    """What the report says first, also where that is not what one hoped for; instead of scores: why there are none."""
    said = []
    if isinstance(shown, str):
        said.append(f"No accuracy: {shown}. It takes labels, and {FEWEST_SCORED} or more nodes marked for testing.")
    else:
        said.append(f"{published} are right for {100 * shown.accuracy:.1f} % of {shown.count} {part} nodes.")
    if compared is not None:
        level, gain, error = compared
        points = f"{abs(100 * gain):.1f} points {'less' if gain > 0 else 'more'} (standard error {100 * error:.1f})"
        meaning = "the difference may be chance"
        if gain > 2 * error:
            meaning = "the difference is what the budget bought"
        elif gain < -2 * error:
            meaning = "for published answers the budget bought nothing here"
        said.append(f"The control, which spends nothing, reaches {100 * level:.1f} %, {points}: {meaning}.")
    paid = " that was paid for" if published.endswith("published") else ""
    if own is not None:
        said.append(
            f"Owners, answered from their own edges, get right answers for about {own.words} % ± {own.give_or_take} "
            f"({own.nodes}{paid})."
        )
    else:
        said.append(without)
    return tuple(said)


def noise_rows(model: Model) -> list[tuple[str, str, str, str]]:
    """Every released statistic: its name, what the protected edges can change, the noise, and their ratio."""
    if not isinstance(model, MomentsModel):
        return []
    changes = [
        (f"{each.name}, {_shape(each.value)}", each.sensitivity, each.standard_deviation) for each in model.statistics
    ]
    changes += [
        (f"neighbour counts{' of labelled ones' * each.one_way}, {_shape(each.value)}", 1.0, each.standard_deviation)
        for each in model.tables
    ]
    epsilon = float(str(model.receipt.plan["answer_epsilon"]))
    if model.right is not None and 0 < epsilon < math.inf:
        changes.append(("count of right answers", ENDS_OF_AN_EDGE, geometric_deviation(epsilon / ENDS_OF_AN_EDGE)))
    return [
        (name, f"{change:.3g}", f"{noise:.3g}", f"{noise / change:.3g}")
        for name, change, noise in changes
        if change > 0
    ]


def _shape(value: Tensor) -> str:
    return "\u00a0x\u00a0".join(map(str, value.shape))  # on one line


def _bells(model: Model) -> dict[str, object] | None:
    """Two worlds: where a number with Gaussian noise falls with the protected edges and without them, at the same promise.

    Releases of several kinds have no one curve of their own; only where some of the noise is Gaussian is this near to it.
    """
    budget, distance = model.receipt.budget, model.receipt.plan.get("distance")
    if not model.receipt.keeps_promise or not isinstance(distance, int | float) or not 0 < distance < math.inf:
        return None
    gap = 1 / gaussian_multiplier(budget.epsilon, budget.delta)
    low, high = -3.6, 3.6 + gap
    places = [low + (high - low) * step / 120 for step in range(121)]

    def curve(middle: float) -> str:
        heights = [math.exp(-((place - middle) ** 2) / 2) for place in places]
        return " ".join(
            f"{400 * (place - low) / (high - low):.1f},{110 - 96 * height:.1f}"
            for place, height in zip(places, heights, strict=True)
        )

    middles = [400 * (middle - low) / (high - low) for middle in (0.0, gap)]
    return {"without": curve(0.0), "with_edge": curve(gap), "middles": middles, "ratio": 1 / gap}


def _counts(entry: LedgerEntry) -> bool:
    """Whether an entry is spending: diagnostics cost nothing and are nobody else's business."""
    return entry.request.cost != NOTHING and entry.outcome is not Outcome.WITHDRAWN


def _line(entry: LedgerEntry) -> tuple[object, ...]:
    """What is public of an entry; how it ended is not, unless something was released."""
    cost = entry.request.cost
    return (entry.number, entry.time[:10], f"{cost.epsilon:g}", f"{cost.delta:g}", entry.request.purpose)
