"""The release folder's format: which files there are, and a model as their bytes. The same model gives the same bytes."""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Mapping

import numpy as np
import torch
from safetensors.torch import save as bytes_from_tensors
from torch import Tensor

from gcon.errors import InputError
from gcon.methods.model import Model
from gcon.methods.record import RELEASE, TENSORS
from gcon.release.card import model_card, privacy_page
from gcon.release.encoder_record import encoder_record
from gcon.version import __version__

FORMAT, FORMAT_VERSION = "gcon-release", 2
TEXTS = ("README.md", "privacy.json", "privacy.md")
NAMES = (TENSORS, *TEXTS, RELEASE)


CLASS_KINDS = {"bool": bool, "float": float, "int": int, "str": str}
RECEIPT_WORDS = ("time", "data_set", "protected_change", "mechanism", "purpose", "randomness")


def release_files(model: Model) -> dict[str, bytes]:
    """All files of a release and their bytes; `release.json` comes last."""
    try:
        files = {TENSORS: bytes_from_tensors(named_tensors(model)), **texts(model)}
        document = _unsigned(model) | {"files": {name: file_record(content) for name, content in files.items()}}
        return files | {RELEASE: canonical(document | {"checksum": digest(canonical(document))})}
    except InputError:
        raise
    except (AttributeError, TypeError, ValueError) as error:
        raise unfit(f"something else: {error}") from error


def texts(model: Model) -> dict[str, bytes]:
    """The files for people, and the statement as data: all of it follows from the model."""
    statement = model.statement()
    return {
        "privacy.json": canonical({"sentences": list(statement.sentences), "fields": statement.fields}),
        "privacy.md": privacy_page(model).encode(),
        "README.md": model_card(model).encode(),
    }


def _unsigned(model: Model) -> dict[str, object]:
    """What release.json says about the model itself."""
    receipt = model.receipt
    words = {name: getattr(receipt, name) for name in RECEIPT_WORDS}
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "method": model.method,
        "libraries": {
            # Not `import gcon`: the package's front imports every stage, and this one may not depend on later ones.
            "gcon": __version__,
            "torch": str(torch.__version__),
            "python": platform.python_version(),
        },
        "class_names": [_class_record(name) for name in model.class_names],
        "settings": model.record(),
        "encoder": encoder_record(model.encoder),
        "receipt": words
        | {
            "budget": {"epsilon": receipt.budget.epsilon, "delta": receipt.budget.delta},
            "total": {"epsilon": receipt.total.epsilon, "delta": receipt.total.delta},
            "keeps_promise": receipt.keeps_promise,
            "plan": receipt.plan,
        },
    }


def named_tensors(model: Model) -> dict[str, Tensor]:
    """Copies, so that no file carries more of a tensor's storage than the tensor itself."""
    parts = ("hidden_weight", "hidden_bias", "head_weight", "head_bias", "centre")
    tensors = {**model.tensors(), **{f"encoder.{part}": getattr(model.encoder, part) for part in parts}}
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items() if tensor is not None}


def _class_record(name: object) -> dict[str, object]:
    value = name.item() if isinstance(name, np.generic) else name
    kind = type(value).__name__
    if CLASS_KINDS.get(kind) is not type(value):
        raise InputError(
            "class_names",
            rule="must be numbers, strings or truth values to be stored",
            got=f"a {kind}",
            fix="Replace the settings' class_names by such names, in the same order.",
        )
    return {"type": kind, "value": value}


def canonical(content: object) -> bytes:
    """Strict JSON in one form only: sorted keys, UTF-8, "inf" for infinity, a line feed at the end."""
    text = json.dumps(_strict(content), sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def _strict(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _strict(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(entry) for entry in value]
    plain: object = value.item() if isinstance(value, np.generic) else value
    return "inf" if plain == math.inf else plain


def digest(content: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def file_record(content: bytes) -> dict[str, object]:
    """What `release.json` says of another file."""
    return {"sha256": digest(content), "size": len(content)}


def unfit(got: str) -> InputError:
    """The refusal of a model that could not be read back."""
    fix = "Correct that part of the model (dataclasses.replace); nothing was written."
    return InputError("model", rule="must be one that load_release can read back", got=got, fix=fix)
