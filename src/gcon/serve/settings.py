"""The limits of a service: public numbers, with defaults that suit one small machine; and why it has no access `cached`."""

from __future__ import annotations

from dataclasses import dataclass

from gcon.errors import check_number

NOT_CACHED = (
    "Cached answers need no service: they are public, and gcon predict --access cached writes them once for all nodes of the "
    "training."
)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one request, one address and one token may ask for.

    Attributes:
        most_bytes: of a request's body.
        most_neighbours: in one question.
        seconds: for one request, from its first byte to its answer.
        per_address: requests per minute from one address; every 16 KiB of a body count as one more.
        per_token: requests per minute with one token.
        burst: so many may come at once after a pause.
        idle_seconds: how long a connection may say nothing whole.
        concurrent: requests at the same time in one worker; the rest is told to come back.
        stop_seconds: how long a stop waits for requests that are being answered.
    """

    most_bytes: int = 2**22
    most_neighbours: int = 10_000
    seconds: float = 10.0
    per_address: float = 600.0
    per_token: float = 60.0
    burst: int = 30
    idle_seconds: int = 15
    concurrent: int = 256
    stop_seconds: int = 10

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            check_number(
                name,
                value,
                allowed=lambda number: number > 0,
                rule="must be a positive number",
                fix="Leave it out for the default.",
                whole=name not in ("seconds", "per_address", "per_token"),
            )
