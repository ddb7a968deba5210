"""The steps that all releases share: what is claimed, and whether a promise can be claimed at all."""

from __future__ import annotations

import math

from gcon.verify.folder import Folder
from gcon.verify.steps import Steps

MECHANISMS = {"moments": "mixed release (moments)", "paper": "objective perturbation (GCON)"}
NOT_CHECKED = (
    "that the noise was drawn, from the operating system's generator, as the receipt says",
    "that the ledger's total is complete: releases that it was not told of are not in it",
    "who made this folder: checksums are no signature",
)


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
