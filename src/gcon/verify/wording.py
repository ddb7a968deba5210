"""The steps about words: what people and machines are told in the folder is what the receipt says, and nothing else."""

from __future__ import annotations

import json
import re
from typing import Any

from gcon.verify.claim import free_of_edges, plainly
from gcon.verify.folder import Folder, expected_texts
from gcon.verify.steps import Steps

_PROMISE = re.compile(r"\(([^()]*)\)-differentially private")
_COPIED = ("data_set", "mechanism", "plan", "protected_change", "purpose", "randomness", "time")


def check_words(folder: Folder, steps: Steps) -> None:
    """The fields, the numbers of the promise, and then every sentence, written once more and compared byte by byte."""
    steps.check("The fields of privacy.json are those of the receipt, number by number", _same_fields(folder))
    budget = folder.model.receipt.budget
    numbers = f"{plainly(budget.epsilon)}, {plainly(budget.delta)}"
    for name, content in sorted(folder.texts.items()):
        found = set(_PROMISE.findall(content.decode(errors="replace")))
        if folder.model.receipt.keeps_promise and not free_of_edges(folder):
            steps.check(f"{name} promises ({numbers}) and nothing else", found == {numbers})
        else:
            steps.check(f"{name} promises no epsilon and delta", not found)
    written, maker = expected_texts(folder.model), folder.document["libraries"].get("gcon")
    for name in sorted(written):
        steps.check(
            f"{name} is word for word what receipt and settings lead to (in the words of this gcon; gcon {maker} wrote it, it "
            "says)",
            written[name] == folder.texts[name],
        )


def _same_fields(folder: Folder) -> bool:
    try:
        said = json.loads(folder.texts["privacy.json"])["fields"]
        receipt = folder.document["receipt"]
        expected = {name: receipt[name] for name in _COPIED}
        expected |= {name: receipt["budget"][name] for name in ("epsilon", "delta")}
        uncounted = {} if receipt.get("counted", True) else {"counted": False}
        expected |= {
            "promise": receipt["keeps_promise"],
            "total": {**receipt["total"], "composition": "basic", **uncounted},
        }
        return _exact({name: said[name] for name in expected}) == _exact(expected)
    except (KeyError, TypeError, ValueError, RecursionError):
        return False


def _exact(content: Any) -> str:
    """One text a content: 1, 1.0 and true are three things."""
    return json.dumps(content, sort_keys=True)
