"""The pages into a folder: each file whole or not at all, and nothing of somebody else's is overwritten."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gcon.errors import InputError
from gcon.pages.frame import PAGES
from gcon.writing import write_whole

_MARK = "content=\"default-src 'none'"


def write_site(pages: Mapping[str, str], folder: Path) -> tuple[Path, ...]:
    """Write the pages; returns their paths.

    A folder that holds other things, or files of the same names that are not such pages, is refused before anything is
    written.
    """
    _check(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Public pages: a web server of another user reads them.
        return tuple(write_whole(folder / name, text.encode("ascii"), mode=0o644) for name, text in pages.items())
    except OSError as error:
        raise InputError(
            "out",
            rule="must be a folder that can be written to",
            got=f"{folder} ({type(error).__name__})",
            fix=_ELSEWHERE,
        ) from None


_ELSEWHERE = "Choose another folder."


def _check(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise InputError("out", rule="must be a folder", got=f"{folder}, which is none", fix=_ELSEWHERE)
    if not folder.exists():
        return
    try:
        others = sorted(entry.name for entry in folder.iterdir() if entry.name not in PAGES or not is_page(entry))
    except OSError as error:
        raise InputError(
            "out", rule="must be a readable folder", got=f"{folder} ({type(error).__name__})", fix=_ELSEWHERE
        ) from None
    if others:
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        raise InputError(
            "out",
            rule="must be empty or hold nothing but pages of gcon site",
            got=f"{folder} with {', '.join(others[:3])}{more}",
            fix="Choose another folder: nothing was written.",
        )


def is_page(path: Path) -> bool:
    """Whether a file was written here before: it carries our policy near its start."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return _MARK.encode() in file.read(2000)
