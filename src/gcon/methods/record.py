"""What a model keeps in a release folder, and how it is read back: plain numbers and words, strictly.

Exactly these keys, exactly these types, and a refusal that names the file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from gcon.errors import ReleaseFormatError
from gcon.learn.encoder import Encoder
from gcon.privacy.receipt import Receipt

RELEASE, TENSORS = "release.json", "model.safetensors"
NUMBER, WORDS = (int, float), (str,)
GET_IT_AGAIN = "Get the folder again from where it was published."

Layout = dict[str, tuple[str, tuple[int, ...]]]  # type and shape of every tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class Common:
    """What all models have, read already."""

    encoder: Encoder
    class_names: tuple[object, ...]
    receipt: Receipt


def refuse(name: str, problem: str, fix: str = GET_IT_AGAIN) -> NoReturn:
    """Say what is wrong with a file of the folder."""
    raise ReleaseFormatError(f"{name}: {problem}. {fix}")


def exactly(record: object, where: str, kinds: Mapping[str, tuple[type, ...]]) -> dict[str, Any]:
    """A record with exactly these keys and types (a truth value is not a number)."""
    if not isinstance(record, dict) or set(record) != set(kinds):
        refuse(RELEASE, f"'{where}' must hold exactly {', '.join(sorted(kinds))}")
    for key, kind in kinds.items():
        if type(record[key]) not in kind:
            refuse(RELEASE, f"'{key}' in '{where}' is of the wrong type")
    return record


def with_infinity(value: Any) -> Any:
    """Strict JSON has no infinity: the word "inf" stands for it."""
    if isinstance(value, dict):
        return {key: with_infinity(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [with_infinity(entry) for entry in value]
    return math.inf if value == "inf" else value


def check_training_nodes(checksum: str) -> None:
    """Refuse what is no checksum of a node table."""
    if not re.fullmatch("[0-9a-f]{64}", checksum):
        refuse(RELEASE, "'training_nodes' in 'settings' is not a checksum")
