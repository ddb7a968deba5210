"""What model.html shows: what the model is and promises, how it does on public test nodes, and what was spent."""

from __future__ import annotations

import math
from collections.abc import Mapping

from gcon.methods.model import Model
from gcon.methods.predictions import why_no_promise
from gcon.nodes import PublicNodes
from gcon.pages.frame import number
from gcon.pages.scored_nodes import class_title, reason_against, scored
from gcon.privacy.attacker import in_words
from gcon.privacy.budget import NOTHING, Budget
from gcon.version import __version__

MOST_CLASSES = 40  # that are named or drawn: a larger matrix is no drawing any more, and no small page


def model_values(model: Model, nodes: PublicNodes | None, *, name: str | None = None) -> dict[str, object]:
    """The values of model.html.

    Args:
        model: the released model.
        nodes: public nodes with labels and a test mask, for the confusion matrix; no edge is read.
        name: of the data set, for people.

    Privacy:
        A function of the released model and of public nodes.
    """
    receipt, against = model.receipt, reason_against(model, nodes)
    means_something = receipt.keeps_promise and receipt.budget != NOTHING
    return {
        "version": __version__,
        "description": model.description(),
        "public_facts": public_facts(model, name),
        "sentences": (*model.statement().sentences, *([in_words(receipt.budget)] if means_something else [])),
        "accesses": [(access, _audience(model, access), words) for access, words in model.access_words.items()],
        "not_scored": against,
        "scored": scored(model, nodes) if nodes is not None and against is None else None,
        "looked_up": "cached" in model.accesses and nodes is not None and nodes.fingerprint == model.training_nodes,
        "most_classes": MOST_CLASSES,
        "plan": _numbers(receipt.plan),
        "spent": spent(model),
    }


def public_facts(model: Model, name: str | None = None) -> list[tuple[str, object]]:
    """What it is, in a table."""
    names, receipt = [class_title(name) for name in model.class_names], model.receipt
    more = f" and {len(names) - MOST_CLASSES} more" if len(names) > MOST_CLASSES else ""
    return [
        ("method", model.method),
        ("data set", name or receipt.data_set),
        ("purpose", receipt.purpose),
        ("released", receipt.time[:16].replace("T", " ")),
        ("features per node", model.encoder.num_features),
        (f"{len(names)} classes", ", ".join(names[:MOST_CLASSES]) + more),
    ]


def _audience(model: Model, access: str) -> str:
    if why_no_promise(model.receipt) is not None:
        return "operator only"
    return "owner only" if access == "own-edges" else "everybody"


def _numbers(plan: Mapping[str, object]) -> list[tuple[str, object]]:
    """The plan's numbers, as the receipt holds them; lists of stages are left to the release's own files."""
    return [
        (key, "none" if value is None else f"{value:.6g}" if isinstance(value, float) else value)
        for key, value in sorted(plan.items())
        if isinstance(value, str | int | float | None)
    ]


def spent(model: Model) -> list[tuple[str, str, str]]:
    """What was paid for this release, and for all that its ledger knew of."""
    others = "all releases from these edges so far" if model.receipt.counted else "all that one process knew of"
    return [("this release", *_budget(model.receipt.budget)), (others, *_budget(model.receipt.total))]


def _budget(budget: Budget) -> tuple[str, str]:
    epsilon = "infinite: no promise" if math.isinf(budget.epsilon) else number(budget.epsilon)
    return epsilon, repr(budget.delta)
