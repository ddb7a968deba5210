"""One kept connection to one service: requests out, bounded bytes back."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from gcon.errors import InputError
from gcon.serve.client.problems import ServiceError

MOST_BYTES = 2**24
# What a kept connection says when the other side has closed it in the meantime; a request on it was not answered.
_CLOSED = (
    http.client.RemoteDisconnected,
    ConnectionResetError,
    ConnectionAbortedError,
    BrokenPipeError,
    ssl.SSLEOFError,
    ssl.SSLZeroReturnError,
)


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a service is: parts of an address that was checked."""

    secure: bool
    host: str
    port: int | None
    path: str

    @property
    def on_this_machine(self) -> bool:
        """Whether what is sent there stays here."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def place_of(address: str) -> Place:
    """The parts of an address such as `https://answers.example.org` or `http://127.0.0.1:8000`."""
    try:
        parts = urlsplit(address if isinstance(address, str) else "")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    plain = f"{parts.path}{host}".isascii() and f"{parts.path}{host}".isprintable() and " " not in parts.path
    if (
        parts.scheme not in ("http", "https")
        or not host
        or "@" in parts.netloc
        or parts.query
        or parts.fragment
        or not plain
    ):
        raise InputError(
            "address",
            rule="must be http:// or https://, a host, and maybe a port and a path",
            got="something else",  # it may hold a password
            fix="For example https://answers.example.org.",
        )
    return Place(secure=parts.scheme == "https", host=host, port=port, path=parts.path.rstrip("/"))


@dataclass(frozen=True, eq=False)
class Reply:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Connection:
    """Requests to one place, one after the other, on a connection that is kept.

    Args:
        place: where to.
        timeout: seconds to wait for the next bytes.
    """

    def __init__(self, place: Place, timeout: float) -> None:
        self._place = place
        self._kept = (
            http.client.HTTPSConnection(place.host, place.port, timeout=timeout, context=ssl.create_default_context())
            if place.secure
            else http.client.HTTPConnection(place.host, place.port, timeout=timeout)
        )

    def close(self) -> None:
        """Let go of the connection; the next request opens a new one."""
        self._kept.close()

    def ask(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Reply:
        """Send a request and read the whole reply; once more if a kept connection turns out to be closed."""
        was_open = self._kept.sock is not None
        try:
            try:
                return self._once(method, path, body, headers)
            except _CLOSED:
                self.close()
                if not was_open:
                    raise
                return self._once(method, path, body, headers)
        except ServiceError:
            self.close()
            raise
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise ServiceError(_in_words(error)) from None
        except BaseException:  # half a reply on a kept connection would be the next one's beginning
            self.close()
            raise

    def _once(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Reply:
        self._kept.request(method, self._place.path + path, body, dict(headers))
        response = self._kept.getresponse()
        content = response.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise ServiceError(f"The service answers with more than {MOST_BYTES} bytes; they were not read.")
        if response.length:  # it promised more, and closed
            raise http.client.IncompleteRead(b"")
        return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, content)


def _in_words(error: Exception) -> str:
    """The kind of the error alone: its own words may hold what was sent."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "The service's certificate cannot be checked, so nothing was sent to it."
    if isinstance(error, TimeoutError):
        return "The service did not answer in time."
    if isinstance(error, OSError):
        return f"The service cannot be reached ({type(error).__name__})."
    return f"What answers is not a service, or broke off ({type(error).__name__})."
