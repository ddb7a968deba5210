"""What can go wrong between a client and a service.

    GconError
    └── ServiceError                 not reached, not HTTP, not what was agreed, or a problem of the service itself
        ├── RefusedError             no such node with such a token
        └── TooManyRequestsError     asked too often; `wait` says for how long not to

A question that breaks a rule is an `InputError`, with the words of the service. No message holds a token.
"""

from __future__ import annotations

from gcon.errors import GconError


class ServiceError(GconError):
    """The service gave no answer.

    Attributes:
        status: of the HTTP response, or None if there was none that could be read.
    """

    status: int | None

    def __init__(self, message: str, status: int | None = None) -> None:
        self.status = status
        super().__init__(message, status)

    def __str__(self) -> str:
        return str(self.args[0])


class RefusedError(ServiceError):
    """No such node with such a token: wrong, expired, revoked, or of another node. The service does not say which."""


class TooManyRequestsError(ServiceError):
    """This address or this token asks too often.

    Attributes:
        wait: seconds until the service will answer again.
    """

    wait: float

    def __init__(self, message: str, status: int | None, wait: float) -> None:
        super().__init__(message, status)
        self.wait = wait
        self.args = (message, status, wait)  # so that it travels between processes
