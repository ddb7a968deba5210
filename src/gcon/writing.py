"""The one way to write: files and folders appear whole or not at all.

What is being written is a hidden neighbour of its target, `.NAME.RANDOM.new`, and gets the name when it is complete and on the
disk. Any exception removes it; a killed process leaves it behind, and nobody takes it for the target.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import signal
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from gcon.errors import InputError

try:
    import fcntl
except ImportError:  # not a Unix
    fcntl = None  # type: ignore[assignment]

UNFINISHED = ".*.new"  # matches what killed writers leave
OWNER_ONLY = 0o600
STOPS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_NO_ROOM = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
_MARK = ".gcon"  # in a work folder: it is ours to remove


def write_whole(path: Path, content: bytes | str, *, mode: int | None = OWNER_ONLY) -> Path:
    """Write a file, and the folders above it if need be; returns the path. Text becomes UTF-8.

    Args:
        path: where to; an existing file is replaced.
        content: all of it.
        mode: the file's permissions; None for the system's usual ones.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path, mode=mode) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return path


@contextmanager
def whole_file(path: Path, *, mode: int | None = OWNER_ONLY) -> Iterator[BinaryIO]:
    """The same for content that comes in pieces: a file to write to, which takes its place when the block ends well."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    try:
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else OWNER_ONLY)
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            new.chmod(mode)
        os.replace(new, path)
    except BaseException as error:
        if isinstance(error, OSError) and error.errno in _NO_ROOM and error.filename is None:
            error.filename = str(path)  # a write knows its file by number alone
        with suppress(OSError):  # why it failed is worth more than that something is left
            new.unlink(missing_ok=True)
        raise


@contextmanager
def whole_folder(
    target: Path, *, mode: int = 0o777, replaces: Collection[str] | None = None, keep_existing: bool = False
) -> Iterator[Path]:
    """A folder to write into, which takes its place when the block ends well. The caller has checked the target.

    All that was written into it is seen to the disk first. If it has its place then, and the system cannot confirm the name
    itself, that is an `OSError`, and the folder stays: what is complete is never removed for that.

    Args:
        target: where to.
        mode: the folder's permissions, less what the system's usual ones forbid.
        replaces: the names of all files of an older folder in this place, which is moved aside to `.NAME.RANDOM.old` first
            and removed last. By default an older one stays, and that is an `OSError`.
        keep_existing: an older one stays, and that is fine: whoever ends first has written it.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    new, old = (target.with_name(f".{target.name}.{secrets.token_hex(8)}.{kind}") for kind in ("new", "old"))
    try:
        os.mkdir(new, mode)
        yield new
        for path in (*new.rglob("*"), new):  # every file, and the names in every folder
            if path.is_symlink():
                continue
            if path.is_dir():
                sync_folder(path)
            else:
                with path.open("rb") as file:
                    os.fsync(file.fileno())
        try:
            if replaces is not None and os.path.lexists(target):
                os.rename(target, old)
            os.rename(new, target)
            sync_folder(target.parent)
        except BaseException as error:
            if os.path.lexists(new) and os.path.lexists(old):  # then all is as before
                os.rename(old, target)
            if not (isinstance(error, OSError) and keep_existing and target.is_dir()):
                raise
    finally:
        with uninterrupted():
            if new.is_dir():
                shutil.rmtree(new, ignore_errors=True)  # removes links, not what they point to
    if old.is_dir():  # file by file: what somebody else put there in the meantime is not ours to remove
        for name in replaces or ():
            (old / name).unlink(missing_ok=True)
        old.rmdir()


def sync_folder(folder: Path) -> None:
    """See the names in a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def work_folder(target: Path) -> Iterator[Path]:
    """A folder `.NAME.unfinished` for large work on private values, of one process at a time, readable by its owner only.

    Removed at the end, well or not. What killed processes left, in it or in others of this kind beside it, is removed before the
    work begins.

    Raises:
        InputError: another process works there, or it cannot be made.
    """
    folder, handle = target.with_name(f".{target.name}.unfinished"), None
    try:
        if folder.is_symlink():  # who put it there?
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        while handle is None:
            folder.mkdir(mode=0o700, exist_ok=True)
            with suppress(FileNotFoundError):  # somebody took it for left behind: make it again
                folder.chmod(0o700)
                handle = _locked(folder)
    except BlockingIOError:
        rule, fix = "one command at a time writes there", "Wait for its end, or choose another name."
        raise InputError("out", rule=rule, got=f"another one at work in {folder.name}", fix=fix) from None
    except KeyboardInterrupt:  # after it was made
        with suppress(OSError):
            folder.rmdir()
        raise
    except FileNotFoundError:
        rule, fix = "must lie in an existing folder", "Make the parent folder first."
        raise InputError("out", rule=rule, got=str(target), fix=fix) from None
    except OSError as error:
        raise unwritable(target, error) from None
    try:
        for other in folder.parent.glob(".*.unfinished"):  # of killed processes: nobody holds their locks
            if other != folder and not other.is_symlink() and (other / _MARK).is_file():
                with suppress(OSError):  # of somebody else, or one that works there
                    left = _locked(other)
                    shutil.rmtree(other, ignore_errors=True)
                    os.close(left)
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        (folder / _MARK).touch()
        yield folder
    finally:
        with uninterrupted():
            shutil.rmtree(folder, ignore_errors=True)  # what the work itself says is worth more than this
            os.close(handle)  # and with it the lock


def _locked(folder: Path) -> int:
    """Take the lock of a folder.

    Raises:
        BlockingIOError: somebody else has it.
        FileNotFoundError: it is gone by now.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(handle), os.stat(folder)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    except BaseException:
        os.close(handle)
        raise
    return handle


def unwritable(out: Path, error: OSError, parameter: str = "out") -> InputError:
    """Everybody's words for a target that the system does not let us write."""
    rule, fix = (
        "must lie in a folder that can be written to",
        "Choose another one, or check permissions and free space.",
    )
    return InputError(parameter, rule=rule, got=f"{out} ({error.strerror or type(error).__name__})", fix=fix)


def move_together(moves: Iterable[tuple[Path, Path]]) -> None:
    """Rename all of them, or none: if one fails, those before it go back."""
    done: list[tuple[Path, Path]] = []
    with uninterrupted():
        try:
            for source, target in moves:
                source.rename(target)
                done.append((source, target))
        except BaseException:
            for source, target in reversed(done):
                target.rename(source)
            raise


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Signals that ask to end are heard after the block: for a few steps of which all or none must be done."""
    before, heard = {}, []
    if threading.current_thread() is threading.main_thread():
        for number in STOPS:
            if callable(signal.getsignal(number)):  # a mask would not do: another thread may get it
                before[number] = signal.signal(number, lambda number, _: heard.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if heard:
            signal.raise_signal(heard[0])
