"""The promise in plain sentences, and as data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from gcon.privacy.budget import LITTLE, NOTHING, PUBLIC, Budget, promises_little, protected_change, round_up_digits
from gcon.privacy.receipt import Receipt

ACCESS_PROMISES = {
    "none": (
        "No edge is read at prediction. The predictions of all nodes may be published: they are computed from "
        "public features and the released model, so the model's promise covers them."
    ),
    "cached": (
        "No edge is read at prediction. Noisy quantities that were released in training, one row per node, are used again. "
        "The predictions of all nodes may be published: the promise of that release covers them."
    ),
    "own-edges": (
        "Each answer is computed from the asking node's own edges and is for its owner only. For every edge {u, v}, "
        "the model together with all answers delivered to nodes other than u and v keeps the promise (joint "
        "differential privacy). Publishing these answers, or an accuracy computed from them, is not covered."
    ),
    "public-graph": (
        "All edges of the graph are read. This is for a graph whose edges are public; nothing is promised about "
        "them. The edges of the private training graph keep the model's promise."
    ),
    "full": (
        "All private edges are read, without noise. Nothing is promised: these predictions are for the operator and for "
        "comparison only."
    ),
}


@dataclass(frozen=True)
class Statement:
    """A promise that a reader can check: sentences for people, fields for machines."""

    sentences: tuple[str, ...]
    fields: dict[str, object]

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def statement(
    receipt: Receipt,
    accesses: Mapping[str, str] = ACCESS_PROMISES,
    choices: str | None = None,
    by_edges: Mapping[int, Budget | None] | None = None,
) -> Statement:
    """Say what a release promises, what it does not, and what it rests on.

    Args:
        receipt: of the release.
        accesses: what the released model can be asked under, and what each one reads and promises.
        choices: how the model's settings were chosen, and whether that was public, free or paid.
        by_edges: what is promised for so many edges that change together; None for nothing.

    Privacy:
        Reads the receipt, which is public.
    """

    def exactly(value: float) -> str:
        """Every digit: a promise is not rounded down for the reader. Whole numbers lose their point."""
        return repr(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)

    change = protected_change(record=receipt.plan)
    protected, those = "one edge", "that edge"
    if change.edges > 1:
        protected, those = f"any {change.edges} edges together", "them"
    epsilon, delta = receipt.budget.epsilon, receipt.budget.delta
    if receipt.budget == NOTHING:
        promise = "Nothing in the release depends on any edge: it keeps every promise about edges."
    elif receipt.keeps_promise:
        factor = f" = {round_up_digits(math.exp(epsilon), 3):g}" if epsilon < 700 else ""
        promise = (
            f"The release is ({exactly(epsilon)}, {exactly(delta)})-differentially private for {protected}: whatever anybody "
            f"concludes from it has at most e^{exactly(epsilon)}{factor} times the probability it would have without "
            f"{those}, except for a probability of {exactly(delta)}."
        )
    elif receipt.randomness.startswith("seeded"):
        promise = "There is no promise: the noise was drawn from a seed, for an experiment."
    else:
        promise = "There is no promise: no noise was added."
    sentences = [f"Protected: {change.sentence}", f"Public, and not protected: {', '.join(PUBLIC)}.", promise]
    if receipt.keeps_promise and epsilon >= LITTLE:
        sentences.append(promises_little(epsilon, change.edges))
    if by_edges:
        told = [
            f"{number} edge{'s' if number > 1 else ''}, "
            + (f"epsilon {exactly(each.epsilon)}, delta {exactly(each.delta)}" if each else "nothing is promised")
            for number, each in by_edges.items()
        ]
        sentences.append(f"Edges that change together, wherever they are: {'; '.join(told)}.")
    sentences.append(f"Released, once: what {receipt.mechanism} computed, for {receipt.purpose}.")
    total = f"epsilon {exactly(receipt.total.epsilon)}, delta {exactly(receipt.total.delta)} (basic composition)"
    sentences.append(
        f"Spent on data set '{receipt.data_set}' so far, as its ledger knows: {total}."
        if receipt.counted
        else f"Nobody counted other releases of data set '{receipt.data_set}': no ledger was given. All that is known is what "
        f"one process released from the same node table without a ledger: {total}."
    )
    if receipt.budget != NOTHING:  # a mechanism that says nothing about its noise draws floating-point numbers
        noise = receipt.plan.get("noise", "floating-point numbers, the proof is about real ones")
        noise = "; ".join(map(str, noise)) if isinstance(noise, list) else noise
        sentences.append(f"Noise: {receipt.randomness}{'' if math.isinf(epsilon) else f'; {noise}'}.")
    tolerance, reserved = receipt.plan.get("gradient_tolerance"), receipt.plan.get("reserved_epsilon")
    if isinstance(tolerance, float) and receipt.plan.get("final_noise"):
        sentences.append(
            "Certificate: the solver's answer was accepted with a recomputed gradient norm of at most "
            f"{round_up_digits(tolerance, 6):g}; that it is not the exact minimiser is paid for inside the budget "
            f"(twice {reserved!r} of epsilon) and covered by final noise."
        )
    if choices is not None:
        sentences.append(f"Choices: {choices}")
    sentences.append(
        "Limits: choosing settings by looking at results on the private edges costs extra and is not in this number; "
        "run time is not protected."
    )
    fields: dict[str, object] = {
        "protected_change": change.name,
        "public": list(PUBLIC),
        "epsilon": epsilon,
        "delta": delta,
        "promise": receipt.keeps_promise,
        "mechanism": receipt.mechanism,
        "purpose": receipt.purpose,
        "randomness": receipt.randomness,
        "data_set": receipt.data_set,
        "total": {"epsilon": receipt.total.epsilon, "delta": receipt.total.delta, "composition": "basic"}
        | ({} if receipt.counted else {"counted": False}),
        "plan": dict(receipt.plan),
        "access": dict(accesses),
        "time": receipt.time,
    }
    if by_edges:
        fields["by_edges"] = [
            {"edges": number, "epsilon": each and each.epsilon, "delta": each and each.delta}
            for number, each in by_edges.items()
        ]
    return Statement(tuple(sentences), fields)
