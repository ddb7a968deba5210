"""Every claim of the paper's text about its results, tested on our numbers.

Two kinds of rule. "A is above B" holds when A's mean is higher and a one-sided Welch test, corrected by Holm within the
claim, has p < 0.05. Words without a number ("close", "slightly", "best") are decided on the means, by a margin that
the claim states; the p-value is then only shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gcon_lab.experiments.reproduce import claims_rivals as rivals
from gcon_lab.experiments.reproduce import claims_settings as settings
from gcon_lab.experiments.reproduce.claim_terms import CLOSE, LITTLE, RAPID, Lookup
from gcon_lab.experiments.reproduce.points import Point
from gcon_lab.experiments.reproduce.verdicts import Draft, Verdict, combine, decide, markdown, overall, to_csv
from gcon_lab.experiments.sweep.grid import PAPER_GRAPHS

__all__ = ["Verdict", "check", "markdown", "overall", "to_csv"]


CLAIMS: dict[str, Callable[[Lookup], Iterator[Draft]]] = {
    "1. The best restart at two steps is 0.8 on Cora-ML and CiteSeer and 0.4 on PubMed "
    "(highest mean over the budgets)": settings.best_restart,
    "2a. Restart 0.2 is the worst at epsilon 0.5 and 1 (lowest mean)": settings.worst_restart,
    "2b. Restart 0.2 brings little even at epsilon 3 and 4 "
    f"(at most {LITTLE} above the best other restart)": settings.little_from_small_restart,
    f"3. With more steps restart 0.2 falls rapidly (significantly, by more than {RAPID} from one step to the "
    f"limit), 0.4 slightly (by at most {RAPID}), 0.6 and 0.8 stay or rise "
    f"(no fall above {LITTLE})": settings.curves_over_steps,
    f"4a. More than ten steps do not help (the limit is at most {LITTLE} above ten steps)": settings.no_help_after_ten,
    "4b. With a public test graph more steps help up to ten "
    f"(ten above one, and no fall above {LITTLE} on the way)": settings.help_until_ten,
    "5. GCON is above every competitor on every graph at every epsilon": rivals.competitors,
    f"6. GCON is close to the non-private GCN (at most {CLOSE} below)": rivals.close,
    "7. GCON is above an MLP that reads no edge": rivals.above_mlp,
    "8. GCON gains more on the homophilous graphs than on Actor "
    "(over the mean of the competitors and of the budgets)": rivals.gain,
    "9a. On homophilous graphs competitors fall as epsilon does (4 above 0.5)": rivals.competitors_fall,
    f"9b. GCON withstands a small budget (at epsilon 0.5 at most {CLOSE} below epsilon 4)": rivals.withstands,
}


def check(points: Sequence[Point]) -> list[Verdict]:
    """Tests all claims on the points of all figures; missing ones give "no results yet"."""
    lookup = Lookup(points)
    verdicts = [verdict for claim, drafts in CLAIMS.items() for verdict in decide(claim, list(drafts(lookup)))]
    return verdicts + _method_of_choice([each for each in verdicts if each.claim[:2] in ("5.", "7.")])


def _method_of_choice(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The paper's conclusion, from the claims it rests on."""
    claim = "10. GCON is the method of choice (claims 5 and 7 together)"
    rows = []
    for graph in PAPER_GRAPHS:
        found = [each.verdict for each in verdicts if each.where.startswith(f"{graph},")]
        counts = "; ".join(f"{word}: {found.count(word)} of {len(found)}" for word in dict.fromkeys(found))
        rows.append(Verdict(claim, graph, combine(found), counts, "not tested: see claims 5 and 7"))
    return rows
