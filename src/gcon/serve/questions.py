"""A body as bytes -> a question. Stops at the first thing that is wrong, so that a broken body costs no more than a good one."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from pydantic_core import from_json
from torch import Tensor

from gcon.errors import InputError
from gcon.serve.bodies import MOST_ID

Someone = str | Tensor  # an id, or features
_SEE = "See /openapi.json."


class Asked(NamedTuple):
    """What somebody asks about herself."""

    me: Someone
    neighbours: list[Someone]
    access: str


def question(body: bytes, most_neighbours: int) -> Asked:
    """The question of `/predict`."""
    given = _object(body, ("me", "neighbours", "access"))
    if "me" not in given:
        raise InputError("me", rule="must be given", got="nothing", fix=_SEE)
    access = given.get("access", "own-edges")
    if access not in ("own-edges", "none"):
        raise InputError("access", rule="must be 'own-edges' or 'none'", got=_shown(access), fix=_SEE)
    people = given.get("neighbours", [])
    if not isinstance(people, list):
        raise InputError("neighbours", rule="must be a list of people", got=_shown(people), fix=_SEE)
    if len(people) > most_neighbours:
        rule = f"must be at most {most_neighbours}"
        raise InputError("neighbours", rule=rule, got=len(people), fix="Send some of them.")
    if people and access == "none":
        rule, fix = "go with access own-edges", "Leave them out."
        raise InputError("neighbours", rule=rule, got="access none", fix=fix)
    return Asked(_someone(given["me"], "me"), [_someone(each, "neighbours") for each in people], access)


def owned_node(body: bytes) -> str:
    """The node that somebody says is hers."""
    given = _object(body, ("node",))
    if "node" not in given:
        raise InputError("node", rule="must be given", got="nothing", fix=_SEE)
    return _id(given["node"], "node")


def _object(body: bytes, known: tuple[str, ...]) -> dict[str, Any]:
    try:
        given = from_json(body, allow_inf_nan=False)
    except ValueError:
        raise InputError("body", rule="must be JSON", got="something else", fix=_SEE) from None
    if not isinstance(given, dict):
        raise InputError("body", rule="must be a JSON object", got=_shown(given), fix=_SEE)
    _check_keys(given, known)
    return given


def _check_keys(given: dict[str, Any], known: tuple[str, ...]) -> None:
    unknown = next((key for key in given if key not in known), None)
    if unknown is not None:
        rule = f"is not known here: {', '.join(known)}"
        raise InputError(repr(unknown[:40]), rule=rule, got="a value", fix=_SEE)


def _someone(given: Any, place: str) -> Someone:
    if not isinstance(given, dict) or len(given) != 1:
        rule = "must be people, each with either id or features"
        raise InputError(place, rule=rule, got=_shown(given), fix=_SEE)
    _check_keys(given, ("id", "features"))
    if "id" in given:
        return _id(given["id"], f"{place}.id")
    numbers = given["features"]
    if not isinstance(numbers, list) or not set(map(type, numbers)) <= {int, float}:
        raise InputError(f"{place}.features", rule="must be a list of numbers", got=_shown(numbers), fix=_SEE)
    try:
        return torch.tensor(numbers, dtype=torch.float32)
    except (OverflowError, RuntimeError):
        rule = "must hold finite numbers"
        raise InputError(f"{place}.features", rule=rule, got="others", fix=_SEE) from None


def _id(given: Any, place: str) -> str:
    if not isinstance(given, str) or len(given) > MOST_ID:
        rule = f"must be a string of at most {MOST_ID} characters"
        raise InputError(place, rule=rule, got=_shown(given), fix=_SEE)
    return given


def _shown(given: Any) -> str:
    """What was sent, cut short: people find their mistake in it."""
    if isinstance(given, list | dict):
        return f"a JSON {'list' if isinstance(given, list) else 'object'} with {len(given)} entries"
    return repr(given)[:60]
