"""model.safetensors, with the size and checksum in release.json made right."""

from __future__ import annotations

import hashlib
import json
from random import Random

from fuzz import release_json
from fuzz.contract import check, check_folder
from fuzz.mutate import change_bytes, change_tree
from fuzz.release_json import METHODS, NAMES, SEEDS, home
from gcon.release.layout import canonical
from gcon.release.read import load_release

TENSORS = "model.safetensors"
CHECKSUM = b'  "checksum": "@checksum",\n'


def _forms() -> dict[str, bytes]:
    """Each release.json with gaps for what depends on the tensors: much faster than writing it anew for every input."""
    forms = {}
    for name, content in zip(METHODS, release_json.seeds(), strict=False):
        document = json.loads(content) | {"checksum": "@checksum"}
        document["files"][TENSORS] = {"sha256": "@sha256", "size": "@size"}
        forms[name] = canonical(document)
    return forms


FORMS = _forms()


def record_for(name: str, tensors: bytes) -> bytes:
    """The release.json that fits these tensors."""
    whole = (
        FORMS[name]
        .replace(b"@sha256", hashlib.sha256(tensors).hexdigest().encode())
        .replace(b'"@size"', str(len(tensors)).encode())
    )
    return whole.replace(b"@checksum", hashlib.sha256(whole.replace(CHECKSUM, b"")).hexdigest().encode())


def seeds() -> list[bytes]:
    """Valid files; the first byte says of which model."""
    return [bytes([place]) + (SEEDS / name / TENSORS).read_bytes() for place, name in enumerate(METHODS)]


def one(data: bytes) -> None:
    """Read the folder once."""
    name = METHODS[(data[0] if data else 0) % len(METHODS)]
    folder, content = home(name), data[1:]
    (folder / TENSORS).write_bytes(content)
    (folder / "release.json").write_bytes(record_for(name, content))
    check(lambda: load_release(folder))
    check_folder(folder, NAMES)


def change(data: bytes, random: Random) -> bytes:
    """Bytes, or the header as a tree with the length that it needs."""
    length = int.from_bytes(data[1:9], "little")
    if random.random() < 0.3 or length > len(data):
        return change_bytes(data, random)
    try:
        header = change_tree(json.loads(data[9 : 9 + length]), random)
        text = json.dumps(header).encode()
    except (ValueError, RecursionError, AttributeError, TypeError):
        return change_bytes(data, random)
    text = text.ljust(length) if random.random() < 0.5 else text
    return data[:1] + len(text).to_bytes(8, "little") + text + data[9 + length :]
