"""The HTTP interface: its paths and its schema. Answers are in `answers.py`, limits in `guard.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect

from gcon.serve.answers import Answering, answering
from gcon.serve.bodies import Answer, Health, Owner, Problem, Question
from gcon.serve.guard import Application, Guard
from gcon.serve.incoming import TooLargeError, TooOftenError, answered
from gcon.serve.metrics import CONTENT_TYPE
from gcon.serve.replies import TOO_OFTEN, problem, retry_after
from gcon.serve.state import Service
from gcon.serve.upkeep import upkeep
from gcon.version import __version__

_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": words}
    for status, words in {
        413: "A body that is too large.",
        422: "Input that breaks a rule; the message names it.",
        429: "Too many requests; Retry-After says when to come back.",
        503: "The answer took too long.",
    }.items()
}
_TAKEN: dict[str, type[BaseModel]] = {"/predict": Question, "/me": Owner}
_PARTS = "#/components/schemas/"
_REFUSED: dict[int | str, dict[str, Any]] = {401: {"model": Problem, "description": "No such node with such a token."}}


def application(service: Service) -> Application:
    """The whole service as an ASGI application."""
    app = FastAPI(
        title="gcon",
        description="Answers from a released node classifier, with a promise about every single edge.",
        version=__version__,
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # a redirect would go wherever the header Host says
        lifespan=upkeep(service),
    )
    answers = answering(service)
    aside = ThreadPoolExecutor(1, thread_name_prefix="long")  # one at a time: the others go first
    _add_answers(app, answers, aside)
    _add_facts(app, service)
    _add_problems(app)
    schema = app.openapi()  # kept by the application: this is what it shows
    schema["components"]["schemas"] |= _bodies(answers)
    schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    if service.origin is not None:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=[service.origin],
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type"],
            expose_headers=["retry-after"],
        )
    return Guard(
        app,
        limits=service.limits,
        addresses=service.by_address,
        routes=frozenset(getattr(route, "path", "") for route in app.routes),
        aside=aside,
        direct={} if service.origin is not None else answers,  # other sites need headers that the application adds
        timed=service.held.owners is None,
        metrics=service.metrics,
        log=service.log,
    )


def _add_answers(app: FastAPI, answers: dict[str, Answering], aside: ThreadPoolExecutor) -> None:
    """Questions, for the schema; where no other site may ask, the guard answers them before they come here."""

    def handler(answer: Answering) -> Callable[[Request], Any]:
        async def reply(request: Request) -> Response:
            said = await answered(answer, request.receive, request.headers.get("authorization", ""), aside)
            if said is None:
                raise ClientDisconnect
            return Response(said.body, said.status, dict(said.headers), media_type="application/json")

        return reply

    for path, more, summary, words in (
        (
            "/predict",
            {},
            "Ask from what you send",
            "Nothing is stored. With own-edges the answer is computed from the people you name, with none from you alone.",
        ),
        (
            "/me",
            _REFUSED,
            "Ask as the owner of a node",
            "Answered from the edges of this node alone, for its owner alone: Authorization: Bearer TOKEN.",
        ),
    ):
        if path in answers:
            app.post(
                path,
                response_model=Answer,
                responses=_PROBLEMS | more,
                summary=summary,
                description=words,
                openapi_extra=_takes(_TAKEN[path], token=path == "/me"),
            )(handler(answers[path]))


def _takes(body: type[BaseModel], *, token: bool) -> dict[str, Any]:
    """How a handler that reads its body by itself is described."""
    content = {"application/json": {"schema": {"$ref": f"{_PARTS}{body.__name__}"}}}
    described: dict[str, Any] = {"requestBody": {"required": True, "content": content}}
    return described | ({"security": [{"token": []}]} if token else {})


def _bodies(answers: Iterable[str]) -> dict[str, Any]:
    """The schemas of the bodies, each by its name: programs that write clients need names."""
    found: dict[str, Any] = {}
    for path in answers:
        schema = _TAKEN[path].model_json_schema(ref_template=_PARTS + "{model}")
        found |= schema.pop("$defs", {}) | {_TAKEN[path].__name__: schema}
    return found


def _add_facts(app: FastAPI, service: Service) -> None:
    @app.get("/statement", summary="The promise, as data and in words", response_model=dict[str, Any])
    async def statement() -> Response:
        return Response(service.faces.statement, media_type="application/json")

    @app.get("/card", summary="The model card, as Markdown", response_class=_Markdown)
    async def card() -> Response:
        return _Markdown(service.faces.card)

    @app.get("/health", response_model=Health, summary="Whether the service is there")
    async def health() -> Health:
        held = service.faces.held
        return Health(
            status="ok",
            release=held.release,
            me=held.owners is not None,
            node_table=held.table is not None,
            access=["own-edges", "none"],
        )

    @app.get("/metrics", summary="Counts for Prometheus; nothing in them depends on edges", response_class=_Counts)
    async def metrics() -> Response:
        return _Counts(service.metrics.page())

    def page(name: str) -> Callable[[], Any]:
        async def show() -> HTMLResponse:
            return HTMLResponse(service.faces.pages[name])

        return show

    for path, name in [("/", "index.html"), *((f"/{name}", name) for name in service.faces.pages)]:
        app.get(path, include_in_schema=False, response_class=HTMLResponse)(page(name))


class _Markdown(Response):
    media_type = "text/markdown"


class _Counts(Response):
    media_type = CONTENT_TYPE


def _add_problems(app: FastAPI) -> None:
    @app.exception_handler(TooLargeError)
    async def too_large(_: Request, __: TooLargeError) -> Response:
        return Response(problem("too large", "body: is too large."), 413, media_type="application/json")

    @app.exception_handler(TooOftenError)
    async def too_often(_: Request, error: TooOftenError) -> Response:
        headers = {"retry-after": retry_after(error.seconds)}
        return Response(problem("too many requests", TOO_OFTEN), 429, headers, media_type="application/json")

    @app.exception_handler(Exception)
    async def unforeseen(_: Request, __: Exception) -> Response:
        return Response(
            problem("withheld", "Something failed; nothing was answered."), 500, media_type="application/json"
        )

    @app.exception_handler(HTTPException)
    async def known(_: Request, error: HTTPException) -> Response:
        names = {404: "not found", 405: "not allowed"}
        body = problem(names.get(error.status_code, "bad input"), f"{error.detail}.")
        return Response(body, error.status_code, dict(error.headers or {}), media_type="application/json")
