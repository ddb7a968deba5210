"""Somebody asks a service about herself."""

from __future__ import annotations

import json
import math
import numbers
import re
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from gcon.errors import InputError, check_number
from gcon.serve.client.answers import Answer, Health, answer_from, card_from, health_from, read_json, statement_from
from gcon.serve.client.connection import Connection, Reply, place_of
from gcon.serve.client.problems import RefusedError, ServiceError, TooManyRequestsError
from gcon.serve.settings import NOT_CACHED

_TOKEN = re.compile(r"gcon_[A-Za-z0-9_-]{43}")
_SECONDS = re.compile(r"[0-9]{1,6}")
_MOST_WORDS = 1000  # of a message by the service


class Client:
    """Asks one service; for one thread at a time. Keeps its connection: close it, or use it in a `with` block.

    Args:
        address: of the service, such as `https://answers.example.org`.
        token: of the owner of a node, for `me`.
        timeout: seconds to wait for the next bytes of an answer.
        insecure: send the token over http:// also to another machine, where everybody on the way can read it.

    Example:
        >>> Client("http://127.0.0.1:8000")
        Client('http://127.0.0.1:8000')

    Privacy:
        `predict` sends what it is given: the ids or features of somebody and of her neighbours. `me` sends an id and the token.
        The service sees both, and who asks. Certificates are checked; an answer is for its `audience`.
    """

    def __init__(
        self, address: str, *, token: str | None = None, timeout: float = 10.0, insecure: bool = False
    ) -> None:
        place = place_of(address)
        check_number(
            "timeout",
            timeout,
            allowed=lambda number: 0 < number < math.inf,
            rule="must be a positive number of seconds",
            fix="Leave it out for 10.",
        )
        if token is not None and not (isinstance(token, str) and _TOKEN.fullmatch(token)):
            raise InputError(
                "token",
                rule="must be gcon_ and 43 letters, digits, - or _",
                got="something else",
                fix="Copy it whole, without spaces.",
            )
        if token is not None and not (place.secure or place.on_this_machine or insecure):
            raise InputError(
                "address",
                rule="must be https:// if a token is sent to another machine",
                got="http://",
                fix="Use https://; insecure=True sends it for everybody on the way to read.",
            )
        self._address, self._token = address, token
        self._connection = Connection(place, timeout)

    def __repr__(self) -> str:
        return f"Client({self._address!r}{'' if self._token is None else ', token=...'})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection. The next question opens a new one."""
        self._connection.close()

    def predict(self, me: Any, neighbours: Iterable[Any] = (), access: str = "own-edges") -> Answer:
        """Ask from what is sent: the service reads no edge for this, and stores nothing.

        Args:
            me: an id, if the service has a node table; or features, one number each in the order of the training (a list, an
                array, a tensor).
            neighbours: those with whom she shares an edge, each likewise; or an array or tensor with one row each.
            access: `own-edges`, or `none` to be answered without neighbours.

        Privacy:
            The neighbours are sent to the service. With access `none` none may be given, so that none are sent by mistake.
        """
        if access not in ("own-edges", "none"):
            rule = "must be 'own-edges' or 'none'"
            fix = NOT_CACHED if access == "cached" else "Leave it out for 'own-edges'."
            raise InputError("access", rule=rule, got=repr(access), fix=fix)
        if isinstance(neighbours, str | bytes):
            raise InputError("neighbours", rule="must be a list of people", got="one word", fix="Put it into a list.")
        others = [_person(each, "neighbours") for each in neighbours]
        if others and access == "none":
            fix = "Leave them out; nothing was sent."
            raise InputError("neighbours", rule="go with access own-edges", got="access none", fix=fix)
        question = {"access": access, "me": _person(me, "me"), "neighbours": others}
        return answer_from(self._ask("POST", "/predict", question), access)

    def me(self, node: str) -> Answer:
        """Ask as the owner of a node, from the edges that the service holds: from hers alone.

        Args:
            node: the public id of her node; the client must have its token.

        Privacy:
            The service writes down that she was answered, and when. The answer depends on her edges: it is for her alone.
        """
        if not isinstance(node, str):
            raise InputError("node", rule="must be an id, a string", got=type(node).__name__, fix="Use str(node).")
        if self._token is None:
            rule, fix = "is needed to ask as an owner", "Client(address, token=...)."
            raise InputError("token", rule=rule, got="none", fix=fix)
        return answer_from(self._ask("POST", "/me", {"node": node}, token=self._token), "own-edges")

    def statement(self) -> dict[str, Any]:
        """The promise: its fields, and `sentences` in plain words."""
        return statement_from(self._ask("GET", "/statement"))

    def card(self) -> str:
        """The model card, as Markdown."""
        return card_from(self._ask("GET", "/card"))

    def health(self) -> Health:
        """Whether the service is there, which release it has, and what it can be asked."""
        return health_from(self._ask("GET", "/health"))

    def _ask(self, method: str, path: str, question: object = None, *, token: str | None = None) -> bytes:
        """The bytes of an answer; anything but status 200 is raised."""
        headers = {"accept": "application/json, text/markdown"}
        body = None
        if question is not None:
            body = json.dumps(question, allow_nan=False).encode()
            headers["content-type"] = "application/json"
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        reply = self._connection.ask(method, path, body, headers)
        if reply.status != 200:
            raise self._problem(reply)
        return reply.content

    def _problem(self, reply: Reply) -> Exception:
        """What a reply other than an answer means. Its words are shown only if they are those of a service."""
        status = reply.status
        try:
            said = read_json(reply.content)
        except ServiceError:
            said = {}
        if set(said) != {"error", "message"} or not all(isinstance(word, str) for word in said.values()):
            return ServiceError(f"The service did not answer: HTTP status {status}.", status)
        message = self._harmless(said["message"])
        if status == 422:
            fix = "Its /openapi.json says what it expects."
            return InputError(
                "question", rule="must suit the service", got=f"its reply: {message.rstrip('.')}", fix=fix
            )
        if status == 401:
            return RefusedError(message, status)
        wait = reply.headers.get("retry-after", "")
        if status == 429 and _SECONDS.fullmatch(wait):
            return TooManyRequestsError(message, status, float(wait))
        return ServiceError(f"{self._harmless(said['error'])}: {message}", status)

    def _harmless(self, words: str) -> str:
        """Words of a service for a terminal: short, without control characters, and without the token if it repeats that."""
        hidden = words if self._token is None else words.replace(self._token, "...")
        return "".join(letter if letter.isprintable() else " " for letter in hidden[:_MOST_WORDS])


def _person(person: Any, parameter: str) -> dict[str, object]:
    """Somebody as the service expects her."""
    if isinstance(person, str):
        return {"id": person}
    rule, fix = "must be an id (a string) or finite numbers, one per feature", "Pass one person as one of them."
    try:
        row = list(person.tolist() if hasattr(person, "tolist") else person)
    except TypeError:
        raise InputError(parameter, rule=rule, got=type(person).__name__, fix=fix) from None
    if not all(_is_number(entry) for entry in row):
        raise InputError(parameter, rule=rule, got="something else among the numbers", fix=fix)
    return {"features": [float(entry) for entry in row]}


def _is_number(entry: object) -> bool:
    try:
        return isinstance(entry, numbers.Real) and not isinstance(entry, bool) and math.isfinite(entry)
    except OverflowError:  # a whole number beyond all floats
        return False
