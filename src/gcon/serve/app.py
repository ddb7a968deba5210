"""The HTTP interface: who is asked what. All that is answered comes from `held.py`; limits are in `guard.py`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import torch
from fastapi import FastAPI, Header, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from gcon.errors import GconError, InputError
from gcon.release.card import model_card
from gcon.release.layout import canonical
from gcon.serve.access_log import AccessLog
from gcon.serve.bodies import Answer, ById, Health, Owner, Person, Problem, Question
from gcon.serve.guard import Application, Guard
from gcon.serve.held import Held, Signature, known_row, read_held, signature
from gcon.serve.limits import RateLimit
from gcon.serve.logs import Log
from gcon.serve.metrics import CONTENT_TYPE, Metrics
from gcon.serve.settings import Limits
from gcon.serve.tokens import TokenStore
from gcon.serve.words import ALONE, HELD, REFUSED, SENT, AnswerWords, problem
from gcon.site.build import site_pages
from gcon.version import __version__

_EVERY_SECOND = 1.0
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": words}
    for status, words in {
        400: "A body that cannot be read.",
        413: "A body that is too large.",
        422: "Input that breaks a rule; the message names it.",
        429: "Too many requests; Retry-After says when to come back.",
        503: "The answer took too long.",
    }.items()
}
_REFUSED: dict[int | str, dict[str, Any]] = {401: {"model": Problem, "description": "No such node with such a token."}}


@dataclass(eq=False, kw_only=True)
class Service:
    """What all handlers share; `held` is exchanged when a new release comes.

    Attributes:
        held: the release that answers now.
        folder: where the next one will be put.
        seen: tells whether it is there.
        limits: public numbers.
        tokens: where the tokens of owners are kept; opened by every worker for itself.
        access_log: of answers from private edges.
        origin: another site whose pages may ask this service.
        log: lines about the service.
    """

    held: Held
    folder: Path
    seen: Signature
    limits: Limits = field(default_factory=Limits)
    tokens: Path | None = None
    access_log: AccessLog | None = None
    origin: str | None = None
    log: Log = field(default_factory=Log)

    def __post_init__(self) -> None:
        burst = self.limits.burst
        self.by_address = RateLimit(per_minute=self.limits.per_address, burst=burst)
        self.by_token = RateLimit(per_minute=self.limits.per_token, burst=burst)
        self.metrics = Metrics()
        self.faces = Faces(self.held)

    def take(self, held: Held, seen: Signature) -> None:
        """Put a new release in the place of the old one."""
        self.faces, self.held, self.seen = Faces(held), held, seen


class Faces:
    """Everything that a release says without being asked a question: made once."""

    def __init__(self, held: Held) -> None:
        model, table = held.model, held.table
        statement = model.statement()
        self.words = AnswerWords(model, held.release)
        self.statement = canonical({**statement.fields, "sentences": list(statement.sentences)})
        self.card = model_card(model).encode()
        self.pages = {
            name: text.encode()
            for name, text in site_pages(
                model,
                nodes=None if table is None else table.nodes,
                service="",
                me=held.owners is not None,
                node_table=table is not None,
            ).items()
        }


def application(service: Service) -> Application:
    """The whole service as an ASGI application."""
    app = FastAPI(
        title="gcon",
        description="Answers from a released node classifier, with a promise about every single edge.",
        version=__version__,
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
        lifespan=_lifespan(service),
    )
    _add_answers(app, service)
    _add_facts(app, service)
    _add_problems(app)
    if service.origin is not None:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=[service.origin],
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type"],
        )
    return Guard(
        app,
        limits=service.limits,
        addresses=service.by_address,
        routes=frozenset(getattr(route, "path", "") for route in app.routes),
        metrics=service.metrics,
        log=service.log,
    )


def _add_answers(app: FastAPI, service: Service) -> None:
    @app.post("/predict", response_model=Answer, responses=_PROBLEMS, summary="Ask from what you send")
    async def predict(question: Question) -> Response:
        """Nothing is stored. With own-edges the answer is computed from the people you name, with none from you alone."""
        held, words = service.held, service.faces.words
        if len(question.neighbours) > service.limits.most_neighbours:
            raise InputError(
                "neighbours",
                rule=f"must be at most {service.limits.most_neighbours}",
                got=len(question.neighbours),
                fix="Send some of them.",
            )
        if question.access == "none":
            if question.neighbours:
                raise InputError(
                    "neighbours", rule="go with access own-edges", got="access none", fix="Leave them out."
                )
            me = _person(held, question.me)
            found = held.without_edges(row=me) if isinstance(me, int) else held.without_edges(features=me)
            return _json(words(found, ALONE))
        people = [_person(held, person) for person in (question.me, *question.neighbours)]
        known = [person for person in people if isinstance(person, int)]
        if len(set(known)) != len(known):
            raise InputError(
                "neighbours", rule="must be different people, and not you", got="one twice", fix="Name each once."
            )
        found = held.from_rows(known[0], known[1:]) if len(known) == len(people) else held.from_features(people)
        return _json(words(found, SENT))

    if service.held.owners is None:
        return
    assert service.tokens is not None
    tokens = TokenStore(service.tokens)

    @app.post("/me", response_model=Answer, responses=_PROBLEMS | _REFUSED, summary="Ask as the owner of a node")
    async def me(owner: Owner, authorization: Annotated[str, Header(max_length=200)] = "") -> Response:
        """Answered from the edges of this node alone, for its owner alone: Authorization: Bearer TOKEN."""
        token = authorization.removeprefix("Bearer ")
        wait = service.by_token.wait(token)
        if wait > 0:
            headers = {"retry-after": str(round(wait + 0.5))}
            return _json(problem("too many requests", "This token asks too often. Wait, then try again."), 429, headers)
        held, words = service.held, service.faces.words
        assert held.table is not None
        if tokens.check(token, owner.node) is None or owner.node not in held.table.rows:
            return _json(problem("refused", REFUSED), 401, {"www-authenticate": "Bearer"})
        return _json(words(held.for_owner(held.table.rows[owner.node], owner.node), HELD))


def _person(held: Held, person: Person) -> int | torch.Tensor:
    """A row of the table, or features."""
    if isinstance(person, ById):
        return known_row(held.table, person.id)
    features = torch.tensor(person.features, dtype=torch.float32)
    held.model.encoder.check(features.reshape(1, -1))
    return features


def _add_facts(app: FastAPI, service: Service) -> None:
    @app.get("/statement", summary="The promise, as data and in words", response_model=dict[str, Any])
    async def statement() -> Response:
        return _json(service.faces.statement)

    @app.get("/card", summary="The model card, as Markdown", response_class=Response)
    async def card() -> Response:
        return Response(service.faces.card, media_type="text/markdown; charset=utf-8")

    @app.get("/health", response_model=Health, summary="Whether the service is there")
    async def health() -> Health:
        held = service.held
        return Health(
            status="ok",
            release=held.release,
            me=held.owners is not None,
            node_table=held.table is not None,
            access=["own-edges", "none"],
        )

    @app.get("/metrics", summary="Counts for Prometheus; nothing in them depends on edges", response_class=Response)
    async def metrics() -> Response:
        return Response(service.metrics.page(), headers={"content-type": CONTENT_TYPE})

    def page(name: str) -> Callable[[], Any]:
        async def show() -> HTMLResponse:
            return HTMLResponse(service.faces.pages[name])

        return show

    for path, name in [("/", "index.html"), *((f"/{name}", name) for name in service.faces.pages)]:
        app.get(path, include_in_schema=False, response_class=HTMLResponse)(page(name))


def _add_problems(app: FastAPI) -> None:
    """Our own exceptions and the library's, as sentences that name the parameter and the rule."""

    @app.exception_handler(InputError)
    async def bad_input(_: Request, error: InputError) -> Response:
        return _json(problem("bad input", str(error)), 422)

    @app.exception_handler(GconError)
    async def withheld(_: Request, error: GconError) -> Response:
        return _json(problem("withheld", str(error)), 500)

    @app.exception_handler(RequestValidationError)
    async def wrong_shape(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part != "body")[:200] or "body"
        return _json(problem("bad input", f"{place}: {first['msg']}. See /openapi.json for what is expected."), 422)

    @app.exception_handler(HTTPException)
    async def known(_: Request, error: HTTPException) -> Response:
        names = {400: "bad input", 404: "not found", 405: "not allowed"}
        return _json(
            problem(names.get(error.status_code, "bad input"), f"{error.detail}."), error.status_code, error.headers
        )


def _json(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(body, status, dict(headers or {}), media_type="application/json")


def _lifespan(service: Service) -> Callable[[FastAPI], Any]:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        keeper = asyncio.create_task(_look_after(service))
        yield
        keeper.cancel()
        with suppress(asyncio.CancelledError):
            await keeper
        if service.access_log is not None:
            service.access_log.flush()

    return lifespan


async def _look_after(service: Service) -> None:
    """Every second: bring the access log to the disk, and take a new release that was put into the folder."""
    refused: Signature | None = None
    while True:
        await asyncio.sleep(_EVERY_SECOND)
        if service.access_log is not None:
            await asyncio.to_thread(service.access_log.flush)
        try:
            there = signature(service.folder)
            if there in (service.seen, refused):
                continue
            old = service.held
            held, seen = await asyncio.to_thread(read_held, service.folder, table=old.table, owners=old.owners)
            service.take(held, seen)
            service.metrics.reload("taken")
            service.log.event("reload", release=held.release)
        except GconError as error:
            there_now = _signature_or_none(service.folder)
            if there_now != refused:
                refused = there_now
                service.metrics.reload("refused")
                service.log.event("reload refused", kind=type(error).__name__, message=str(error))


def _signature_or_none(folder: Path) -> Signature | None:
    try:
        return signature(folder)
    except GconError:
        return None
