"""What the service says: answers and problems as bytes, with all constant words made in advance."""

from __future__ import annotations

import json

import numpy as np
from numpy.typing import NDArray

from gcon.methods.model import Model
from gcon.methods.predictions import Access, audience_of, promise_under, why_no_promise

SENT = (
    "Computed from what you sent alone: you, and the neighbours that you named. No edge that the service may hold was read, "
    "and nothing was stored."
)
ALONE = "Computed from public features and the released model alone. No edge was read, and nothing was stored."
HELD = (
    "Computed from your own edges, which the service holds, and from public numbers about your neighbours. No edge between "
    "other people was read. The access log keeps that you were answered and when; the answer is kept nowhere."
)
BY_FEATURES = (
    " Who is described by features is answered by the model's student, which knows features alone, also if she was in the "
    "training. Asked by her id, what the training found out about her is used: the label may be another."
)
REFUSED = (
    "No such node with such a token: the token may be wrong, expired or revoked, or belong to another node. Ask the operator "
    "for a new one."
)
TOO_OFTEN = "This address asks too often, or for too much. Wait, then try again."
_ACCESSES: dict[str, Access] = {SENT: "own-edges", HELD: "own-edges", ALONE: "none"}
_NUMBER = 25  # characters of a float64, at most


class AnswerWords:
    """Answers of one release as JSON.

    Args:
        model: the released model.
        release: the beginning of its checksum.
    """

    def __init__(self, model: Model, release: str) -> None:
        self._release, self._no_promise, self._words = release, why_no_promise(model.receipt), model.access_words
        self._names = [str(name) for name in model.class_names]
        self._keys = [json.dumps(name) for name in self._names]
        knows = "cached" in model.accesses  # answers for the nodes of the training table
        self._tails = {
            (used, by_features): self._tail(access, used + (BY_FEATURES if by_features and knows else ""))
            for used, access in _ACCESSES.items()
            for by_features in (False, True)
        }
        self._most = 64 + max(map(len, self._keys)) + sum(len(key) + _NUMBER + 4 for key in self._keys)

    def __call__(self, shares: NDArray[np.float64], used: str, *, by_features: bool = False) -> bytes:
        """The answer; it says if people were described by features, and the label may differ for that.

        One from held edges has the same length for everybody: who watches the line learns nothing from it.
        """
        numbers = shares.tolist()
        listed = ", ".join([f"{key}: {number!r}" for key, number in zip(self._keys, numbers, strict=True)])
        text = f'{{"label": {self._keys[numbers.index(max(numbers))]}, "probabilities": {{{listed}}}, '
        return (text.ljust(self._most) if used is HELD else text).encode() + self._tails[used, by_features]

    def _tail(self, access: Access, used: str) -> bytes:
        words = {
            "access": access,
            "audience": audience_of(access, self._no_promise),
            "used": used,
            "promise": promise_under(access, self._no_promise, self._words[access]),
            "release": self._release,
        }
        return json.dumps(words)[1:].encode()


def problem(error: str, message: str) -> bytes:
    """What was wrong, as JSON."""
    return json.dumps({"error": error, "message": message}).encode()


def retry_after(seconds: float) -> str:
    """The header of that name."""
    return str(max(1, round(seconds + 0.5)))
