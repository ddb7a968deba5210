"""What a verification is: numbered steps in words, each of which holds or fails, and what no step could look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


class UnfitError(Exception):
    """A number that a step needs is missing or impossible; the message says which. It never leaves this package."""


@dataclass(frozen=True)
class Step:
    """One claim in words with its numbers, and whether it holds."""

    words: str
    holds: bool


@dataclass
class Steps:
    """Steps in the order in which they were taken."""

    taken: list[Step] = field(default_factory=list)

    def check(self, words: str, holds: object) -> bool:
        """Note a step; anything but True fails."""
        self.taken.append(Step(words, holds is True))
        return holds is True


@dataclass(frozen=True, kw_only=True)
class Verification:
    """The outcome.

    Attributes:
        claim: the promise that was looked at, in words.
        method: of the release.
        epsilon, delta: what the receipt claims.
        steps: all steps, in order.
        not_checked: what a folder cannot show.
    """

    claim: str
    method: str
    epsilon: float
    delta: float
    steps: Sequence[Step]
    not_checked: Sequence[str]

    @property
    def holds(self) -> bool:
        """Whether there are steps, and all of them hold."""
        return bool(self.steps) and all(step.holds for step in self.steps)

    @property
    def verdict(self) -> str:
        failed = [str(number) for number, step in enumerate(self.steps, start=1) if not step.holds]
        if failed:
            return f"Verdict: NOT VERIFIED. {len(failed)} of {len(self.steps)} steps fail: {', '.join(failed)}."
        return f"Verdict: verified. All {len(self.steps)} steps hold. If what is listed above is as it should be, {self.claim}."

    def fields(self) -> dict[str, object]:
        return {
            "verified": self.holds,
            "verdict": self.verdict,
            "method": self.method,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "steps": [
                {"number": number, "words": step.words, "holds": step.holds}
                for number, step in enumerate(self.steps, start=1)
            ],
            "not_checked": list(self.not_checked),
        }

    def __str__(self) -> str:
        lines = [f"To verify: {self.claim}."]
        lines += [
            f"{number:>2}. {step.words}: {'holds' if step.holds else 'FAILS'}"
            for number, step in enumerate(self.steps, start=1)
        ]
        lines += ["A folder cannot show, and nothing above checks:", *(f"  - {words}" for words in self.not_checked)]
        return "\n".join([*lines, self.verdict])
