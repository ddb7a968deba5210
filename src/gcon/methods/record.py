"""What a model keeps in a release folder, and how it is read back: strict records of plain numbers and words.

A record refuses unknown, missing and wrongly typed fields by itself (msgspec); a truth value is not a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NoReturn

from msgspec import Meta, Struct

from gcon.errors import ReleaseFormatError
from gcon.learn.encoder import Encoder
from gcon.privacy.receipt import Receipt

RELEASE, TENSORS = "release.json", "model.safetensors"
GET_IT_AGAIN = "Get the folder again from where it was published."

_LARGEST = 2**62  # whole numbers beyond are none that any setting has, and floats could not hold the largest ones
Count = Annotated[int, Meta(ge=1, le=_LARGEST)]
NotNegative = Annotated[int, Meta(ge=0, le=_LARGEST)] | Annotated[float, Meta(ge=0)]
UpToOne = Annotated[int, Meta(ge=0, le=1)] | Annotated[float, Meta(ge=0, le=1)]
Checksum = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]

Layout = dict[str, tuple[str, tuple[int, ...]]]  # type and shape of every tensor


class Record(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of `release.json`: exactly these fields, exactly these types."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Common:
    """What all models have, read already."""

    encoder: Encoder
    class_names: tuple[object, ...]
    receipt: Receipt


def refuse(name: str, problem: str, fix: str = GET_IT_AGAIN) -> NoReturn:
    """Say what is wrong with a file of the folder."""
    raise ReleaseFormatError(f"{name}: {problem}. {fix}")
