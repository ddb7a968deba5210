"""From comparisons to verdicts: one for every place a claim speaks of, one for the claim, and their tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

from gcon_lab import tables
from gcon_lab.experiments.reproduce.comparisons import Comparison, correct

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
class Verdict:
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


def decide(claim: str, drafts: Sequence[Draft]) -> list[Verdict]:
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
            Verdict(claim, draft.where, _verdict(draft, mine), "; ".join(numbers), _significance(mine, also))
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


def overall(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """One verdict a claim, in the order of the claims, with the places that speak against it."""
    claims = dict.fromkeys(each.claim for each in verdicts)
    return [_overall(claim, [each for each in verdicts if each.claim == claim]) for claim in claims]


def _overall(claim: str, rows: Sequence[Verdict]) -> Verdict:
    counts = []
    for verdict in VERDICTS:
        places = [row.where for row in rows if row.verdict == verdict]
        if places:
            named = ", ".join(f"[{place}]" for place in places[:_NAMED_AT_MOST])
            more = f" and {len(places) - _NAMED_AT_MOST} more" if len(places) > _NAMED_AT_MOST else ""
            counts.append(f"{verdict}: {len(places)} of {len(rows)}{'' if verdict == HOLDS else f' ({named}{more})'}")
    tested = [row for row in rows if not row.significance.startswith("not tested")]
    significant = sum(row.significance.startswith("significant") for row in tested)
    return Verdict(
        claim,
        OVERALL,
        combine(row.verdict for row in rows),
        "; ".join(counts),
        f"significant in {significant} of {len(tested)} tested places" if tested else "not tested",
    )


def markdown(verdicts: Sequence[Verdict]) -> str:
    """Two tables: the claims, then every place they speak of."""
    whole = [(row.claim, row.verdict, row.numbers, row.significance) for row in overall(verdicts)]
    places = [(row.claim.partition(".")[0], *astuple(row)[1:]) for row in verdicts]
    claims = tables.markdown(("claim", "verdict", "places", "significance"), whole)
    return f"{claims}\n{tables.markdown(_COLUMNS, places)}\n{_LEGEND}\n"


def to_csv(verdicts: Sequence[Verdict]) -> str:
    """Every place and, below each claim's places, the claim as a whole."""
    rows = []
    for whole in overall(verdicts):
        rows += [astuple(row) for row in verdicts if row.claim == whole.claim]
        rows.append(astuple(whole))
    return tables.sheet(_COLUMNS, rows)
