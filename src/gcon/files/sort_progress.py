"""Where a sort on disk works, and how far it has come: a hidden folder that outlives a kill, so that the next run goes on.

The folder is readable by its owner only. Nothing in it has the final name; it goes away when all is done, or when the input
turns out to be wrong.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from gcon.errors import InputError

try:
    import fcntl
except ImportError:  # not a Unix
    fcntl = None  # type: ignore[assignment]

PROGRESS = "progress.json"
Step = Callable[[str, float], None]  # what is being done, and the share of it that is


def no_step(stage: str, share: float) -> None:
    """Nobody wants to know."""


@dataclass(kw_only=True)
class SortProgress:
    """What is safely on disk.

    Attributes:
        identity: of the input and the settings; another one starts over.
        runs: the number of keys of every sorted run.
        given: edges of the input that the runs hold, self-loops included.
        self_loops: of these.
        merging: whether the runs are complete.
        taken: keys merged so far, for every run.
        entries: columns written so far.
        pointers: row pointers written so far.
        columns: checksums of the finished chunks of columns.

    Privacy:
        Counts of edges: as private as they are.
    """

    identity: Mapping[str, object]
    runs: list[int] = field(default_factory=list)
    given: int = 0
    self_loops: int = 0
    merging: bool = False
    taken: list[int] = field(default_factory=list)
    entries: int = 0
    pointers: int = 0
    columns: list[str] = field(default_factory=list)

    def save(self, folder: Path) -> None:
        """Replace what the folder says; whoever reads sees the old or the new."""
        fresh = folder / f"{PROGRESS}.new"
        with fresh.open("w", encoding="utf-8") as file:
            json.dump(asdict(self), file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(folder / PROGRESS)


def run_path(folder: Path, number: int) -> Path:
    """The file of a sorted run."""
    return folder / f"run-{number:06d}.bin"


@contextmanager
def workplace(folder: Path, identity: Mapping[str, object]) -> Iterator[tuple[SortProgress, str | None]]:
    """Hold the folder alone, new or with the progress of a run that died; the second value says if and why it starts over.

    Taken away at the end, and if the input is refused (`InputError`). Stays where anything else stops the work: a kill, the
    user, a full disk.
    """
    try:
        if folder.is_symlink():  # who put it there?
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        folder.mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise InputError(
            "out", rule="must be a folder to write to", got=error.strerror or "an error", fix="Check permissions."
        ) from None
    try:
        _lock(folder, handle)
        progress, words = _found(folder, identity)
        if progress is None:
            _empty(folder)
            progress = SortProgress(identity=identity)
            progress.save(folder)
        try:
            yield progress, words
        except InputError:
            shutil.rmtree(folder)
            raise
        shutil.rmtree(folder)
    finally:
        os.close(handle)  # and with it the lock


def _lock(folder: Path, handle: int) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InputError(
            "out", rule="one conversion at a time", got=f"another one at work in {folder.name}", fix="Wait for its end."
        ) from None


def _found(folder: Path, identity: Mapping[str, object]) -> tuple[SortProgress | None, str | None]:
    """Progress that can be gone on from, or None and why not."""
    if not (folder / PROGRESS).exists():
        return None, None
    try:
        progress = SortProgress(**json.loads((folder / PROGRESS).read_text(encoding="utf-8")))
        whole = all(run_path(folder, place).stat().st_size == 8 * keys for place, keys in enumerate(progress.runs))
    except (OSError, ValueError, TypeError):
        whole = False
    if not whole:
        return None, "An unfinished conversion was found, but it is damaged: starting over."
    if progress.identity != json.loads(json.dumps(identity)):
        return None, "An unfinished conversion of another input or with other settings was found: starting over."
    return progress, "An unfinished conversion was found: going on from there."


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
