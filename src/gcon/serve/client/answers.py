"""What a service says, as records. Whatever is not exactly what was agreed is refused: a client believes nothing by halves."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from gcon.serve.client.problems import ServiceError

_RELEASE = re.compile(r"[0-9a-f]{16}")
_AUDIENCES = ("public", "owner only", "operator only")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A label with its probabilities, and what it was made from.

    Attributes:
        label: the predicted class.
        probabilities: of every class.
        access: `own-edges` or `none`.
        audience: who may see the answer: `public`, `owner only` or `operator only`.
        used: what was used, and what was not.
        promise: what is promised.
        release: which release answered: the first 16 digits of its checksum.
    """

    label: str
    probabilities: Mapping[str, float]
    access: str
    audience: str
    used: str
    promise: str
    release: str


@dataclass(frozen=True, kw_only=True)
class Health:
    """A service that is there.

    Attributes:
        status: `ok`.
        release: which release answers.
        me: whether it answers owners from edges that it holds.
        node_table: whether people can be named by their ids.
        access: the kinds of access that it knows.
    """

    status: str
    release: str
    me: bool
    node_table: bool
    access: tuple[str, ...]


def read_json(content: bytes) -> dict[str, Any]:
    """One JSON object, strictly: no numbers that are none, and no name twice."""
    try:
        found = json.loads(content, parse_constant=_no_number, object_pairs_hook=_each_once)
    except (ValueError, RecursionError):  # a ValueError also if the bytes are not UTF-8
        raise _unexpected("is not JSON") from None
    if not isinstance(found, dict):
        raise _unexpected("is not a JSON object")
    return found


def answer_from(content: bytes, access: str) -> Answer:
    """An answer under the access that was asked for."""
    found = _exactly(read_json(content), Answer)
    shares = found.pop("probabilities")
    _check(all(isinstance(word, str) for word in found.values()), "has words that are none")
    _check(isinstance(shares, dict) and found["label"] in shares, "has a label without a probability")
    _check(all(_is_share(share) for share in shares.values()), "has probabilities outside [0, 1]")
    _check(abs(sum(shares.values()) - 1) < 1e-3, "has probabilities that do not add up to 1")
    _check(found["access"] == access, "was made with another access than was asked for")
    _check(found["audience"] in _AUDIENCES, "does not say who may see it")
    _check(_RELEASE.fullmatch(found["release"]) is not None, "does not say which release it is from")
    return Answer(probabilities={name: float(share) for name, share in shares.items()}, **found)


def health_from(content: bytes) -> Health:
    """How the service is."""
    found = _exactly(read_json(content), Health)
    access = found.pop("access")
    _check(found["status"] == "ok", "does not say that it is well")
    _check(isinstance(found["release"], str) and _RELEASE.fullmatch(found["release"]) is not None, "names no release")
    _check(isinstance(found["me"], bool) and isinstance(found["node_table"], bool), "does not say what it can do")
    _check(isinstance(access, list) and all(isinstance(kind, str) for kind in access), "names no kinds of access")
    return Health(access=tuple(access), **found)


def statement_from(content: bytes) -> dict[str, Any]:
    """The promise: all its fields, and `sentences`. An epsilon without bound is the word `inf`."""
    found = read_json(content)
    sentences, epsilon = found.get("sentences"), found.get("epsilon")
    _check(
        isinstance(sentences, list) and all(isinstance(each, str) for each in sentences), "has a promise without words"
    )
    number = isinstance(epsilon, int | float) and not isinstance(epsilon, bool) and epsilon >= 0
    _check(number or epsilon == "inf", "has a promise without epsilon")
    return found


def card_from(content: bytes) -> str:
    """The model card."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise _unexpected("is not UTF-8") from None


def _exactly(found: dict[str, Any], record: type) -> dict[str, Any]:
    names = {field.name for field in dataclasses.fields(record)}
    _check(set(found) == names, f"does not have the fields of a {record.__name__}")
    return found


def _is_share(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 <= value <= 1 and math.isfinite(value)  # type: ignore[operator, arg-type]


def _check(holds: bool, problem: str) -> None:
    if not holds:
        raise _unexpected(problem)


def _unexpected(problem: str) -> ServiceError:
    return ServiceError(f"The service's answer {problem}. Is this the address of a gcon service?")


def _no_number(_: str) -> NoReturn:
    raise ValueError


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found
