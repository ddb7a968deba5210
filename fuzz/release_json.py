"""release.json: as it is, and once more with its checksum made right, so that what lies behind it is reached."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

from fuzz.contract import FOLDER, check, check_folder
from fuzz.mutate import change_json, mostly
from gcon.release.layout import canonical
from gcon.release.read import load_release
from gcon.version import __version__

SEEDS = Path(__file__).parent / "seeds"
NAMES = frozenset(("README.md", "model.safetensors", "privacy.json", "privacy.md", "release.json"))
METHODS = tuple(path.name for path in sorted(SEEDS.iterdir()))
change = mostly(change_json, share=0.9)


def seeds() -> list[bytes]:
    """Valid files."""
    return [
        sealed(document | {"libraries": {"gcon": version}}) for version in ("0", __version__) for document in _stored()
    ]


def _stored() -> list[dict[str, object]]:
    """Of another version there need be no pages that fit, so that a change of their words leaves these valid."""
    return [json.loads((SEEDS / name / "release.json").read_bytes()) for name in METHODS]


def home(name: str) -> Path:
    """A copy of a release that may be changed."""
    folder = FOLDER / name
    if not folder.is_dir():
        shutil.copytree(SEEDS / name, folder)
    return folder


def sealed(document: dict[str, object]) -> bytes:
    """The document with the checksum that it needs."""
    whole = canonical({**document, "checksum": "@checksum"})
    unsigned = whole.replace(b'  "checksum": "@checksum",\n', b"", 1)  # of the keys it is never the last
    return whole.replace(b"@checksum", hashlib.sha256(unsigned).hexdigest().encode(), 1)


def one(data: bytes) -> None:
    """Read the folder: with the right checksum where the input is an object, else as it is."""
    folder = home(METHODS[0 if b"moments" in data else -1])
    try:
        document = json.loads(data)
        content = sealed(document) if isinstance(document, dict) else data
    except (ValueError, RecursionError, TypeError):
        content = data
    (folder / "release.json").write_bytes(content)
    check(lambda: load_release(folder))
    check_folder(folder, NAMES)
