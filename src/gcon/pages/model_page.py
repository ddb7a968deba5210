"""model.html: what the model is, what it promises under which access, how it does on public test nodes, what was spent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape

from gcon.methods.model import Model
from gcon.methods.predictions import may_be_published, why_no_promise
from gcon.nodes import PublicNodes
from gcon.pages.frame import site_page
from gcon.pages.html_page import Row, table
from gcon.pages.scored_nodes import ScoredNodes, reason_against, scored
from gcon.pages.site_words import LIMITS, items, percent
from gcon.privacy.attacker import in_words
from gcon.privacy.budget import NOTHING
from gcon.privacy.statement import ACCESS_PROMISES
from gcon.version import __version__

MOST_CLASSES = 40  # that are named or drawn: a larger matrix is no drawing any more, and no small page


def model_page(model: Model, nodes: PublicNodes | None) -> str:
    """The page.

    Args:
        model: the released model.
        nodes: public nodes with labels and a test mask, for the confusion matrix; no edge is read.

    Privacy:
        A function of the released model and of public nodes.
    """
    receipt = model.receipt
    reason = why_no_promise(receipt)
    warning = (
        ""
        if reason is None
        else f'<p class="warn"><strong>This model carries no promise:</strong> {escape(reason)}. It is for the operator and for '
        "comparison only.</p>"
    )
    sections = {
        "what": ("What it is", _what(model)),
        "promise": ("The promise", items(_promise(model))),
        "access": ("Who may see which answers", _access(model)),
        **_quality(model, nodes),
        "plan": ("The noise plan", _plan(receipt.plan)),
        "ledger": ("What was spent", _ledger(model)),
        "limits": ("Limits", items(LIMITS)),
    }
    return site_page(
        "model.html",
        "About the model",
        header=f"<p>A node classifier, released with gcon {escape(__version__)}.</p>\n{warning}",
        sections=sections,
    )


def _what(model: Model) -> str:
    names = [str(name) for name in model.class_names]
    shown = ", ".join(names[:MOST_CLASSES]) + (
        f" and {len(names) - MOST_CLASSES} more" if len(names) > MOST_CLASSES else ""
    )
    rows: list[Row] = [
        ("method", model.method),
        ("data set", model.receipt.data_set),
        ("purpose", model.receipt.purpose),
        ("released", model.receipt.time),
        ("features a node", model.encoder.num_features),
        (f"{len(names)} classes", shown),
    ]
    return f"<p>{escape(model.description())}</p>{_plain(table(('fact', 'value'), rows, 'Public facts.'))}"


def _promise(model: Model) -> tuple[str, ...]:
    receipt = model.receipt
    more = () if not receipt.keeps_promise or receipt.budget == NOTHING else (in_words(receipt.budget),)
    return (*model.statement().sentences, *more)


def _access(model: Model) -> str:
    reason = why_no_promise(model.receipt)

    def audience(access: str) -> str:
        if reason is not None:
            return "operator only"
        return "owner only" if access == "own-edges" else "everybody"

    lines = "".join(
        f"<dt><code>{escape(access)}</code>: {audience(access)}</dt><dd>{escape(ACCESS_PROMISES[access])}</dd>"
        for access in model.accesses
    )
    no_promise = "" if reason is None else "<p>What an answer would promise if the model kept a promise:</p>"
    return f"<p>By the edges that an answer reads.</p>{no_promise}<dl>{lines}</dl>"


def _quality(model: Model, nodes: PublicNodes | None) -> dict[str, tuple[str, str]]:
    """How it does on the test nodes with no edge read; where that may not or cannot be said, why."""
    against = reason_against(model, nodes)
    if nodes is None or against is not None or not may_be_published("none", why_no_promise(model.receipt)):
        return {
            "confusion": ("Confusion matrix", f"<p>Not shown: {escape(against or 'the model keeps no promise')}.</p>")
        }
    found = scored(model, nodes)
    head = (
        f"<p>On {found.count} public test nodes, with no edge read at prediction, {percent(found.accuracy)} of the labels are "
        "right. These numbers are covered by the promise.</p>"
    )
    return {
        "confusion": ("Confusion matrix", head + _confusion(found)),
        "calibration": ("Can its probabilities be believed?", _reliability(found)),
    }


def _confusion(found: ScoredNodes) -> str:
    """Counts by true and predicted class; the deeper the colour, the larger the share of its row."""
    names = found.class_names
    if len(names) > MOST_CLASSES:
        return f"<p>Not shown: {len(names)} classes are too many for a matrix.</p>"
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    body = []
    for name, counts in zip(names, found.confusion, strict=True):
        total = max(1, sum(counts))
        cells = "".join(f'<td style="--share:{45 * count / total:.0f}%">{count}</td>' for count in counts)
        body.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    return (
        '<figure><div class="scroll" tabindex="0" role="region" aria-label="Confusion matrix"><table class="heat">'
        f'<thead><tr><th scope="col">true class</th>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div><figcaption>'
        "Rows: the true class. Columns: the class that the model says. The deeper the colour, the larger the share of its "
        "row.</figcaption></figure>"
    )


def _reliability(found: ScoredNodes) -> str:
    """Bars of how often the model is right at each level of its own sureness, with a mark where it said it would be."""
    lines = []
    for entry in found.reliability:
        lines.append(
            f'<dt>{percent(entry.confidence)}</dt><dd class="bar" aria-hidden="true"><span style="width: '
            f'{100 * entry.accuracy:.2f}%"></span><i style="left: {100 * entry.confidence:.2f}%"></i></dd>'
            f"<dd>{percent(entry.accuracy)}</dd>"
        )
    return (
        "<p>Test nodes in groups of equal size, from unsure to sure. On the left the probability that the model gives to its "
        "guess, on the right how often the guess is right; the mark is where the bar would end if the model knew itself "
        f'perfectly.</p><figure><dl class="chances">{"".join(lines)}</dl></figure>'
    )


def _plan(plan: Mapping[str, object]) -> str:
    """The plan's numbers, as the receipt holds them; lists of stages are left to the release's own files."""
    rows = [
        (key, "none" if value is None else f"{value:.6g}" if isinstance(value, float) else value)
        for key, value in sorted(plan.items())
        if isinstance(value, str | int | float | None)
    ]
    more = (
        "" if len(rows) == len(plan) else "<p class='small'>Lists are left out here; release.json has everything.</p>"
    )
    return _plain(table(("number", "value"), rows, "From the receipt.")) + more


def _ledger(model: Model) -> str:
    receipt = model.receipt

    def number(value: float) -> str:
        return "infinite: no promise" if math.isinf(value) else repr(value)

    rows = [
        ("this release", number(receipt.budget.epsilon), repr(receipt.budget.delta)),
        ("all releases from these edges so far", number(receipt.total.epsilon), repr(receipt.total.delta)),
    ]
    caption = "As the ledger knew it when this model was released (basic composition); later releases are not in it."
    return table(("what", "epsilon", "delta"), rows, caption)


def _plain(made: str) -> str:
    """A table whose cells hold sentences: they may break."""
    return made.replace("<table>", '<table class="plain">', 1)
