"""A release folder -> a released model, without running code: strict JSON, checked tensors, nothing else is opened."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors import SafetensorError
from safetensors.torch import load as tensors_from_bytes
from torch import Tensor

from gcon.errors import InputError, ReleaseFormatError
from gcon.methods.model import Model
from gcon.methods.record import NUMBER, RELEASE, TENSORS, WORDS, Common, Layout, exactly, refuse, with_infinity
from gcon.methods.registry import MODELS
from gcon.privacy.budget import NOTHING, Budget
from gcon.privacy.protected_change import ONE_UNDIRECTED_EDGE
from gcon.privacy.randomness import SystemRandomness
from gcon.privacy.receipt import Receipt
from gcon.release.encoder_record import built_encoder, checked_encoder_record, encoder_layout, encoder_width
from gcon.release.layout import (
    CLASS_KINDS,
    FORMAT,
    FORMAT_VERSION,
    RECEIPT_WORDS,
    TEXTS,
    canonical,
    digest,
    file_record,
    texts,
)
from gcon.version import __version__

MOST_TEXT_BYTES = 16 * 2**20
MOST_VALUES = 250_000  # in release.json: each takes far more memory than its two or three bytes in the file
MOST_TENSOR_BYTES = 4 * 2**30
MOST_HEADER_BYTES = 2**20


def load_release(folder: str | os.PathLike[str]) -> Model:
    """Read a released model, or raise `ReleaseFormatError` that names the file and what is wrong with it.

    Refused are: missing, truncated, edited or oversized files, links that lead out of the folder, a newer format, an
    unknown loss, settings out of range, and tensors of another shape or type or with values that are not finite.

    Args:
        folder: what `save_release` wrote.

    Privacy:
        Reads public files. Nothing in them is run.
    """
    folder = Path(folder)
    if not folder.is_dir():
        found = "a file" if folder.exists() else "missing"
        raise ReleaseFormatError(f"folder: '{folder}' is {found}; it must be a folder of save_release. Check the path.")
    home = folder.resolve()
    document = _document(_read(home, RELEASE, most=MOST_TEXT_BYTES))
    kind, names = _model_kind(document["method"]), tuple(_class_name(record) for record in document["class_names"])
    if len(names) < 2:
        refuse(RELEASE, "names fewer than two classes")
    try:
        settings, receipt = (
            kind.check_record(document["settings"], num_classes=len(names)),
            _receipt(document["receipt"]),
        )
    except (InputError, OverflowError) as error:
        refuse(RELEASE, f"holds a setting out of range ({error})")
    facts = checked_encoder_record(document["encoder"])
    layout = encoder_layout(facts, num_classes=len(names))
    layout |= kind.layout(settings, width=encoder_width(facts), num_classes=len(names))
    records = exactly(document["files"], "files", dict.fromkeys((TENSORS, *TEXTS), (dict,)))
    for name in TEXTS:
        _read(home, name, most=MOST_TEXT_BYTES, record=records[name])
    tensors = _tensors(_read(home, TENSORS, most=MOST_TENSOR_BYTES, record=records[TENSORS], layout=layout))
    common = Common(encoder=built_encoder(facts, tensors), class_names=names, receipt=receipt)
    model: Model = kind.from_parts(settings, tensors, common)
    if document["libraries"].get("gcon") == __version__:  # another version may word its pages otherwise
        for name, text in texts(model).items():
            if file_record(text) != records[name]:
                refuse(name, "does not say what follows from the model")
    return model


@contextmanager
def _opened(home: Path, name: str) -> Iterator[tuple[BinaryIO, int]]:
    """A file of the folder and its size."""
    try:
        path = (home / name).resolve(strict=True)
    except (OSError, RuntimeError):
        refuse(name, "is missing")
    if not path.is_relative_to(home):
        refuse(name, "is a link that leads out of the folder")
    if not path.is_file():
        refuse(name, "is not a plain file")
    with path.open("rb") as file:
        yield file, os.fstat(file.fileno()).st_size


def _read(
    home: Path, name: str, *, most: int, record: dict[str, Any] | None = None, layout: Layout | None = None
) -> bytes:
    """The bytes of a file; size, record and layout are checked before its content is read."""
    with _opened(home, name) as (file, size):
        if size > most:
            refuse(name, f"has {size} bytes; at most {most} are read")
        if record is not None:
            exactly(record, f"files: {name}", {"sha256": WORDS, "size": (int,)})
            if size != record["size"]:
                refuse(name, f"has {size} bytes where {RELEASE} says {record['size']}: it was cut or edited")
        if layout is not None:
            _check_header(file, size, layout)
        file.seek(0)
        content = file.read(size + 1)
    if record is not None and file_record(content) != record:
        refuse(name, f"does not have the checksum that {RELEASE} says: it was damaged or edited")
    return content


def _document(content: bytes) -> dict[str, Any]:
    """The content of release.json, if it is exactly what `save_release` wrote."""
    if sum(content.count(mark) for mark in (b",", b"[", b"{")) > MOST_VALUES:
        refuse(RELEASE, f"holds more than {MOST_VALUES} values, as no release does")
    try:
        document = json.loads(content.decode())
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            refuse(RELEASE, "does not describe a release of gcon")
        version = document.get("version")
        if type(version) is int and version > FORMAT_VERSION:
            problem = f"is of format version {version}; this gcon reads versions up to {FORMAT_VERSION}"
            refuse(RELEASE, problem, "Install a newer gcon.")
        unsigned = {key: value for key, value in document.items() if key != "checksum"}
        whole = document.get("checksum") == digest(canonical(unsigned)) and content == canonical(document)
    except ReleaseFormatError:
        raise
    except (ValueError, RecursionError):
        refuse(RELEASE, "is not the JSON of a release: it was damaged or edited")
    if not whole:
        refuse(RELEASE, "does not have the checksum that it says: it was damaged or edited")
    if version == 1 and type(version) is int:
        refuse(RELEASE, "is of format version 1, which only gcon before 0.2 reads", "Read it there, or train again.")
    if type(version) is not int or version != FORMAT_VERSION:
        refuse(RELEASE, f"has no format version that this gcon knows ({FORMAT_VERSION})")
    parts = dict.fromkeys(("encoder", "files", "libraries", "receipt", "settings"), (dict,))
    words = dict.fromkeys(("checksum", "format", "method"), WORDS)
    return exactly(document, "the whole", {**parts, **words, "class_names": (list,), "version": (int,)})


def _model_kind(method: str) -> type[Model]:
    if method not in MODELS:
        refuse(RELEASE, f"'method' is none of {', '.join(MODELS)}", "Install a newer gcon.")
    return MODELS[method]


def _class_name(record: object) -> object:
    kinds = tuple(CLASS_KINDS.values())
    given = exactly(record, "class_names", {"type": WORDS, "value": kinds})
    value = with_infinity(given["value"]) if given["type"] == "float" else given["value"]
    if type(value) is not CLASS_KINDS.get(given["type"]):
        refuse(RELEASE, "a name in 'class_names' is not of the type that it says")
    return value


def _receipt(record: dict[str, Any]) -> Receipt:
    words = dict.fromkeys(RECEIPT_WORDS, WORDS)
    others = {"budget": (dict,), "total": (dict,), "plan": (dict,), "keeps_promise": (bool,)}
    given = exactly(record, "receipt", {**words, **others})
    budget, total = (
        Budget(**exactly(with_infinity(given[key]), key, {"epsilon": NUMBER, "delta": NUMBER}))
        for key in ("budget", "total")
    )
    if given["protected_change"] != ONE_UNDIRECTED_EDGE.name:
        refuse(RELEASE, "'protected_change' in 'receipt' is one that this gcon does not know", "Install a newer gcon.")
    insecure = given["randomness"] != SystemRandomness.source and budget != NOTHING
    no_limit, _ = math.isinf(budget.epsilon), math.isinf(total.epsilon)  # whole numbers beyond all floats end here
    if given["keeps_promise"] and (insecure or no_limit):
        refuse(RELEASE, "'receipt' claims a promise where there is none (a seed, or infinite epsilon)")
    return Receipt(**{**given, "budget": budget, "total": total, "plan": with_infinity(given["plan"])})


def _check_header(file: BinaryIO, size: int, layout: Layout) -> None:
    """Whether the header announces the tensors of the layout, and the file has just the room for them."""
    length = int.from_bytes(file.read(8), "little")
    if length > MOST_HEADER_BYTES:
        refuse(TENSORS, "has a header that is too long")
    try:
        header = json.loads(file.read(length).decode())
        announced = {name: (entry["dtype"], tuple(entry["shape"])) for name, entry in header.items()}
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        refuse(TENSORS, "has a header that cannot be read")
    if set(announced) != set(layout):
        refuse(TENSORS, f"must hold exactly the tensors {', '.join(sorted(layout))}")
    for name, (kind, shape) in layout.items():
        if announced[name] != (kind, shape):
            refuse(TENSORS, f"'{name}' must be of type {kind} and shape {shape}, as {RELEASE} and its settings say")
    needed = sum((8 if kind == "F64" else 4) * math.prod(shape) for kind, shape in layout.values())
    if size != 8 + length + needed:
        refuse(TENSORS, "is not as long as its header says")


def _tensors(content: bytes) -> dict[str, Tensor]:
    try:
        tensors = {name: tensor.clone() for name, tensor in tensors_from_bytes(content).items()}
    except SafetensorError:
        refuse(TENSORS, "cannot be read: it was damaged or edited")
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            refuse(TENSORS, f"'{name}' holds values that are not finite")
    return tensors
