"""A question as bytes -> a reply as bytes. Knows nothing of HTTP but its status numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from gcon.errors import GconError, InputError
from gcon.serve.questions import Asked, Shape, Someone, check_beginning, owned_node, question
from gcon.serve.replies import ALONE, HELD, REFUSED, SENT, problem, retry_after
from gcon.serve.served_release import ServedRelease, known_row
from gcon.serve.state import Service
from gcon.serve.tokens import TokenStore


class Reply(NamedTuple):
    """What is said, with which status, and headers besides the usual ones."""

    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


_Work = Callable[[bytes, str], Reply]


class Answering(NamedTuple):
    """How the questions of one path are answered.

    Attributes:
        reply: takes a body and the header Authorization.
        refusal: takes the beginning of a body; a reply if no end can make it right.
    """

    reply: _Work
    refusal: Callable[[bytes], Reply | None] = lambda _: None


def answering(service: Service) -> dict[str, Answering]:
    """By path: how its questions are answered. `/me` is there only with private edges."""

    def shape() -> Shape:
        return Shape(service.limits.most_neighbours, service.faces.held.num_features)

    def refusal(body: bytes) -> Reply | None:
        try:
            check_beginning(body, shape())
        except InputError as error:
            return Reply(problem("bad input", str(error)), 422)
        return None

    found = {"/predict": Answering(_replying(lambda body, _: _predict(service, question(body, shape()))), refusal)}
    if service.held.owners is not None and service.tokens is not None:
        tokens = service.token_store = TokenStore(service.tokens)
        found["/me"] = Answering(_replying(lambda body, said: _me(service, tokens, owned_node(body), said)))
    return found


def _predict(service: Service, asked: Asked) -> Reply:
    faces = service.faces  # once: a new release may come at any time
    held, words = faces.held, faces.words
    people = [_known(held, each) for each in (asked.me, *asked.neighbours)]
    known = [each for each in people if isinstance(each, int)]
    by_features = len(known) < len(people)
    if asked.access == "none":
        return Reply(words(held.without_edges(people[0]), ALONE, by_features=by_features))
    if len(set(known)) != len(known):
        rule, fix = "must be different people, and not you", "Name each once."
        raise InputError("neighbours", rule=rule, got="one twice", fix=fix)
    shares = held.from_people(people) if by_features else held.from_rows(known)
    return Reply(words(shares, SENT, by_features=by_features))


def _me(service: Service, tokens: TokenStore, node: str, authorization: str) -> Reply:
    """Whether such a node exists is asked only when a valid token has named it."""
    scheme, _, token = authorization.partition(" ")
    token = token.strip() if scheme.lower() == "bearer" else ""
    wait = service.by_token.wait(token)
    if wait > 0:
        message = "This token asks too often. Wait, then try again."
        return Reply(problem("too many requests", message), 429, (("retry-after", retry_after(wait)),))
    faces = service.faces  # once: a new release may come at any time
    held, words = faces.held, faces.words
    row = held.table.rows.get(node) if held.table is not None and tokens.check(token, node) else None
    if row is None:
        return Reply(problem("refused", REFUSED), 401, (("www-authenticate", "Bearer"),))
    return Reply(words(held.for_owner(row, node), HELD))


def _known(held: ServedRelease, someone: Someone) -> int | Tensor:
    """A row of the table, or features that the model can read."""
    if isinstance(someone, str):
        return known_row(held.table, someone)
    held.model.encoder.check(someone.reshape(1, -1))
    return someone


def _replying(work: _Work) -> _Work:
    """The same, with a sentence instead of an exception of ours. What nobody foresaw stays one."""

    def reply(body: bytes, authorization: str) -> Reply:
        try:
            return work(body, authorization)
        except InputError as error:
            return Reply(problem("bad input", str(error)), 422)
        except GconError as error:
            return Reply(problem("withheld", str(error)), 500)

    return reply
