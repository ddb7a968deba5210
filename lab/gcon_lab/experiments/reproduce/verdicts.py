"""From points to verdicts: one for every place a claim speaks of, one for the claim, and their tables.

Is one mean above another? Welch's test from means, deviations and numbers of runs, and Holm's correction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, replace

from scipy import stats

from gcon_lab import tables
from gcon_lab.experiments.reproduce.points import Point

LEVEL = 0.05
HOLDS = "holds"
FAILS = "does not hold"
ONLY_WITHOUT_CONTROLS = "holds only without the controls"
UNKNOWN = "no results yet"
VERDICTS = (HOLDS, ONLY_WITHOUT_CONTROLS, FAILS, UNKNOWN)
OVERALL = "overall"
_COLUMNS = ("claim", "where", "verdict", "numbers", "significance")
_NAMED_AT_MOST = 4  # p-values or places written out in one cell; the rest is counted
_LEGEND = (
    "Significance is that of the differences named in the cell (one-sided Welch test, p < 0.05 after Holm's correction "
    "within the claim). Where a claim says that a difference is small, a significant one does not speak against it. "
    "A control spends no budget on edges; its p-value decides nothing, its mean does."
)


@dataclass(frozen=True)
class Comparison:
    """Whether a sum of means is above zero; most often a difference of two.

    Attributes:
        name: what is compared, as a reader would say it.
        difference: the weighted sum of the means.
        p: one-sided; `None` where a single run leaves the spread unknown.
        without_spread: no point has any spread, so the sign of the difference alone made `p` zero or one.
    """

    name: str
    difference: float
    p: float | None
    without_spread: bool = False

    @property
    def significant(self) -> bool:
        """Above zero, and by more than chance explains."""
        return self.difference > 0 and self.p is not None and self.p < LEVEL

    def __str__(self) -> str:
        if self.p is None:
            return f"{self.name}: cannot be tested, a single run"
        size = "p < 0.0001" if self.p < 0.0001 else f"p = {self.p:.4f}"
        return f"{self.name}: {size}{' (no spread in the runs)' if self.without_spread else ''}"


def above(first: Point, second: Point) -> Comparison:
    """Compares the means of two points by Welch's test, the first said to be the higher one."""
    return weigh(f"{first.line} > {second.line}", [(1.0, first), (-1.0, second)])


def weigh(name: str, terms: Sequence[tuple[float, Point]]) -> Comparison:
    """Tests whether a weighted sum of independent means is above zero.

    With v_i = w_i² s_i² / n_i, the statistic is the sum over its error √Σv_i and the degrees of freedom are those of
    Satterthwaite, (Σv_i)² / Σ(v_i² / (n_i - 1)). With weights 1 and -1 this is Welch's test.

    Args:
        name: what is compared.
        terms: weight and point of each mean.
    """
    # Rounded, so that 0.80 - 0.78 is not above a margin of 0.02 by the last bit.
    difference = round(sum(weight * point.mean for weight, point in terms), 9)
    if any(point.runs < 2 for _, point in terms):
        return Comparison(name, difference, None)
    parts = [(weight * point.deviation) ** 2 / point.runs for weight, point in terms]
    total = sum(parts)
    if total == 0:
        return Comparison(name, difference, 0.0 if difference > 0 else 1.0, without_spread=True)
    # Shares rather than squares of the parts: these do not underflow for tiny deviations.
    freedom = 1 / sum((part / total) ** 2 / (point.runs - 1) for part, (_, point) in zip(parts, terms, strict=True))
    return Comparison(name, difference, float(stats.t.sf(difference / math.sqrt(total), freedom)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's corrected p-values, in the order given.

    Example:
        >>> holm([0.04, 0.01])
        [0.04, 0.02]
    """
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = largest
    return corrected


def correct(family: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons with corrected p-values. One that cannot be tested still counts in the size of the family."""
    p_values = holm([1.0 if each.p is None else each.p for each in family])
    return [each if each.p is None else replace(each, p=p) for each, p in zip(family, p_values, strict=True)]


@dataclass(frozen=True)
class ClaimVerdict:
    """What our numbers say of a claim at one place.

    Attributes:
        claim: the claim in our words, with the rule that decides it.
        where: graph, budget, line; `overall` for the claim as a whole.
        verdict: one of `VERDICTS`.
        numbers: what it was decided on, and which points are missing.
        significance: significant or not, and the p-values, corrected within the claim.
    """

    claim: str
    where: str
    verdict: str
    numbers: str
    significance: str


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A place before the correction for many comparisons.

    Attributes:
        where: the place.
        numbers: what is known of it.
        fits: whether the means alone allow the claim.
        deciding: comparisons that must all be significant for the claim to hold.
        shown: comparisons that are reported and decide nothing.
        control_as_good: a control that spends no budget has at least the same mean.
        missing: points without which nothing can be said to hold.
    """

    where: str
    numbers: str
    fits: bool = True
    deciding: Sequence[Comparison] = ()
    shown: Sequence[Comparison] = ()
    control_as_good: bool = False
    missing: Sequence[str] = ()


def decide(claim: str, drafts: Sequence[Draft]) -> list[ClaimVerdict]:
    """The verdicts of one claim. Deciding and shown comparisons are two families, each corrected as a whole."""
    deciding = iter(correct([each for draft in drafts for each in draft.deciding]))
    shown = iter(correct([each for draft in drafts for each in draft.shown]))
    verdicts = []
    for draft in drafts:
        mine = [next(deciding) for _ in draft.deciding]
        also = [next(shown) for _ in draft.shown]
        numbers = [draft.numbers] if draft.numbers else []
        numbers += [f"missing: {', '.join(draft.missing)}"] if draft.missing else []
        verdicts.append(
            ClaimVerdict(claim, draft.where, _verdict(draft, mine), "; ".join(numbers), _significance(mine, also))
        )
    return verdicts


def _verdict(draft: Draft, deciding: Sequence[Comparison]) -> str:
    # A counterexample stays one whatever is still missing: more comparisons only raise corrected p-values.
    refuted = [each for each in deciding if not each.significant and (each.p is not None or each.difference <= 0)]
    if not draft.fits or refuted:
        return FAILS
    if draft.missing or any(each.p is None for each in deciding):
        return UNKNOWN
    return ONLY_WITHOUT_CONTROLS if draft.control_as_good else HOLDS


def _significance(deciding: Sequence[Comparison], shown: Sequence[Comparison]) -> str:
    tested = deciding or shown
    if not tested:
        return "not tested"
    if all(each.p is None for each in tested):
        word = "not tested"
    else:
        word = "significant" if all(each.significant for each in tested) else "not significant"
    # The weakest first: these are the ones a reader looks for.
    ordered = sorted(deciding, key=lambda each: (each.significant, -(2.0 if each.p is None else each.p)))
    words = [str(each) for each in ordered[:_NAMED_AT_MOST]]
    if len(ordered) > _NAMED_AT_MOST:
        words.append(f"{len(ordered) - _NAMED_AT_MOST} more, no weaker")
    return f"{word}: " + "; ".join([*words, *map(str, shown)])


def combine(verdicts: Iterable[str]) -> str:
    """The verdict on a claim about all places: one counterexample refutes it, one missing place leaves it open."""
    found = set(verdicts)
    return next((each for each in (FAILS, UNKNOWN, ONLY_WITHOUT_CONTROLS, HOLDS) if each in found), UNKNOWN)


def overall(verdicts: Sequence[ClaimVerdict]) -> list[ClaimVerdict]:
    """One verdict per claim, in the order of the claims, with the places that speak against it."""
    claims = dict.fromkeys(each.claim for each in verdicts)
    return [_overall(claim, [each for each in verdicts if each.claim == claim]) for claim in claims]


def _overall(claim: str, rows: Sequence[ClaimVerdict]) -> ClaimVerdict:
    counts = []
    for verdict in VERDICTS:
        places = [row.where for row in rows if row.verdict == verdict]
        if places:
            named = ", ".join(f"[{place}]" for place in places[:_NAMED_AT_MOST])
            more = f" and {len(places) - _NAMED_AT_MOST} more" if len(places) > _NAMED_AT_MOST else ""
            counts.append(f"{verdict}: {len(places)} of {len(rows)}{'' if verdict == HOLDS else f' ({named}{more})'}")
    tested = [row for row in rows if not row.significance.startswith("not tested")]
    significant = sum(row.significance.startswith("significant") for row in tested)
    return ClaimVerdict(
        claim,
        OVERALL,
        combine(row.verdict for row in rows),
        "; ".join(counts),
        f"significant in {significant} of {len(tested)} tested places" if tested else "not tested",
    )


def markdown(verdicts: Sequence[ClaimVerdict]) -> str:
    """Two tables: the claims, then every place they speak of."""
    whole = [(row.claim, row.verdict, row.numbers, row.significance) for row in overall(verdicts)]
    places = [(row.claim.partition(".")[0], *astuple(row)[1:]) for row in verdicts]
    claims = tables.markdown(("claim", "verdict", "places", "significance"), whole)
    return f"{claims}\n{tables.markdown(_COLUMNS, places)}\n{_LEGEND}\n"


def to_csv(verdicts: Sequence[ClaimVerdict]) -> str:
    """Every place and, below each claim's places, the claim as a whole."""
    rows = []
    for whole in overall(verdicts):
        rows += [astuple(row) for row in verdicts if row.claim == whole.claim]
        rows.append(astuple(whole))
    return tables.sheet(_COLUMNS, rows)
