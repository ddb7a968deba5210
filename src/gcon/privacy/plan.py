"""The two public halves of every release: a mechanism and a plan.

A *mechanism* is a record of one release: what it computes from edges, how far one edge can move that, and which noise it adds.
A *plan* is public numbers: which sequences of mechanisms are proven to fit a budget. The account (`gcon.privacy.account`)
brings both together with private edges. What is computed from released values is free and needs neither.

Only classes whose bound has a proof page may be released: `@proven("edge-moments")` names the page in `docs/proofs`. A test
checks that every page is there and names the class's file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn, Protocol, TypeVar, final

from gcon.errors import PlanMismatchError, UnprovenBoundError
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import Randomness

ClassT = TypeVar("ClassT", bound=type)


class ProofPages(dict[type, str]):
    """The proof page of every registered class; `UnprovenBoundError` for all others.

    A subclass could do anything, so it needs a page of its own.
    """

    def __missing__(self, kind: type) -> NoReturn:
        raise UnprovenBoundError(
            f"{kind.__name__} has no proof page, so nothing is released from it (gcon.privacy.plan)."
        )


PROOF_PAGES: Final = ProofPages()


def proven(page: str) -> Callable[[ClassT], ClassT]:
    """Register a class with the page that proves its bound."""

    def register(kind: ClassT) -> ClassT:
        PROOF_PAGES[kind] = page
        return kind

    return register


Released_co = TypeVar("Released_co", covariant=True)


class Mechanism(Protocol[Released_co]):
    """One release. Its class must be registered with a proof page (`gcon.privacy.plan`)."""

    @property
    def reads_edges(self) -> bool:
        """False only if no edge can change anything in what is released."""

    def check(self) -> None:
        """Raise unless its bound and its noise are right for what it holds now: called again before every release."""

    @property
    def record(self) -> Mapping[str, object]:
        """Sensitivity, noise and settings, as public numbers and words."""

    def apply(self, edges: Any, randomness: Randomness) -> Released_co:
        """Compute what is released. Called by the account alone, with opened edges."""


class Plan(Protocol):
    """Which mechanisms, in which order, fit a budget. Its class must be registered with a proof page too."""

    @property
    def name(self) -> str:
        """The name in the ledger."""

    @property
    def budget(self) -> Budget:
        """What everything that the plan allows costs together."""

    @property
    def gaussian_distance(self) -> float | None:
        """The distance of the one Gaussian release that all of it amounts to, for tighter totals; None: no such proof."""

    def public_record(self, released: Sequence[Mechanism[Any]]) -> Mapping[str, object]:
        """The plan's numbers: in advance (nothing released yet) for the ledger, and with what was released for the receipt."""

    def check(self, mechanisms: Sequence[Mechanism[Any]]) -> None:
        """Raise `PlanMismatchError` unless a proof covers these mechanisms, in this order, at the plan's budget."""


class PricedMechanism(Mechanism[Released_co], Protocol[Released_co]):
    """A mechanism with a budget of its own."""

    @property
    def name(self) -> str:
        """The name in the ledger."""

    @property
    def budget(self) -> Budget:
        """What one application costs; nothing only if it reads no edge."""

    @property
    def gaussian_distance(self) -> float | None:
        """As for a plan."""


@final
@proven("index")
@dataclass(frozen=True, eq=False)
class SingleRelease:
    """The plan of one mechanism that is released once, at its own price."""

    mechanism: PricedMechanism[Any]

    @property
    def name(self) -> str:
        return self.mechanism.name

    @property
    def budget(self) -> Budget:
        return self.mechanism.budget

    @property
    def gaussian_distance(self) -> float | None:
        return self.mechanism.gaussian_distance

    def public_record(self, released: Sequence[Mechanism[Any]]) -> Mapping[str, object]:
        """The mechanism's; it is known in advance."""
        return self.mechanism.record

    def check(self, mechanisms: Sequence[Mechanism[Any]]) -> None:
        """Only this mechanism, and only once."""
        if len(mechanisms) != 1 or mechanisms[0] is not self.mechanism:
            raise PlanMismatchError(
                "This plan pays for one release of one mechanism. Make another plan for another release."
            )
