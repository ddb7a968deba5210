"""Settings of competitors: simple fields, each with a range that goes by its name, so that the command line can read them."""

from __future__ import annotations

import math
import numbers
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from gcon.edges.graph import PrivateGraph
from gcon.edges.source import Edges
from gcon.errors import InputError
from gcon.methods.method import Method, Predictor, PrivateMethod, Progress, silent
from gcon.nodes import PublicNodes
from gcon.privacy.account import Account, Released, ReleasedT, release_once, spend
from gcon.privacy.boundary import Private
from gcon.privacy.gates import declassify
from gcon.privacy.ledger import Ledger
from gcon.privacy.plan import Plan, PricedMechanism
from gcon.privacy.randomness import Randomness
from gcon_lab.methods.fitted import FittedMethod, fit


@dataclass(frozen=True)
class Range:
    """The numbers that a setting may be."""

    least: float
    most: float
    least_too: bool = True
    most_too: bool = True

    def __contains__(self, number: Any) -> bool:
        above = number >= self.least if self.least_too else number > self.least
        below = number <= self.most if self.most_too else number < self.most
        return bool(above and below)

    def __str__(self) -> str:
        return f"in {'[' if self.least_too else '('}{self.least}, {self.most}{']' if self.most_too else ')'}"


_SHARE, _WEIGHT, _EPOCHS = Range(0, 1, most_too=False), Range(0, 1), Range(1, 10**6)
RANGES: Mapping[str, Range] = {
    "seed": Range(0, 2**62),
    "hidden": Range(1, 4096),
    "layers": Range(1, 16),
    "base_layers": Range(1, 16),
    "hops": Range(1, 100),
    "depth": Range(1, 100),
    "stacked": Range(1, 2),
    "steps": Range(1, 10**5),
    "epochs": _EPOCHS,
    "patience": _EPOCHS,
    "window": _EPOCHS,
    "dropout": _SHARE,
    "score_dropout": _SHARE,
    "learning_rate": Range(0, 10**6, least_too=False),
    "weight_decay": Range(0, 1000),
    "clip": Range(1e-6, 1e6),
    "sampling": Range(0, 1, least_too=False),
    "restart": _WEIGHT,
    "inference_restart": _WEIGHT,
    "taught_share": _WEIGHT,
    "least_agreement": Range(-1, 1),
    "neighbours": Range(1, 1000),
    "rounds": Range(0, 100),
    "most_pairs": Range(1, 5 * 10**9),
}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a setting of a method may be: its annotation says the kind, its name the range.

    Attributes:
        name: of the field.
        kind: bool, int, float or str.
        optional: whether it may be None.
        choices: of a str.
        default: of the field.
    """

    name: str
    kind: type
    optional: bool
    choices: tuple[str, ...]
    default: object

    def check(self, value: object) -> None:
        """Raise `InputError` unless the value is allowed."""
        if not (self.optional and value is None) and not self._allows(value):
            raise self.refusal(value)

    def read(self, text: str) -> bool | int | float | str | None:
        """The value that a text stands for; its range is checked by the method. `1e2` is a whole number too."""
        if self.optional and text.lower() == "none":
            return None
        if self.kind is str:
            return text
        if self.kind is bool:
            if text.lower() in ("true", "false"):
                return text.lower() == "true"
            raise self.refusal(text)
        try:
            if self.kind is int and text.strip().lstrip("+-").isdigit():
                return int(text)
            number = float(text)
        except ValueError:
            raise self.refusal(text) from None
        if self.kind is float:
            return number
        if not (math.isfinite(number) and number.is_integer()):
            raise self.refusal(text)
        return int(number)

    def refusal(self, got: object) -> InputError:
        return InputError(self.name, rule=self.rule, got=repr(got), fix=f"The default is {self.default}.")

    @property
    def rule(self) -> str:
        if self.kind is bool:
            words = "must be true or false"
        elif self.kind is str:
            words = f"must be one of {', '.join(self.choices)}"
        else:
            words = f"must be a {'whole ' if self.kind is int else ''}number {self._range}"
        return f"{words}, or none" if self.optional else words

    def _allows(self, value: object) -> bool:
        if self.kind is bool or isinstance(value, bool):
            return self.kind is bool and isinstance(value, bool)
        if self.kind is str:
            return isinstance(value, str) and value in self.choices
        number = numbers.Integral if self.kind is int else numbers.Real
        return isinstance(value, number) and value in self._range

    @property
    def _range(self) -> Range:
        return RANGES.get(self.name, Range(-math.inf, math.inf))


@cache
def settings_of(method: type[Method]) -> Mapping[str, Setting]:
    """All settings of a method but its budget, by name."""
    hints = get_type_hints(method)
    found = {}
    for entry in fields(method):
        if entry.name in ("epsilon", "delta"):
            continue
        hint = hints[entry.name]
        parts = [hint] if get_origin(hint) is Literal else list(get_args(hint)) or [hint]
        (kind,) = (part for part in parts if part is not NoneType)
        choices = get_args(kind) if get_origin(kind) is Literal else ()
        found[entry.name] = Setting(
            name=entry.name,
            kind=str if choices else kind,
            optional=NoneType in parts,
            choices=choices,
            default=None if entry.default is MISSING else entry.default,
        )
    return found


def with_budget(kind: type[Method], *, epsilon: float | None, delta: float | None, **settings: Any) -> Method:
    """The method with its settings, and with a budget if it spends one; one that is missing or of no use is refused."""
    if not issubclass(kind, PrivateMethod):
        if epsilon is not None or delta is not None:
            raise InputError("epsilon", rule=f"is not spent by {kind.name}", got="a budget", fix="Leave it out.")
        return kind(**settings)
    if epsilon is None:
        raise InputError("epsilon", rule=f"is needed by {kind.name}", got="nothing", fix="For example --epsilon 1.")
    return kind(**settings, epsilon=epsilon, delta=delta)


@dataclass(frozen=True, eq=False, kw_only=True)
class PaidEdges:
    """The private edges of one training, with what every release from them needs: who pays, the noise, and public words.

    Attributes:
        edges: private.
        ledger: pays before any edge is read.
        randomness: the source of the noise.
        purpose: for the ledger; empty for the method's own words.
    """

    edges: Private[Edges]
    ledger: Ledger
    randomness: Randomness
    purpose: str

    def spend(self, plan: Plan, words: str) -> Account:
        """A block of releases."""
        purpose = self.purpose or words
        return spend(self.edges, plan, ledger=self.ledger, randomness=self.randomness, purpose=purpose)

    def release_once(self, mechanism: PricedMechanism[ReleasedT], words: str) -> Released[ReleasedT]:
        """A single release."""
        purpose = self.purpose or words
        return release_once(mechanism, self.edges, ledger=self.ledger, randomness=self.randomness, purpose=purpose)

    def declassify(self, reason: str) -> Edges:
        """All edges, without any promise."""
        return declassify(self.edges, reason=reason, ledger=self.ledger)


@dataclass(frozen=True, kw_only=True)
class CompetitorMethod(Method):
    """A method whose settings are all simple fields.

    Attributes:
        seed: of initial weights and dropout; it has nothing to do with the noise and may be public.
    """

    seed: int = 0

    def __post_init__(self) -> None:
        for name, setting in settings_of(type(self)).items():
            setting.check(getattr(self, name))

    def train(
        self,
        nodes: PublicNodes,
        edges: Private[Edges],
        *,
        ledger: Ledger,
        randomness: Randomness,
        progress: Progress = silent,
        purpose: str = "",
    ) -> Predictor:
        return self.learn(nodes, PaidEdges(edges=edges, ledger=ledger, randomness=randomness, purpose=purpose))

    def fit(
        self, graph: PrivateGraph, *, ledger: Ledger | None = None, randomness: Randomness | None = None
    ) -> FittedMethod:
        """Train on a graph (see `gcon_lab.methods.fitted.fit`)."""
        return fit(self, graph, ledger=ledger, randomness=randomness)

    @abstractmethod
    def learn(self, nodes: PublicNodes, edges: PaidEdges) -> Predictor:
        """Train; every method's whole story."""


@dataclass(frozen=True, kw_only=True)
class PrivateCompetitorMethod(CompetitorMethod, PrivateMethod):
    """The same for one that spends a budget."""

    def __post_init__(self) -> None:
        CompetitorMethod.__post_init__(self)
        PrivateMethod.__post_init__(self)
