"""A question as bytes -> a reply as bytes. Knows nothing of HTTP but its status numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from pydantic import ValidationError

from gcon.errors import GconError, InputError
from gcon.serve.bodies import ById, Owner, Person, Question
from gcon.serve.held import Held, known_row
from gcon.serve.state import Service
from gcon.serve.tokens import TokenStore
from gcon.serve.words import ALONE, HELD, REFUSED, SENT, problem


class Reply(NamedTuple):
    """What is said, with which status, and headers besides the usual ones."""

    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


Answering = Callable[[bytes, str], Reply]


def answering(service: Service) -> dict[str, Answering]:
    """By path: what takes a body and the header Authorization, and gives a reply. `/me` is there only with private edges."""
    found = {"/predict": _replying(lambda body, _: _predict(service, Question.model_validate_json(body)))}
    if service.held.owners is not None and service.tokens is not None:
        tokens = TokenStore(service.tokens)
        found["/me"] = _replying(lambda body, said: _me(service, tokens, Owner.model_validate_json(body), said))
    return found


def _predict(service: Service, question: Question) -> Reply:
    held, words, most = service.held, service.faces.words, service.limits.most_neighbours
    count = len(question.neighbours)
    if count > most:
        raise InputError("neighbours", rule=f"must be at most {most}", got=count, fix="Send some of them.")
    if question.access == "none":
        if count:
            rule, fix = "go with access own-edges", "Leave them out."
            raise InputError("neighbours", rule=rule, got="access none", fix=fix)
        return Reply(words(held.without_edges(_person(held, question.me)), ALONE))
    people = [_person(held, person) for person in (question.me, *question.neighbours)]
    known = [person for person in people if isinstance(person, int)]
    if len(set(known)) != len(known):
        rule, fix = "must be different people, and not you", "Name each once."
        raise InputError("neighbours", rule=rule, got="one twice", fix=fix)
    return Reply(words(held.from_rows(known) if len(known) == len(people) else held.from_people(people), SENT))


def _me(service: Service, tokens: TokenStore, owner: Owner, authorization: str) -> Reply:
    """Whether such a node exists is asked only when a valid token has named it."""
    token = authorization.removeprefix("Bearer ")
    wait = service.by_token.wait(token)
    if wait > 0:
        message = "This token asks too often. Wait, then try again."
        return Reply(problem("too many requests", message), 429, (("retry-after", str(round(wait + 0.5))),))
    held, words = service.held, service.faces.words
    row = held.table.rows.get(owner.node) if held.table is not None and tokens.check(token, owner.node) else None
    if row is None:
        return Reply(problem("refused", REFUSED), 401, (("www-authenticate", "Bearer"),))
    return Reply(words(held.for_owner(row, owner.node), HELD))


def _person(held: Held, person: Person) -> int | torch.Tensor:
    """A row of the table, or features."""
    if isinstance(person, ById):
        return known_row(held.table, person.id)
    features = torch.tensor(person.features, dtype=torch.float32)
    held.model.encoder.check(features.reshape(1, -1))
    return features


def _replying(work: Answering) -> Answering:
    """The same, with a sentence instead of an exception of ours. What nobody foresaw stays one."""

    def reply(body: bytes, authorization: str) -> Reply:
        try:
            return work(body, authorization)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            place = ".".join(str(part) for part in first["loc"])[:200] or "body"
            message = f"{place}: {first['msg']}. See /openapi.json for what is expected."
            return Reply(problem("bad input", message), 422)
        except InputError as error:
            return Reply(problem("bad input", str(error)), 422)
        except GconError as error:
            return Reply(problem("withheld", str(error)), 500)

    return reply
