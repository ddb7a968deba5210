"""The release folder's format: which files there are, and a model as their bytes. The same model gives the same bytes."""

from __future__ import annotations

import hashlib
import json
import math
import platform
import re
from collections.abc import Mapping
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
import numpy as np
import torch
from safetensors.torch import save as bytes_from_tensors

from gcon.errors import InputError
from gcon.methods.model import Model
from gcon.methods.record import RELEASE, TENSORS, Count, NotNegative, Record
from gcon.privacy.budget import protected_change
from gcon.release.card import ANY_TABLE, BEST, CARD, COLUMNS, NAMED_TABLE, NO_PROMISE, ONE_EDGE, PRIVACY, SEVERAL_EDGES
from gcon.version import __version__

FORMAT, FORMAT_VERSION = "gcon-release", 4
TEXTS = ("README.md", "privacy.json", "privacy.md")
NAMES = (TENSORS, *TEXTS, RELEASE)
_MARKUP, _ESCAPED = re.compile(r"([\\`*<>\[\]|])"), r"\\\1"
MOST_TOLD = 50  # columns in the card
ENCODER_PARTS = ("hidden_weight", "hidden_bias", "head_weight", "head_bias", "centre")
CLASS_KINDS = {"bool": bool, "float": float, "int": int, "str": str}

Settings = TypeVar("Settings", bound=Record)


class ClassRecord(Record, frozen=True, kw_only=True):
    """The name of a class. Infinity is a word here: only its type tells what it is."""

    type: Literal["bool", "float", "int", "str"]
    value: bool | int | float | str


class EncoderRecord(Record, frozen=True, kw_only=True):
    """An encoder's sizes and switches."""

    num_features: Count
    hidden: Count | None
    centre: bool
    unit_input: bool


class BudgetRecord(Record, frozen=True, kw_only=True):
    """A budget."""

    epsilon: NotNegative | Literal["inf"]
    delta: NotNegative


class ReceiptRecord(Record, frozen=True, kw_only=True):
    """A receipt; infinities in its plan are words."""

    time: str
    data_set: str
    protected_change: str
    mechanism: str
    purpose: str
    randomness: str
    budget: BudgetRecord
    total: BudgetRecord
    keeps_promise: bool
    plan: dict[str, Any]
    counted: bool = True


class ColumnsRecord(Record, frozen=True, kw_only=True):
    """What was done with the columns of the training table: the fields of `FeatureColumns`."""

    names: list[str]
    categories: dict[str, list[str]]
    fill: dict[str, float | int]
    drop: list[str]


class FileRecord(Record, frozen=True, kw_only=True):
    """What is said of another file: its SHA-256 in hexadecimal, and its bytes."""

    sha256: str
    size: int


class ReleaseRecord(Record, Generic[Settings], frozen=True, kw_only=True):
    """All of `release.json`. The checksum is that of the canonical form of all the rest."""

    format: str
    version: int
    method: str
    libraries: dict[str, str]
    class_names: Annotated[list[ClassRecord], msgspec.Meta(min_length=2)]
    settings: Settings
    encoder: EncoderRecord
    receipt: ReceiptRecord
    files: dict[str, FileRecord]
    checksum: str
    feature_columns: ColumnsRecord | None = None


def release_files(model: Model) -> dict[str, bytes]:
    """All files of a release and their bytes; `release.json` comes last."""
    names = [name.item() if isinstance(name, np.generic) else name for name in model.class_names]
    for name in names:
        if CLASS_KINDS.get(type(name).__name__) is not type(name):
            raise InputError(
                "class_names",
                rule="must be numbers, strings or truth values to be stored",
                got=f"a {type(name).__name__}",
                fix="Replace the model's class_names by such names, in the same order.",
            )
    try:
        encoder, receipt = model.encoder, model.receipt
        tensors = {**model.tensors(), **{f"encoder.{part}": getattr(encoder, part) for part in ENCODER_PARTS}}
        copies = {  # so that the file carries no more of a tensor's storage than the tensor itself
            name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items() if tensor is not None
        }
        files = {TENSORS: bytes_from_tensors(copies), **texts(model)}
        paid = vars(receipt) | {"budget": vars(receipt.budget), "total": vars(receipt.total)}
        if receipt.counted:  # the rule, which goes without saying
            del paid["counted"]
        unsigned = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "method": model.method,
            # Not `import gcon`: the package's front imports every stage, and this one may not depend on later ones.
            "libraries": {
                "gcon": __version__,
                "torch": str(torch.__version__),
                "python": platform.python_version(),
            },
            "class_names": [{"type": type(name).__name__, "value": name} for name in names],
            "settings": model.record(),
            "encoder": EncoderRecord(
                num_features=encoder.num_features,
                hidden=None if encoder.hidden_weight is None else int(encoder.hidden_weight.shape[-1]),
                centre=encoder.centre is not None,
                unit_input=encoder.unit_input,
            ),
            "receipt": paid,
            "files": {
                name: FileRecord(sha256=hashlib.sha256(content).hexdigest(), size=len(content))
                for name, content in files.items()
            },
        }
        if model.feature_columns is not None:
            columns = model.feature_columns
            unsigned["feature_columns"] = {part: getattr(columns, part) for part in ColumnsRecord.__struct_fields__}
        checksum = hashlib.sha256(canonical(unsigned)).hexdigest()
        return files | {RELEASE: canonical(unsigned | {"checksum": checksum})}
    except (AttributeError, TypeError, ValueError) as error:
        raise unfit(f"something else: {error}") from error


def texts(model: Model) -> dict[str, bytes]:
    """The files for people, and the statement as data: all of it follows from the model.

    Privacy:
        Reads the released model, which is public; measures nothing.
    """

    def plain(words: str) -> str:
        """On one line, and without markup: names were chosen by whoever ran the training."""
        return _MARKUP.sub(_ESCAPED, " ".join(words.split()))

    statement = model.statement()
    rows = [f"| `{access}` | {plain(words)} |" for access, words in model.access_words.items()]
    said = {
        "promise": "\n".join(f"- {plain(sentence)}" for sentence in statement.sentences),
        "accesses": "\n".join(["| access | what is promised |", "|---|---|", *rows]),
    }
    edges, columns, told = protected_change(record=model.receipt.plan).edges, model.feature_columns, ""
    if columns is not None:  # of very many, the first
        names = [plain(name) for name in columns.names[:MOST_TOLD]]
        names += [f"… and {len(columns.names) - MOST_TOLD} more"] if len(columns.names) > MOST_TOLD else []
        special = [name for name in columns.names if name in columns.categories or name in columns.fill][:MOST_TOLD]
        rows = [f"| {plain(name)} | {plain(columns.described(name))} |" for name in special]
        table = ["", "| column | what it holds |", "|---|---|", *rows] if rows else []
        told = COLUMNS.format(names=", ".join(names), table="\n".join(table))
    card = CARD.format(
        group=ONE_EDGE if edges == 1 else SEVERAL_EDGES.format(edges=edges),
        warning="" if model.receipt.keeps_promise else NO_PROMISE,
        num_classes=len(model.class_names),
        num_features=model.encoder.num_features,
        description=model.description(),
        table=ANY_TABLE.format(num_features=model.encoder.num_features) if columns is None else NAMED_TABLE,
        columns=told,
        best=BEST if model.best_public_access == "cached" else "",
        **said,
    )
    return {
        "privacy.json": canonical({"sentences": list(statement.sentences), "fields": statement.fields}),
        "privacy.md": PRIVACY.format(**said).encode(),
        "README.md": card.encode(),
    }


def canonical(content: object) -> bytes:
    """Strict JSON in one form only: sorted keys, UTF-8, "inf" for infinity, a line feed at the end."""

    def strict(value: object) -> object:
        if isinstance(value, Record):
            left_out = {
                each.name for each in msgspec.structs.fields(value) if each.default is None
            }  # where nothing was said
            found = msgspec.structs.asdict(value)
            value = {name: entry for name, entry in found.items() if entry is not None or name not in left_out}
        if isinstance(value, Mapping):
            return {key: strict(entry) for key, entry in value.items()}
        if isinstance(value, list | tuple):
            return [strict(entry) for entry in value]
        plain: object = value.item() if isinstance(value, np.generic) else value
        return "inf" if plain == math.inf else plain

    text = json.dumps(strict(content), sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def unfit(got: str) -> InputError:
    """The refusal of a model that could not be read back."""
    fix = "Correct that part of the model (dataclasses.replace); nothing was written."
    return InputError("model", rule="must be one that load_release can read back", got=got, fix=fix)
