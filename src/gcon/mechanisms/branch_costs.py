"""What tables of counts cost for one edge, or for several that change together (docs/proofs/several-edges.md).

k edges move Gaussian releases k times as far. In a table of counts, a node with m of these edges has counts that change by m in
all: a response of m times the rate. How the edges lie is not known, so the worst of all ways counts. A response of rate a + b is
worse than two of rates a and b: so of all degrees that k edges can have, only those count that are no splitting of others. There
are few of them; a test finds them again.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

from gcon.mechanisms.mixed_curve import Responses, largest, mixed_delta

Degrees = tuple[int, ...]  # largest first

_LISTS = """
    11
    211
    3111 222
    41111 3221 2222
    511111 42211 3322 22222
    6111111 522111 43221 42222 3333 33222
    71111111 6221111 532211 522221 44222 43331 43322 33332
    811111111 72211111 6322111 6222211 542221 533311 533221 532222 44332 442222 43333
    9111111111 822111111 73221111 72222111 6422211 6333111 6332211 6322221 6222222 552222 543321 543222 533331
    533322 44433 444222 433332 333333
    a1111111111 9221111111 832211111 822221111 74222111 73331111 73322111 73222211 72222221 6522221 6433211 6432221
    6422222 6333311 6333221 6332222 553322 5522222 544331 544322 543332 533333 44444 444332 443333
"""  # one digit per node, a for 10

_degrees = [tuple(int(digit, 16) for digit in word) for word in _LISTS.split()]
WORST_DEGREES: dict[int, tuple[Degrees, ...]] = {
    edges: tuple(degrees for degrees in _degrees if sum(degrees) == 2 * edges) for edges in range(1, 11)
}
"""The degrees of simple graphs with so many edges that are no splitting of others; the star's come first."""


def responses(
    answer_epsilon: float, edges: int, *, rate: float = 0.0, rounds: int = 0, degrees: Degrees = ()
) -> Responses:
    """Of so many tables of counts, where the nodes have these degrees among the changed edges, and of the count of answers.

    That one draws its noise for the decimal that epsilon prints as, which may be larger than the float.
    """
    exact = Fraction(rate)
    counts = [(degree * exact, number * rounds) for degree, number in Counter(degrees).items()]
    return [*counts, (Fraction(math.nextafter(answer_epsilon, math.inf)) * edges, 1)]


def largest_count_rate(
    epsilon: float, delta: float, *, first: float, rounds: int, answer_epsilon: float, edges: int
) -> float:
    """The largest rate of so many tables of counts after Gaussian releases of this distance; 0 if there is no room.

    Found for edges among few nodes, which are mostly the worst; if others cost more at that rate, for those, and so on.
    """
    every = WORST_DEGREES[edges]

    def cost(rate: float, degrees: Degrees) -> float:
        beside = responses(answer_epsilon, edges, rate=rate, rounds=rounds, degrees=degrees)
        return mixed_delta(epsilon, edges * first, beside)

    worst = min(every, key=lambda degrees: (len(degrees), degrees[0]))
    while True:
        rate = largest(lambda rate, degrees=worst: cost(rate, degrees) <= delta)  # type: ignore[misc]
        worst = max(every, key=lambda degrees: cost(rate, degrees))
        if rate == 0 or cost(rate, worst) <= delta:
            return rate
