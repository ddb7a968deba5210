"""A body as bytes -> a question. Reading stops at the first thing that is wrong: no value is made that no question can have."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeVar

import numpy as np
import torch
from msgspec import UNSET, Struct, UnsetType, ValidationError
from msgspec.json import Decoder
from torch import Tensor

from gcon.errors import InputError
from gcon.serve.bodies import MOST_ID
from gcon.serve.settings import NOT_CACHED

Someone = str | Tensor  # an id, or features
T = TypeVar("T")
_SEE = "See /openapi.json."
# In one question. Numbers of two bytes would fill a body with millions, and others wait while they are read.
MOST_NUMBERS = 2**18
_ASK = 'Send, for example, {"me": {"id": "17"}, "access": "none"}; all else is in /openapi.json.'
_ASK_AS_OWNER = 'Send {"node": "YOUR ID"}, with your token in the header Authorization: Bearer TOKEN.'

_PEOPLE = "must be people, each with either id or features"
_RULES = {  # by the last word of the place
    "access": "must be 'own-edges' or 'none'",
    "features": "must be a list of numbers",
    "id": "must be a string",
    "me": _PEOPLE,
    "neighbours": f"{_PEOPLE}, in a list",
    "node": "must be a string",
}


class _Person(Struct, forbid_unknown_fields=True, gc=False):
    id: str | UnsetType = UNSET
    features: list[float] | UnsetType = UNSET


class _Question(Struct, forbid_unknown_fields=True):
    me: _Person
    neighbours: list[_Person] | UnsetType = UNSET
    access: Literal["own-edges", "none"] | UnsetType = UNSET


class _Owner(Struct, forbid_unknown_fields=True):
    node: str


_QUESTION, _OWNER = Decoder(_Question), Decoder(_Owner)


class Asked(NamedTuple):
    """What somebody asks about herself."""

    me: Someone
    neighbours: list[Someone]
    access: str


class Shape(NamedTuple):
    """Public numbers that bound what a question can hold.

    Attributes:
        most_neighbours: people beside the one who asks.
        features: numbers of a person.
    """

    most_neighbours: int
    features: int


def question(body: bytes, shape: Shape) -> Asked:
    """The question of `/predict`."""
    _check_counts(body, shape)
    given = _decoded(_QUESTION, body, _ASK)
    people = [] if given.neighbours is UNSET else given.neighbours
    access = "own-edges" if given.access is UNSET else given.access
    if len(people) > shape.most_neighbours:
        raise _too_many(shape)
    if people and access == "none":
        rule, fix = "go with access own-edges", "Leave them out."
        raise InputError("neighbours", rule=rule, got="access none", fix=fix)
    asked = Asked(_someone(given.me, "me", shape), [_someone(each, "neighbours", shape) for each in people], access)
    keys = 1 + (given.neighbours is not UNSET) + (given.access is not UNSET)
    _check_keys(body, keys + 1 + len(people), [given.me, *people])
    return asked


def check_beginning(body: bytes, shape: Shape) -> None:
    """Refuse what no end can make a question. A number or a letter may be cut in two, so nothing else is refused here."""
    _check_counts(body, shape)
    try:
        _QUESTION.decode(body)
    except ValidationError as error:
        raise _wrong(error, _ASK) from None
    except ValueError:
        return


def owned_node(body: bytes) -> str:
    """The node that somebody says is hers."""
    node = _decoded(_OWNER, body, _ASK_AS_OWNER).node
    _check_keys(body, 1, [_Person(id=node)])
    return _id(node, "node")


def _check_counts(body: bytes, shape: Shape) -> None:
    """Bounds on people and numbers that hold for every question, told from the bytes alone.

    A person begins with `{`, then a quote; within a string these two can meet only at its end. A comma is between two numbers of
    a person, within an id, or after a person or one of the three keys.
    """
    if body.count(b'{"') > 2 * (shape.most_neighbours + 2):
        raise _too_many(shape)
    if (commas := body.count(b",")) > MOST_NUMBERS:
        rule, fix = f"must be at most {MOST_NUMBERS:,} in one question", "Send fewer neighbours, or name them by id."
        raise InputError("features: numbers", rule=rule, got="more", fix=fix)
    if commas > (body.count(b"{") + 3) * (max(shape.features, MOST_ID) + 1):
        rule = f"must be at most {shape.features} for each person"
        raise InputError("features: numbers", rule=rule, got="more", fix=_SEE)


def _check_keys(body: bytes, keys: int, people: list[_Person]) -> None:
    """Refuse a key that is there twice: the decoder keeps the last, other readers the first.

    Every colon follows a key or is in an id; so there are as many as that, or keys that were thrown away.
    """
    colons = body.count(b":")
    if colons == keys:
        return
    in_ids = sum(each.id.count(":") for each in people if each.id is not UNSET)
    if colons != keys + in_ids or b"\\u003a" in body or b"\\u003A" in body:
        rule, fix = "must have every key once", "Name each once, and write a colon in an id as it is."
        raise InputError("body", rule=rule, got="a key twice", fix=fix)


def _decoded(decoder: Decoder[T], body: bytes, example: str) -> T:
    try:
        return decoder.decode(body)
    except ValidationError as error:
        raise _wrong(error, example) from None
    except ValueError:  # no JSON, or no UTF-8
        got = "something else" if body.strip() else "nothing"
        raise InputError("body", rule="must be JSON", got=got, fix=example) from None


def _wrong(error: ValidationError, example: str) -> InputError:
    """What the decoder says, `Expected ..., got ... - at $.neighbours[3].id`, with the place first and cut short."""
    what, _, place = str(error).partition(" - at ")
    where, got = (
        re.sub(r"\[[^]]*\]", "", place).strip("`$."),
        re.sub("^(Expected .*got|Invalid enum value) ", "", what)[:80],
    )
    rule = _RULES.get(where.rpartition(".")[2], "must have the keys of the example, and no other")
    if "Number out of range" in what:
        rule, got = "must hold finite numbers", "others"
    fix = NOT_CACHED if got == "'cached'" else _SEE if where else example
    return InputError(where or "body", rule=rule, got=got, fix=fix)


def _too_many(shape: Shape) -> InputError:
    rule = f"must be at most {shape.most_neighbours}"
    return InputError("neighbours", rule=rule, got="more", fix="Send some of them.")


def _someone(given: _Person, place: str, shape: Shape) -> Someone:
    if (given.id is UNSET) == (given.features is UNSET):
        raise InputError(place, rule=_PEOPLE, got="both or neither", fix=_SEE)
    if given.features is UNSET:
        return _id(given.id, f"{place}.id")  # type: ignore[arg-type]  # one of them is there
    if len(given.features) != shape.features:
        rule = f"must have the {shape.features} columns that the model was trained on"
        raise InputError(f"{place}.features", rule=rule, got=len(given.features), fix="Pass all, in that order.")
    # By way of an array: a tensor from a list takes ten times as long, and others wait for it.
    return torch.from_numpy(np.array(given.features, dtype=np.float64)).float()


def _id(given: str, place: str) -> str:
    if len(given) > MOST_ID:
        rule = f"must be a string of at most {MOST_ID} characters"
        raise InputError(place, rule=rule, got=f"{len(given)} characters", fix=_SEE)
    return given
