"""Whether something near the edges knows of more spending than the ledger does: it may be new, an older one, or not theirs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from gcon.privacy.ledger_file import FileLedger
from gcon.release.recovery import recovery_folder

MOST_FOLDERS, MOST_BYTES = 200, 2**20  # looked at; a release's settings are smaller


def missing_spending(ledger: FileLedger, *, usual: Path | None, places: Iterable[Path]) -> Iterator[str]:
    """What to warn about, in words.

    Args:
        ledger: that is paid from.
        usual: where the ledger of these edges lies if none is named; None if that place is gone.
        places: folders in which releases of the same edges may lie.
    """
    path, spent = ledger.path, ledger.total()
    if usual is not None and usual.exists() and usual.resolve() != path:
        yield f"These edges have a ledger, {usual}, and {path} is paid from instead. What was spent there is not counted here."
    if spent.epsilon == 0 and recovery_folder(path).exists():
        yield f"{recovery_folder(path)} holds results that were paid for, but the ledger {path} knows of no spending."
    found: set[Path] = set()
    for place in places:
        with suppress(OSError):
            found.update(islice(place.resolve().glob("*/release.json"), MOST_FOLDERS))
    for release in sorted(found):
        with suppress(OSError, ValueError, RecursionError, TypeError, KeyError):
            with release.open("rb") as file:
                receipt: Any = json.loads(file.read(MOST_BYTES))["receipt"]
            total = float(receipt["total"]["epsilon"])
            if receipt["data_set"] == ledger.data_set and total > spent.epsilon:
                yield (
                    f"The release {release.parent} says that epsilon {total:g} was spent on '{ledger.data_set}' by then, but the "
                    f"ledger {path} knows of {spent.epsilon:g}. If it is about the same edges, restore their ledger: what was "
                    "spent stays spent."
                )
