"""What a service says, as records. Whatever is not exactly what was agreed is refused: a client believes nothing by halves."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, NoReturn

import msgspec
from msgspec import Meta

from gcon.serve.client.problems import ServiceError

Release = Annotated[str, Meta(pattern=r"^[0-9a-f]{16}\Z")]
Share = Annotated[float, Meta(ge=0, le=1)]
Epsilon = Annotated[float, Meta(ge=0)] | Literal["inf"]


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
    probabilities: dict[str, Share]
    access: str
    audience: Literal["public", "owner only", "operator only"]
    used: str
    promise: str
    release: Release


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

    status: Literal["ok"]
    release: Release
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
    answer: Answer = _converted(read_json(content), Answer)
    _check(answer.label in answer.probabilities, "has a label without a probability")
    _check(abs(sum(answer.probabilities.values()) - 1) < 1e-3, "has probabilities that do not add up to 1")
    _check(answer.access == access, "was made with another access than was asked for")
    return answer


def health_from(content: bytes) -> Health:
    """How the service is."""
    found: Health = _converted(read_json(content), Health)
    return found


def statement_from(content: bytes) -> dict[str, Any]:
    """The promise: all its fields, and `sentences`. An epsilon without bound is the word `inf`."""
    found = read_json(content)
    for name, kind in (("sentences", list[str]), ("epsilon", Epsilon)):
        _check(name in found, f"has a promise without {name}")
        _converted(found[name], kind)
    return found


def card_from(content: bytes) -> str:
    """The model card."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise _unexpected("is not UTF-8") from None


def _converted(found: Any, kind: Any) -> Any:
    """What was read, as a record of exactly these fields; the decoder's own words may repeat those of the service."""
    if isinstance(found, dict):
        _check(set(found) == {field.name for field in fields(kind)}, f"does not have the fields of a {kind.__name__}")
    try:
        return msgspec.convert(found, kind)
    except msgspec.ValidationError as error:
        _, _, place = str(error).partition(" - at ")
        raise _unexpected(f"holds something else than was agreed (at {place or 'its top'})") from None


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
