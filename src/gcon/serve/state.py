"""What all handlers of a worker share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from gcon.pages.build import site_pages
from gcon.release.layout import canonical, texts
from gcon.serve.access_log import AccessLog
from gcon.serve.limits import RateLimit
from gcon.serve.logs import Log
from gcon.serve.metrics import Metrics
from gcon.serve.replies import AnswerWords
from gcon.serve.served_release import ServedRelease, Signature
from gcon.serve.settings import Limits
from gcon.serve.tokens import TokenStore

ROUTES = ("/", "/predict", "/me", "/statement", "/card", "/health", "/metrics", "/openapi.json")


@dataclass(eq=False, kw_only=True)
class Service:
    """A service. A new release is exchanged by one assignment, of `faces`: whoever took it has a release and the words for it.

    Attributes:
        held: the release that answers now.
        folder: where the next one will be put.
        seen: tells whether it is there.
        limits: public numbers.
        tokens: where the tokens of owners are kept; opened by every worker for itself.
        access_log: of answers from private edges.
        origin: another site whose pages may ask this service.
        log: lines about the service.
        parent: the process that started the workers; they end when it is gone. None where there are no workers.
    """

    held: ServedRelease
    folder: Path
    seen: Signature
    limits: Limits = field(default_factory=Limits)
    tokens: Path | None = None
    access_log: AccessLog | None = None
    origin: str | None = None
    log: Log = field(default_factory=Log)
    parent: int | None = None

    def __post_init__(self) -> None:
        burst = self.limits.burst
        self.by_address = RateLimit(per_minute=self.limits.per_address, burst=burst)
        self.by_token = RateLimit(per_minute=self.limits.per_token, burst=burst)
        self.token_store: TokenStore | None = None  # of this worker
        self.faces = Faces(self.held)
        self.metrics = Metrics({*ROUTES, *(f"/{name}" for name in self.faces.pages)})

    def take(self, held: ServedRelease, seen: Signature) -> None:
        """Put a new release in the place of the old one."""
        self.faces = Faces(held)
        self.held, self.seen = held, seen


class Faces:
    """Everything that a release says without being asked a question: made once."""

    def __init__(self, held: ServedRelease) -> None:
        self.held, model, table = held, held.model, held.table
        statement = model.statement()
        self.words = AnswerWords(model, held.release)
        self.statement = canonical({**statement.fields, "sentences": list(statement.sentences)})
        self.card = texts(model)["README.md"]
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
