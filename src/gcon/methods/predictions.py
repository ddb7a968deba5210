"""What a prediction is: scores, labels and probabilities that name the access they were made with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, get_args

from torch import Tensor

from gcon.errors import AccessRefusedError, InputError
from gcon.privacy.receipt import Receipt
from gcon.privacy.statement import ACCESS_PROMISES

Access = Literal["none", "cached", "own-edges", "public-graph", "full"]
ANY_MODEL: tuple[Access, ...] = ("none", "cached", "own-edges", "public-graph")  # what some released model can answer
NOT_PRIVATE = "the method is not private"


@dataclass(frozen=True, eq=False, kw_only=True)
class Predictions:
    """Predicted classes of all nodes asked about, and who may see them.

    Attributes:
        classes: predicted class numbers, one per node.
        probabilities: one row per node, one column per class.
        class_names: what the class numbers stand for.
        access: which edges were read: `none`, `cached`, `own-edges`, `public-graph` or `full`.
        no_promise: why the model behind them keeps no promise; None if it keeps one.
        words: what this access reads and promises, of this model; None for what is true of every model.
    """

    classes: Tensor
    probabilities: Tensor
    class_names: tuple[object, ...]
    access: Access
    no_promise: str | None = None
    words: str | None = None

    @property
    def labels(self) -> list[object]:
        """The predicted classes by name."""
        return [self.class_names[number] for number in self.classes.tolist()]

    @property
    def promise(self) -> str:
        """What is promised about these predictions, in words."""
        return promise_under(self.access, self.no_promise, self.words)

    @property
    def publishable(self) -> bool:
        """Whether the table may be published as a whole without breaking the model's promise."""
        return self.audience == "public"

    @property
    def audience(self) -> str:
        """Who may see a row: `public`, `owner only` (of the node), or `operator only` where nothing is promised."""
        return audience_of(self.access, self.no_promise)


def promise_under(access: Access, no_promise: str | None = None, words: str | None = None) -> str:
    """What is promised about predictions under an access, or that nothing is and why.

    Args:
        access: what is read.
        no_promise: why nothing is promised; None if something is.
        words: what is promised, of a model whose words are its own (`Model.access_words`).
    """
    if no_promise is None or access == "full":
        return words or ACCESS_PROMISES[access]
    return (
        f"There is no promise: {no_promise}. What was predicted with access '{access}' is for the operator and for "
        "comparison only."
    )


def audience_of(access: Access, no_promise: str | None = None) -> str:
    """Who may see predictions under an access, and scores computed from them.

    All of them may be published (`public`), each is for the owner of its node (`owner only`), or `operator only`.
    """
    if no_promise is not None or access == "full":
        return "operator only"
    return "owner only" if access == "own-edges" else "public"


def why_no_promise(receipt: Receipt) -> str | None:
    """Why a release keeps no promise; None if it keeps one.

    Privacy:
        Reads the receipt, which is public.
    """
    if receipt.keeps_promise:
        return None
    if math.isinf(receipt.budget.epsilon):
        return "no noise was added in training"
    return "the noise of training was drawn from a seed, for an experiment"


def checked_access(access: str, allowed: Sequence[str]) -> Access:
    """One of the kinds of access, if it is allowed here."""
    known: tuple[Access, ...] = get_args(Access)
    for kind in known:
        if access == kind and kind in allowed:
            return kind
    if access in known:
        raise AccessRefusedError(
            f"access={access!r} is not there. What there is: {', '.join(allowed)}. Noisy quantities of every node (cached) and "
            "all private edges (full) are kept by some methods only."
        )
    near = get_close_matches(str(access).replace("_", "-"), allowed, n=1)
    fix = f"Perhaps you mean {near[0]!r}." if near else "Use 'none'."
    raise InputError("access", rule=f"must be one of {tuple(allowed)}", got=repr(access), fix=fix)
