"""From a release folder to a verdict: does the plan, by the proofs and by its own numbers, lead to the claimed promise?

The package's calibration, mechanisms, statistics and noise are not used here (an import rule checks it): two programs would
have to be wrong in the same way. What follows is docs/verify.md, step by step.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from gcon.verify.claim import NOT_CHECKED, check_claim, check_words, claim_of
from gcon.verify.folder import Folder, read_folder
from gcon.verify.moments_steps import NOT_CHECKED_MOMENTS, check_moments
from gcon.verify.objective_steps import NOT_CHECKED_PAPER, check_paper
from gcon.verify.steps import Steps, UnfitError, Verification

_METHODS: dict[str, tuple[Callable[[Folder, Steps], None], tuple[str, ...]]] = {
    "moments": (check_moments, NOT_CHECKED_MOMENTS),
    "paper": (check_paper, NOT_CHECKED_PAPER),
}


_MOST_NAMES = 20


def verify_release(folder: str | os.PathLike[str]) -> Verification:
    """Recompute the promise of a release from its folder.

    Args:
        folder: what `save_release` wrote; a damaged one raises `ReleaseFormatError`.

    Privacy:
        Reads public files. A verdict says that the numbers fit the promise, not that they were told honestly.
    """
    read = read_folder(folder)
    receipt, steps = read.model.receipt, Steps()
    check_method, not_checked = _METHODS[read.model.method]
    check_claim(read, steps)
    if receipt.keeps_promise:
        try:
            check_method(read, steps)
        except UnfitError as error:
            steps.check(f"The plan has every number that is needed ({error})", False)
        except (ArithmeticError, ValueError):
            steps.check("The plan's numbers can be computed with", False)
    check_words(read, steps)
    return Verification(
        claim=claim_of(read),
        method=read.model.method,
        epsilon=receipt.budget.epsilon,
        delta=receipt.budget.delta,
        steps=tuple(steps.taken),
        not_checked=(*_beside(read), *not_checked, *NOT_CHECKED),
    )


def _beside(folder: Folder) -> tuple[str, ...]:
    """Names of files that are no part of a release, in letters that do nothing to a terminal."""
    names = [ascii(name) for name in folder.others[:_MOST_NAMES]]
    if not names:
        return ()
    more = f" and {len(folder.others) - _MOST_NAMES} more" if len(folder.others) > _MOST_NAMES else ""
    return (f"what else lies in the folder, which is no part of the release: {', '.join(names)}{more}",)
