"""What every input must come to: a value, or one of our errors with a message. In bounded time and memory, with no file left."""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from gcon.errors import GconError

MOST_SECONDS = 2.0
MOST_MESSAGE = 20_000
SPARE_MEMORY = 2 * 2**30  # above what the interpreter holds when the first input comes
_FOLDER = tempfile.TemporaryDirectory(prefix="gcon-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
FOLDER = Path(_FOLDER.name)


class BreachError(AssertionError):
    """The contract is broken."""


def limit_memory(spare: int = SPARE_MEMORY) -> None:
    """Let this process have so much more address space than it has now, and nothing beyond."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + spare
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def check(read: Callable[[], object], *, secret: str | None = None) -> str | None:
    """Read once; the message of our error, or None. Anything else is a `BreachError`."""
    message = None
    start = time.process_time()
    try:
        read()
    except GconError as error:
        message = str(error)
    except typer.TyperException as error:
        message = error.format_message()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise BreachError(f"{type(error).__name__}: {str(error)[:200]}") from error
    spent = time.process_time() - start
    if spent > MOST_SECONDS:
        raise BreachError(f"took {spent:.1f} s")
    if message is not None and not 10 <= len(message) <= MOST_MESSAGE:
        raise BreachError(f"a message of {len(message)} characters")
    if secret is not None and message is not None and secret in message:
        raise BreachError("a message that holds an id of the edges file")
    return message


@contextmanager
def written(name: str, data: bytes) -> Iterator[Path]:
    """A file in the targets' folder (in memory where the system has that); nothing else may lie there afterwards."""
    folder = FOLDER / "files"
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(data)
    try:
        yield path
    finally:
        path.unlink()
    check_folder(folder)


def check_folder(folder: Path, names: Collection[str] = ()) -> None:
    """Nothing but these files may lie in a folder."""
    extra = set(os.listdir(folder)) - set(names)
    if extra:
        raise BreachError(f"left behind: {sorted(extra)}")
