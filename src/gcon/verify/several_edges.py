"""Steps for several edges that change together (docs/proofs/several-edges.md), with other code than the plan's.

Every degree list that k edges of a simple graph can have is tried, by building such a graph (Havel and Hakimi); the plan leaves
most of them out, by an argument that is not used here.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from gcon.verify.arithmetic import digits, finite, mixed_delta, shown
from gcon.verify.folder import Folder
from gcon.verify.steps import Steps, UnfitError

MOST_EDGES = 10
STATED = {1, 2, 5, 10}
LAST_DIGIT = 2e-3  # relative; four digits, rounded up
_NOTHING = 1e-8  # smaller epsilons need not be the smallest
_MARGIN = digits.mpf(10) ** -30
_BITS = 190  # of a chance: sixty digits have no more
_WHOLE = 2**_BITS


def edges_of(plan: dict[str, Any]) -> int:
    """How many edges a plan says that it protects together; `UnfitError` for what cannot be."""
    edges = plan.get("protect_edges", 1)
    if type(edges) is not int or not 1 <= edges <= MOST_EDGES or (edges == 1 and "protect_edges" in plan):
        raise UnfitError(f"'protect_edges' must be a whole number from 2 to {MOST_EDGES}, or not there")
    return edges


@dataclass(frozen=True)
class Tables:
    """So many tables of counts with noise of a rate, then a count of answers of an epsilon, both for one edge."""

    rate: Any
    number: int
    answer: Any


@lru_cache(maxsize=256)
def tables_delta(epsilon: Any, distance: Any, tables: Tables, edges: int) -> Any:
    """The smallest delta of Gaussian releases, tables of counts and a count of answers, a little more, for so many edges.

    Args:
        epsilon: of everything together.
        distance: of the Gaussian releases, for one edge.
        tables: the tables, and the count.
        edges: how many change; the worst way in which they can lie.

    Example:
        >>> print(digits.nstr(tables_delta(1, digits.mpf("0.05"), Tables(digits.mpf("0.4"), 1, 0), 1), 12))
        1.41479822976e-7
    """
    rate, far, told = tables.rate, edges * distance, edges * tables.answer
    worlds = [(1 / (1 + digits.exp(-told)), told), (1 / (1 + digits.exp(told)), -told)]

    @cache
    def excess(units: int) -> Any:
        total = digits.mpf(0)
        for chance, loss in worlds:
            rest = epsilon - loss - units * rate
            place = rest / far + far / 2
            first = digits.ncdf(far - place)
            total += chance * (first - digits.exp(rest) * digits.ncdf(-place) + _MARGIN * first)
        return total

    return max(
        sum(chance * excess(units) for units, chance in law.items()) / _WHOLE
        for law in _laws(rate, tables.number, edges)
    )


@lru_cache(maxsize=64)
def _laws(rate: Any, tables: int, edges: int) -> list[dict[int, int]]:
    """For every degree list: the loss of all tables, in units of the rate, and its chance, of _WHOLE and rounded up."""
    known: dict[tuple[int, ...], dict[int, int]] = {(): {0: _WHOLE}}
    truths = [int(digits.floor(_WHOLE / (1 + digits.exp(-degree * rate)))) + 1 for degree in range(edges + 1)]
    lies = [int(digits.floor(_WHOLE / (1 + digits.exp(degree * rate)))) + 1 for degree in range(edges + 1)]

    def law(degrees: tuple[int, ...]) -> dict[int, int]:
        if degrees not in known:
            found, degree = law(degrees[:-1]), degrees[-1]
            for _ in range(tables):
                wider: dict[int, int] = defaultdict(int)
                for units, chance in found.items():
                    wider[units + degree] += (chance * truths[degree] >> _BITS) + 1
                    wider[units - degree] += (chance * lies[degree] >> _BITS) + 1
                found = wider
            known[degrees] = found
        return known[degrees]

    return [law(degrees) for degrees in degree_lists(edges)]


@lru_cache(maxsize=16)
def degree_lists(edges: int) -> tuple[tuple[int, ...], ...]:
    """All lists of degrees, the largest first, of simple graphs with so many edges and no lonely node.

    Example:
        >>> degree_lists(2)
        ((2, 1, 1), (1, 1, 1, 1))
    """
    return tuple(degrees for degrees in _sums(2 * edges, edges) if _can_be_built(list(degrees)))


def _sums(total: int, most: int) -> Iterator[tuple[int, ...]]:
    if total == 0:
        yield ()
    for first in range(min(total, most), 0, -1):
        yield from ((first, *rest) for rest in _sums(total - first, first))


def _can_be_built(degrees: list[int]) -> bool:
    """Join the node of largest degree to the next ones, again and again, until nothing is left."""
    while degrees:
        degrees.sort(reverse=True)
        first = degrees.pop(0)
        if first > len(degrees) or any(degree == 0 for degree in degrees[:first]):
            return False
        degrees = [degree - (place < first) for place, degree in enumerate(degrees)]
        degrees = [degree for degree in degrees if degree]
    return True


def check_stated(folder: Folder, branches: Any, steps: Steps) -> None:
    """What is said about 1, 2, 5 and 10 edges follows from the noise of all three branches together."""
    plan, protected = folder.plan, branches.edges
    delta = finite(plan, "delta")

    def together(epsilon: Any, edges: int) -> Any:
        answer = [edges * branches.answer_epsilon] if branches.answer_epsilon > 0 else []
        return mixed_delta(epsilon, edges * branches.distance, answer) + sum(
            branches.cost(epsilon, *kind, rate, edges)
            for kind, rate in zip(branches.kinds, branches.rates, strict=True)
        )

    for edges, entry in stated(folder, STATED | {protected}).items():
        epsilon = finite(entry, "epsilon")
        if edges == protected:
            steps.check(
                f"{in_words(edges)}: the stated epsilon, {shown(epsilon)}, and delta are those of the plan",
                entry["epsilon"] == plan["epsilon"] and entry["delta"] == plan["delta"],
            )
            continue
        cost = together(epsilon, edges)
        steps.check(
            f"{in_words(edges)}: at the stated epsilon, {shown(epsilon)}, the three branches cost together delta = "
            f"{shown(cost)}, at most {shown(delta)}, however the edges lie (degree lists: {len(degree_lists(edges))}); "
            "hardly any smaller epsilon would do",
            entry["delta"] == plan["delta"]
            and bool(cost <= delta)
            and bool(epsilon <= _NOTHING or together(epsilon * (1 - LAST_DIGIT), edges) > delta),
        )


def in_words(edges: int) -> str:
    """How a sentence starts."""
    return "One edge" if edges == 1 else f"Any {edges} edges together"


def stated(folder: Folder, wanted: set[int]) -> dict[int, dict[str, Any]]:
    """What privacy.json says, by the number of edges."""
    try:
        said = json.loads(folder.texts["privacy.json"])["fields"]["by_edges"]
        found = {entry["edges"]: entry for entry in said}
        whole = all(
            type(edges) is int and set(entry) == {"edges", "epsilon", "delta"} for edges, entry in found.items()
        )
    except (KeyError, TypeError, ValueError, RecursionError):
        raise UnfitError("privacy.json must say what is promised for several edges") from None
    if not whole or len(said) != len(found) or set(found) != wanted:
        raise UnfitError(f"privacy.json must say what is promised for {', '.join(map(str, sorted(wanted)))} edges")
    return found
