"""A release folder -> a released model, without running code: strict JSON, checked tensors, nothing else is opened."""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load as tensors_from_bytes

from gcon.columns import FeatureColumns
from gcon.errors import InputError, ReleaseFormatError
from gcon.learn.encoder import Encoder
from gcon.methods.model import Model
from gcon.methods.record import RELEASE, TENSORS, Common, Layout, refuse
from gcon.methods.registry import MODELS
from gcon.privacy.budget import NOTHING, Budget, protected_change
from gcon.privacy.randomness import SystemRandomness
from gcon.privacy.receipt import Receipt
from gcon.release.layout import (
    CLASS_KINDS,
    ENCODER_PARTS,
    FORMAT,
    FORMAT_VERSION,
    TEXTS,
    FileRecord,
    ReleaseRecord,
    canonical,
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
        rule = "it must be a release folder, as gcon train or save_release writes it"
        raise ReleaseFormatError(f"folder: '{folder}' is {found}; {rule}. Check the path.")
    home = folder.resolve()
    try:
        release, receipt = _document(_read(home, RELEASE, most=MOST_TEXT_BYTES))
        encoder, named, num_classes = release.encoder, release.feature_columns, len(release.class_names)
        width = encoder.num_features if encoder.hidden is None else encoder.hidden
        shapes = {"head_weight": (width, num_classes), "head_bias": (num_classes,)}
        if encoder.hidden is not None:
            shapes |= {"hidden_weight": (encoder.num_features, width), "hidden_bias": (width,)}
        layout: Layout = {f"encoder.{part}": ("F32", shape) for part, shape in shapes.items()}
        if encoder.centre:
            layout["encoder.centre"] = ("F64", (width,))
        layout |= MODELS[release.method].layout(release.settings, width=width, num_classes=num_classes)
        columns = None
        if named is not None:
            columns = FeatureColumns(
                names=tuple(named.names),
                categories={name: tuple(each) for name, each in named.categories.items()},
                fill={name: float(value) for name, value in named.fill.items()},
                drop=tuple(named.drop),
            )
            if columns.width != encoder.num_features:
                refuse(RELEASE, "'feature_columns' do not give the features of 'encoder'")
    except InputError as error:
        refuse(RELEASE, f"holds a setting out of range ({error})")
    for name in TEXTS:
        _read(home, name, most=MOST_TEXT_BYTES, record=release.files[name])
    content = _read(home, TENSORS, most=MOST_TENSOR_BYTES, record=release.files[TENSORS], layout=layout)
    try:
        tensors = {name: tensor.clone() for name, tensor in tensors_from_bytes(content).items()}
    except SafetensorError:
        refuse(TENSORS, "cannot be read: it was damaged or edited")
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            refuse(TENSORS, f"'{name}' holds values that are not finite")
    known = tensors["training_rows"]  # of every model
    if bool((known[2:] <= known[1:-1]).any()):
        refuse(TENSORS, "'training_rows' must hold rising digests after their sum")
    parts = {part: tensors.get(f"encoder.{part}") for part in ENCODER_PARTS}
    names = tuple(
        math.inf if (name.type, name.value) == ("float", "inf") else name.value for name in release.class_names
    )
    common = Common(
        encoder=Encoder(**parts, unit_input=encoder.unit_input),  # type: ignore[arg-type]
        class_names=names,
        receipt=receipt,
    )
    model = replace(MODELS[release.method].from_parts(release.settings, tensors, common), feature_columns=columns)
    if release.libraries.get("gcon") == __version__:  # another version may word its pages otherwise
        for name, text in texts(model).items():
            if hashlib.sha256(text).hexdigest() != release.files[name].sha256:
                refuse(name, "does not say what follows from the model")
    return model


def _read(home: Path, name: str, *, most: int, record: FileRecord | None = None, layout: Layout | None = None) -> bytes:
    """The bytes of a file of the folder; place, size, record and layout are checked before its content is read."""
    try:
        path = (home / name).resolve(strict=True)
    except (OSError, RuntimeError):
        refuse(name, "is missing")
    if not path.is_relative_to(home):
        refuse(name, "is a link that leads out of the folder")
    if not path.is_file():
        refuse(name, "is not a plain file")
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            refuse(name, f"has {size} bytes; at most {most} are read")
        if record is not None and size != record.size:
            refuse(name, f"has {size} bytes where {RELEASE} says {record.size}: it was cut or edited")
        if layout is not None:  # the header must announce its tensors, and the file have just the room for them
            length = int.from_bytes(file.read(8), "little")
            if length > MOST_HEADER_BYTES:
                refuse(name, "has a header that is too long")
            try:
                header = json.loads(file.read(length).decode())
                announced = {tensor: (entry["dtype"], tuple(entry["shape"])) for tensor, entry in header.items()}
            except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
                refuse(name, "has a header that cannot be read")
            if set(announced) != set(layout):
                refuse(name, f"must hold exactly the tensors {', '.join(sorted(layout))}")
            for tensor, (kind, shape) in layout.items():
                if announced[tensor] != (kind, shape):
                    told = f"must be of type {kind} and shape {shape}, as {RELEASE} and its settings say"
                    refuse(name, f"'{tensor}' {told}")
            needed = sum((4 if kind == "F32" else 8) * math.prod(shape) for kind, shape in layout.values())
            if size != 8 + length + needed:
                refuse(name, "is not as long as its header says")
            file.seek(0)
        content = file.read(size + 1)
    if record is not None and (len(content), hashlib.sha256(content).hexdigest()) != (record.size, record.sha256):
        refuse(name, f"does not have the checksum that {RELEASE} says: it was damaged or edited")
    return content


def _document(content: bytes) -> tuple[ReleaseRecord[Any], Receipt]:
    """The content of release.json, if it is exactly what `save_release` wrote, and the receipt in it."""
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
        checksum = hashlib.sha256(canonical(unsigned)).hexdigest()
        whole = document.get("checksum") == checksum and content == canonical(document)
    except ReleaseFormatError:
        raise
    except (ValueError, RecursionError):
        refuse(RELEASE, "is not the JSON of a release: it was damaged or edited")
    if not whole:
        refuse(RELEASE, "does not have the checksum that it says: it was damaged or edited")
    if type(version) is int and 0 < version < FORMAT_VERSION:
        problem = f"is of format version {version}, which only an earlier gcon reads"
        refuse(RELEASE, problem, "Read it there, or train again, which pays again.")
    if type(version) is not int or version != FORMAT_VERSION:
        refuse(RELEASE, f"has no format version that this gcon knows ({FORMAT_VERSION})")
    method = document.get("method")
    if not isinstance(method, str) or method not in MODELS:
        refuse(RELEASE, f"'method' is none of {', '.join(MODELS)}", "Install a newer gcon.")
    kind: Any = ReleaseRecord[MODELS[method].record_type]  # type: ignore[misc]
    try:
        release: ReleaseRecord[Any] = msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        refuse(RELEASE, f"breaks the rules of its fields ({str(error)[:300]})")
    for name in release.class_names:
        if type(name.value) is not CLASS_KINDS[name.type] and (name.type, name.value) != ("float", "inf"):
            refuse(RELEASE, "a name in 'class_names' is not of the type that it says")
    if set(release.files) != {TENSORS, *TEXTS}:
        refuse(RELEASE, f"'files' must hold exactly {', '.join(sorted((TENSORS, *TEXTS)))}")

    def with_infinity(value: Any) -> Any:
        """Strict JSON has no infinity: the word "inf" stands for it."""
        if isinstance(value, dict):
            return {key: with_infinity(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [with_infinity(entry) for entry in value]
        return math.inf if value == "inf" else value

    given = release.receipt
    budget, total = (
        Budget(math.inf if each.epsilon == "inf" else each.epsilon, each.delta) for each in (given.budget, given.total)
    )
    if given.protected_change != protected_change(record=given.plan).name:
        refuse(RELEASE, "'protected_change' in 'receipt' is one that this gcon does not know", "Install a newer gcon.")
    insecure = given.randomness != SystemRandomness.source and budget != NOTHING
    if given.keeps_promise and (insecure or math.isinf(budget.epsilon)):
        refuse(RELEASE, "'receipt' claims a promise where there is none (a seed, or infinite epsilon)")
    paid = msgspec.structs.asdict(given) | {"budget": budget, "total": total, "plan": with_infinity(given.plan)}
    return release, Receipt(**paid)
