"""A release folder -> a released model, without running code: strict JSON, checked tensors, nothing else is opened."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import torch
from safetensors import SafetensorError
from safetensors.torch import load as tensors_from_bytes
from torch import Tensor

from gcon.encode.encoder import Encoder
from gcon.errors import InputError, ReleaseFormatError, check_number
from gcon.losses.convex import loss_by_name
from gcon.privacy.budget import Budget
from gcon.privacy.protected_change import ONE_UNDIRECTED_EDGE
from gcon.privacy.receipt import Receipt
from gcon.propagate.schemes import Schemes
from gcon.release.layout import (
    CLASS_KINDS,
    FORMAT,
    FORMAT_VERSION,
    RECEIPT_WORDS,
    RELEASE,
    TENSORS,
    TEXTS,
    canonical,
    digest,
    file_record,
    with_infinity,
)
from gcon.release.model import ModelSettings, ReleasedModel

MOST_TEXT_BYTES = 16 * 2**20
MOST_TENSOR_BYTES = 4 * 2**30
MOST_HEADER_BYTES = 2**20
_NUMBER, _WORDS = (int, float), (str,)
GET_IT_AGAIN = "Get the folder again from where it was published."

Layout = dict[str, tuple[str, tuple[int, ...]]]


def load_release(folder: str | os.PathLike[str]) -> ReleasedModel:
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
    try:
        settings, receipt = _settings(document), _receipt(document["receipt"])
    except (InputError, OverflowError) as error:
        _refuse(RELEASE, f"holds a setting out of range ({error})")
    facts = _encoder_facts(document["encoder"])
    layout = _layout(facts, num_blocks=settings.schemes.num_blocks, num_classes=len(settings.class_names))
    records = _fields(document["files"], "files", dict.fromkeys((TENSORS, *TEXTS), (dict,)))
    for name in TEXTS:
        _read(home, name, most=MOST_TEXT_BYTES, record=records[name])
    tensors = _tensors(_read(home, TENSORS, most=MOST_TENSOR_BYTES, record=records[TENSORS], layout=layout))
    parts = {name.removeprefix("encoder."): tensor for name, tensor in tensors.items() if name != "weights"}
    absent = dict.fromkeys(("hidden_weight", "hidden_bias", "centre"))
    encoder = Encoder(**{**absent, **parts}, unit_input=facts["unit_input"])  # type: ignore[arg-type]
    return ReleasedModel(weights=tensors["weights"], encoder=encoder, settings=settings, receipt=receipt)


def _refuse(name: str, problem: str, fix: str = GET_IT_AGAIN) -> NoReturn:
    raise ReleaseFormatError(f"{name}: {problem}. {fix}")


@contextmanager
def _opened(home: Path, name: str) -> Iterator[tuple[BinaryIO, int]]:
    """A file of the folder and its size."""
    try:
        path = (home / name).resolve(strict=True)
    except (OSError, RuntimeError):
        _refuse(name, "is missing")
    if not path.is_relative_to(home):
        _refuse(name, "is a link that leads out of the folder")
    if not path.is_file():
        _refuse(name, "is not a plain file")
    with path.open("rb") as file:
        yield file, os.fstat(file.fileno()).st_size


def _read(
    home: Path, name: str, *, most: int, record: dict[str, Any] | None = None, layout: Layout | None = None
) -> bytes:
    """The bytes of a file; size, record and layout are checked before its content is read."""
    with _opened(home, name) as (file, size):
        if size > most:
            _refuse(name, f"has {size} bytes; at most {most} are read")
        if record is not None:
            _fields(record, f"files: {name}", {"sha256": _WORDS, "size": (int,)})
            if size != record["size"]:
                _refuse(name, f"has {size} bytes where {RELEASE} says {record['size']}: it was cut or edited")
        if layout is not None:
            _check_header(file, size, layout)
        file.seek(0)
        content = file.read(size + 1)
    if record is not None and file_record(content) != record:
        _refuse(name, f"does not have the checksum that {RELEASE} says: it was damaged or edited")
    return content


def _document(content: bytes) -> dict[str, Any]:
    """The content of release.json, if it is exactly what `save_release` wrote."""
    try:
        document = json.loads(content.decode())
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            _refuse(RELEASE, "does not describe a release of gcon")
        version = document.get("version")
        if type(version) is int and version > FORMAT_VERSION:
            problem = f"is of format version {version}; this gcon reads versions up to {FORMAT_VERSION}"
            _refuse(RELEASE, problem, "Install a newer gcon.")
        unsigned = {key: value for key, value in document.items() if key != "checksum"}
        whole = document.get("checksum") == digest(canonical(unsigned)) and content == canonical(document)
    except ReleaseFormatError:
        raise
    except (ValueError, RecursionError):
        _refuse(RELEASE, "is not the JSON of a release: it was damaged or edited")
    if not whole:
        _refuse(RELEASE, "does not have the checksum that it says: it was damaged or edited")
    if type(version) is not int or version < 1:
        _refuse(RELEASE, f"has no format version from 1 to {FORMAT_VERSION}")
    parts = dict.fromkeys(("encoder", "files", "libraries", "receipt", "settings"), (dict,))
    words = dict.fromkeys(("checksum", "format"), _WORDS)
    return _fields(document, "the whole", {**parts, **words, "class_names": (list,), "version": (int,)})


def _fields(record: object, where: str, kinds: Mapping[str, tuple[type, ...]]) -> dict[str, Any]:
    """A record with exactly these keys and types (a truth value is not a number)."""
    if not isinstance(record, dict) or set(record) != set(kinds):
        _refuse(RELEASE, f"'{where}' must hold exactly {', '.join(sorted(kinds))}")
    for key, kind in kinds.items():
        if type(record[key]) not in kind:
            _refuse(RELEASE, f"'{key}' in '{where}' is of the wrong type")
    return record


def _settings(document: dict[str, Any]) -> ModelSettings:
    kinds = dict.fromkeys(("restart", "clip", "inference_restart"), _NUMBER)
    words = dict.fromkeys(("loss", "training_nodes"), _WORDS)
    given = _fields(document["settings"], "settings", {**kinds, **words, "steps": (list,)})
    names = tuple(_class_name(record) for record in document["class_names"])
    if len(names) < 2:
        _refuse(RELEASE, "names fewer than two classes")
    loss_by_name(given["loss"], len(names))
    check_number(
        "inference_restart",
        given["inference_restart"],
        allowed=lambda number: 0 <= number <= 1,
        rule="must lie in [0, 1]",
        fix="The paper uses 0.1 to 0.9.",
    )
    if not re.fullmatch("[0-9a-f]{64}", given["training_nodes"]):
        _refuse(RELEASE, "'training_nodes' in 'settings' is not a checksum")
    return ModelSettings(
        schemes=Schemes(given["restart"], tuple(with_infinity(given["steps"])), given["clip"]),
        inference_restart=given["inference_restart"],
        loss=given["loss"],
        class_names=names,
        training_nodes=given["training_nodes"],
    )


def _class_name(record: object) -> object:
    kinds = tuple(CLASS_KINDS.values())
    given = _fields(record, "class_names", {"type": _WORDS, "value": kinds})
    value = with_infinity(given["value"]) if given["type"] == "float" else given["value"]
    if type(value) is not CLASS_KINDS.get(given["type"]):
        _refuse(RELEASE, "a name in 'class_names' is not of the type that it says")
    return value


def _receipt(record: dict[str, Any]) -> Receipt:
    words = dict.fromkeys(RECEIPT_WORDS, _WORDS)
    others = {"budget": (dict,), "total": (dict,), "plan": (dict,), "keeps_promise": (bool,)}
    given = _fields(record, "receipt", {**words, **others})
    budget, total = (
        Budget(**_fields(with_infinity(given[key]), key, {"epsilon": _NUMBER, "delta": _NUMBER}))
        for key in ("budget", "total")
    )
    if given["protected_change"] != ONE_UNDIRECTED_EDGE.name:
        _refuse(RELEASE, "'protected_change' in 'receipt' is one that this gcon does not know", "Install a newer gcon.")
    seeded = given["randomness"].startswith("seeded") and budget.epsilon > 0
    no_limit, _ = math.isinf(budget.epsilon), math.isinf(total.epsilon)  # whole numbers beyond all floats end here
    if given["keeps_promise"] and (seeded or no_limit):
        _refuse(RELEASE, "'receipt' claims a promise where there is none (a seed, or infinite epsilon)")
    return Receipt(**{**given, "budget": budget, "total": total, "plan": with_infinity(given["plan"])})


def _encoder_facts(record: dict[str, Any]) -> dict[str, Any]:
    flags = dict.fromkeys(("centre", "unit_input"), (bool,))
    facts = _fields(record, "encoder", {**flags, "num_features": (int,), "hidden": (int, type(None))})
    if facts["num_features"] < 1 or (facts["hidden"] is not None and facts["hidden"] < 1):
        _refuse(RELEASE, "the sizes in 'encoder' must be at least 1")
    return facts


def _layout(facts: dict[str, Any], *, num_blocks: int, num_classes: int) -> Layout:
    """Type and shape of every tensor, from release.json alone."""
    features, hidden = facts["num_features"], facts["hidden"]
    width = features if hidden is None else hidden
    layout: Layout = {
        "weights": ("F64", (num_blocks * width, num_classes)),
        "encoder.head_weight": ("F32", (width, num_classes)),
        "encoder.head_bias": ("F32", (num_classes,)),
    }
    if hidden is not None:
        layout |= {"encoder.hidden_weight": ("F32", (features, hidden)), "encoder.hidden_bias": ("F32", (hidden,))}
    return layout | ({"encoder.centre": ("F64", (width,))} if facts["centre"] else {})


def _check_header(file: BinaryIO, size: int, layout: Layout) -> None:
    """Whether the header announces the tensors of the layout, and the file has just the room for them."""
    length = int.from_bytes(file.read(8), "little")
    if length > MOST_HEADER_BYTES:
        _refuse(TENSORS, "has a header that is too long")
    try:
        header = json.loads(file.read(length).decode())
        announced = {name: (entry["dtype"], tuple(entry["shape"])) for name, entry in header.items()}
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        _refuse(TENSORS, "has a header that cannot be read")
    if set(announced) != set(layout):
        _refuse(TENSORS, f"must hold exactly the tensors {', '.join(sorted(layout))}")
    for name, (kind, shape) in layout.items():
        if announced[name] != (kind, shape):
            _refuse(TENSORS, f"'{name}' must be of type {kind} and shape {shape}, as {RELEASE} and its settings say")
    needed = sum((8 if kind == "F64" else 4) * math.prod(shape) for kind, shape in layout.values())
    if size != 8 + length + needed:
        _refuse(TENSORS, "is not as long as its header says")


def _tensors(content: bytes) -> dict[str, Tensor]:
    try:
        tensors = {name: tensor.clone() for name, tensor in tensors_from_bytes(content).items()}
    except SafetensorError:
        _refuse(TENSORS, "cannot be read: it was damaged or edited")
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            _refuse(TENSORS, f"'{name}' holds values that are not finite")
    return tensors
