"""The steps that all releases share: what is claimed, whether a promise can be claimed at all, and what the folder says in words.

What people and machines are told in the folder is what the receipt says, and nothing else.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from gcon.verify.folder import Folder, expected_texts
from gcon.verify.steps import Steps

MECHANISMS = {"moments": "mixed release (moments)", "paper": "objective perturbation (GCON)"}
NOT_CHECKED = (
    "that the noise was drawn, from the operating system's generator, as the receipt says",
    "that the ledger's total is complete: releases that it was not told of are not in it",
    "who made this folder: checksums are no signature",
)

_PROMISE = re.compile(r"\(([^()]*)\)-differentially private")
_COPIED = ("data_set", "mechanism", "plan", "protected_change", "purpose", "randomness", "time")


def check_claim(folder: Folder, steps: Steps) -> None:
    """Promise, randomness, mechanism, total."""
    receipt, method = folder.model.receipt, folder.model.method
    steps.check("The receipt claims a promise: there is noise and no seed, or no edge matters", receipt.keeps_promise)
    steps.check(
        f"The noise came from the operating system's generator; the receipt says '{receipt.randomness}'",
        receipt.randomness == "operating system"
        or (free_of_edges(folder) and receipt.randomness == "seeded: no promise"),
    )
    steps.check(
        f"The mechanism is the one of method '{method}': '{receipt.mechanism}'",
        receipt.mechanism == MECHANISMS.get(method),
    )
    total, budget = receipt.total, receipt.budget
    steps.check(
        f"What {'the ledger' if receipt.counted else 'one process, without a ledger,'} knew in all, epsilon "
        f"{plainly(total.epsilon)} and delta {plainly(total.delta)}, covers this release, "
        f"epsilon {plainly(budget.epsilon)} and delta {plainly(budget.delta)}",
        total.covers(budget),
    )
    change = _changed(folder)
    steps.check(f"What is protected is what the plan says: {change}", receipt.protected_change == change)
    steps.check(
        f"The promise may fail with a probability below one half: delta {plainly(budget.delta)}",
        0 <= budget.delta < 0.5,
    )


def free_of_edges(folder: Folder) -> bool:
    """Whether the receipt says that nothing depends on edges."""
    budget = folder.model.receipt.budget
    return budget.epsilon == 0 and budget.delta == 0


def claim_of(folder: Folder) -> str:
    """The claim in words."""
    budget = folder.model.receipt.budget
    if free_of_edges(folder):
        return "nothing in this release depends on any edge"
    if not folder.model.receipt.keeps_promise or math.isinf(budget.epsilon):
        return "this release makes no promise"
    return f"this release is ({plainly(budget.epsilon)}, {plainly(budget.delta)})-differentially private for {_changed(folder)}"


def _changed(folder: Folder) -> str:
    """The protected change; a plan that names no number of edges protects one."""
    edges = folder.plan.get("protect_edges")
    return "one undirected edge" if edges is None else f"any {edges} undirected edges"


def plainly(value: float) -> str:
    """Every digit; whole numbers lose their point."""
    return repr(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)


def check_words(folder: Folder, steps: Steps) -> None:
    """The fields, the numbers of the promise, and then every sentence, written once more and compared byte by byte."""
    steps.check("The fields of privacy.json are those of the receipt, number by number", _same_fields(folder))
    budget = folder.model.receipt.budget
    numbers = f"{plainly(budget.epsilon)}, {plainly(budget.delta)}"
    for name, content in sorted(folder.texts.items()):
        found = set(_PROMISE.findall(content.decode(errors="replace")))
        if folder.model.receipt.keeps_promise and not free_of_edges(folder):
            steps.check(f"{name} promises ({numbers}) and nothing else", found == {numbers})
        else:
            steps.check(f"{name} promises no epsilon and delta", not found)
    written, maker = expected_texts(folder.model), folder.document["libraries"].get("gcon")
    for name in sorted(written):
        steps.check(
            f"{name} is word for word what receipt and settings lead to (in the words of this gcon; gcon {maker} wrote it, it "
            "says)",
            written[name] == folder.texts[name],
        )


def _same_fields(folder: Folder) -> bool:
    try:
        said = json.loads(folder.texts["privacy.json"])["fields"]
        receipt = folder.document["receipt"]
        expected = {name: receipt[name] for name in _COPIED}
        expected |= {name: receipt["budget"][name] for name in ("epsilon", "delta")}
        uncounted = {} if receipt.get("counted", True) else {"counted": False}
        expected |= {
            "promise": receipt["keeps_promise"],
            "total": {**receipt["total"], "composition": "basic", **uncounted},
        }
        return _exact({name: said[name] for name in expected}) == _exact(expected)
    except (KeyError, TypeError, ValueError, RecursionError):
        return False


def _exact(content: Any) -> str:
    """One text a content: 1, 1.0 and true are three things."""
    return json.dumps(content, sort_keys=True)
