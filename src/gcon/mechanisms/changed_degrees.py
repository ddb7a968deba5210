"""How several changed edges can lie: the degrees that nodes have among them (docs/proofs/several-edges.md, 2 and 3).

k edges with degrees m_1, m_2, ... change the counts around these nodes by m_1, m_2, ... in all. A response of rate a + b is
worse than two of rates a and b: so of all degrees that k edges can have, only those count that are no splitting of others.
There are few of them; a test finds them again.
"""

from __future__ import annotations

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
