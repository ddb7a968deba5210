"""Who owns a node: secret tokens, one or more a node, kept as hashes in one SQLite file that all workers read.

A token is 256 random bits, so one SHA-256 is enough to store it by: nobody can guess what it hashes. Which token and which node
somebody names is compared without looking at the graph, and in constant time: a refusal says nothing about either.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import os
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gcon.errors import InputError, check_number
from gcon.serve.access_log import check_for_owner_only

PREFIX = "gcon_"
_FORMAT = 1
_NOBODY = bytes(32)
_TABLES = """
CREATE TABLE tokens (
  digest BLOB PRIMARY KEY, node TEXT NOT NULL, issued INTEGER NOT NULL, expires INTEGER NOT NULL, revoked INTEGER
) WITHOUT ROWID;
CREATE INDEX by_node ON tokens (node);
"""


@dataclass(frozen=True, kw_only=True)
class TokenFacts:
    """What is known of a token that was issued; not the token.

    Attributes:
        name: the first 12 digits of its hash, for logs and for revoking it.
        node: whose it is.
        issued, expires: seconds since 1970.
        revoked: likewise, or None.
    """

    name: str
    node: str
    issued: int
    expires: int
    revoked: int | None

    def valid(self, now: float) -> bool:
        """Whether it opens anything at this time."""
        return self.revoked is None and now < self.expires


class TokenStore:
    """The file of tokens. Readable by its owner only; written whole or not at all (transactions).

    Args:
        path: the file.
        new: make it if it is not there.
        clock: seconds since 1970.
    """

    def __init__(self, path: Path, *, new: bool = False, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = path, clock
        self._seen: tuple[int, ...] = ()
        if new and not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        self._open()

    def _open(self) -> None:
        if not self._path.is_file():
            raise _unreadable(self._path, "missing")
        check_for_owner_only("tokens", self._path)
        try:
            # Autocommit: every read sees what was revoked a moment ago.
            self._file = sqlite3.connect(self._path, timeout=5.0, isolation_level=None, check_same_thread=False)
            self._file.execute("PRAGMA journal_mode=WAL")
            (version,) = self._file.execute("PRAGMA user_version").fetchone()
            if version == 0:
                self._file.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {_FORMAT}; COMMIT;")
                version = _FORMAT
        except sqlite3.OperationalError as error:  # the system: no room, no permission, somebody else at work for long
            raise OSError(errno.EIO, str(error), str(self._path)) from None
        except sqlite3.Error as error:
            raise _unreadable(self._path, type(error).__name__) from None
        if version != _FORMAT:
            raise _unreadable(self._path, f"format {version}")
        self._seen = _signature(self._path)

    def _is_there(self) -> bool:
        """Whether the file that is read is the one of that name: tokens of a file that was taken away open nothing."""
        try:
            if _signature(self._path) != self._seen:
                self.reopen()
        except (OSError, InputError):
            return False
        return True

    def reopen(self) -> None:
        """Read the file anew that has this name now. Raises if it cannot be: then nothing opens until it can."""
        self._seen = ()  # of no file: the next check tries again
        self.close()
        self._open()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def __del__(self) -> None:
        if hasattr(self, "_file"):  # it is not there where the file could not be opened
            self.close()

    def issue(self, nodes: Iterable[str], *, days: float) -> list[tuple[str, str]]:
        """New tokens, one per node; earlier ones stay valid. This is the only time that they can be seen.

        Args:
            nodes: public ids.
            days: until they expire.

        Returns:
            Node and token, in the order of the nodes.
        """
        check_number(
            "days", days, allowed=lambda number: 0 < number <= 36_500, rule="must lie in (0, 36500]", fix="Use 90."
        )
        now = int(self._clock())
        issued = [(node, PREFIX + secrets.token_urlsafe(32)) for node in nodes]
        rows = [(_digest(token), node, now, now + round(days * 86_400), None) for node, token in issued]
        try:
            with self._refusals(), self._file:
                self._file.execute("BEGIN IMMEDIATE")
                self._file.executemany("INSERT INTO tokens VALUES (?, ?, ?, ?, ?)", rows)
        except BaseException:  # they may stand in the file even so, if only the disk did not confirm it
            self.take_back(token for _, token in issued)
            raise
        return issued

    def take_back(self, tokens: Iterable[str]) -> None:
        """Forget tokens that could not be handed out."""
        with self._refusals(), self._file:
            self._file.execute("BEGIN IMMEDIATE")
            self._file.executemany("DELETE FROM tokens WHERE digest = ?", [(_digest(token),) for token in tokens])

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """What the system or another process refuses is an `OSError`: then nothing was written."""
        try:
            yield
        except sqlite3.Error as error:
            raise OSError(errno.EIO, str(error), str(self._path)) from error

    def check(self, token: str, node: str) -> str | None:
        """The token's name if it is valid now and belongs to the node; None for every other reason.

        The same work is done whatever is wrong: nothing here depends on whether such a node exists.
        """
        digest, there = _digest(token), self._is_there()
        known, owner, expires, revoked = (there and self._row(digest)) or (_NOBODY, "", 0, 0)
        same_token = hmac.compare_digest(known, digest)
        same_node = hmac.compare_digest(_digest(owner), _digest(node))
        in_time = (revoked is None) & (self._clock() < expires)
        return digest.hex()[:12] if same_token & same_node & in_time & there else None

    def _row(self, digest: bytes) -> tuple[bytes, str, int, int | None] | None:
        """What the file says of a token. A file that cannot be read opens nothing, and is opened anew the next time."""
        try:
            found = self._file.execute("SELECT digest, node, expires, revoked FROM tokens WHERE digest = ?", (digest,))
            row: tuple[bytes, str, int, int | None] | None = found.fetchone()
        except sqlite3.Error:
            self._seen = ()
            return None
        return row

    def revoke(self, *, node: str | None = None, name: str | None = None) -> int:
        """Make tokens worthless: all of a node, or the one of a name. Gives how many there were."""
        if (node is None) == (name is None):
            raise InputError("--node, --name", rule="say which", got="both or neither", fix="Pass one of them.")
        if name is not None and not re.fullmatch(r"[0-9a-f]{12}", name):
            rule, fix = "must be the 12 hexadecimal digits that the list shows", "See gcon serve tokens list."
            raise InputError("name", rule=rule, got=repr(name[:40]), fix=fix)
        where, value = ("node = ?", node) if name is None else ("substr(hex(digest), 1, 12) = upper(?)", name)
        with self._refusals(), self._file:
            self._file.execute("BEGIN IMMEDIATE")
            done = self._file.execute(
                f"UPDATE tokens SET revoked = ? WHERE revoked IS NULL AND {where}", (int(self._clock()), value)
            )
        return done.rowcount

    def facts(self) -> list[TokenFacts]:
        """All tokens that were ever issued, by node."""
        with self._refusals():
            rows = self._file.execute(
                "SELECT lower(substr(hex(digest), 1, 12)), node, issued, expires, revoked FROM tokens ORDER BY node, issued"
            )
            return [TokenFacts(name=a, node=b, issued=c, expires=d, revoked=e) for a, b, c, d, e in rows]


def _signature(path: Path) -> tuple[int, ...]:
    """Tells a file from another of the same name, and from itself with other content or other permissions."""
    facts = os.stat(path)
    return facts.st_ino, facts.st_mode, facts.st_size, facts.st_mtime_ns


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _unreadable(path: Path, problem: str) -> InputError:
    return InputError(
        "tokens",
        rule=f"must be a file of tokens of format {_FORMAT}",
        got=f"{path.name} ({problem})",
        fix="gcon serve tokens issue makes one.",
    )
