"""The encoder in a release folder: its sizes, its tensors, and the way back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from gcon.learn.encoder import Encoder
from gcon.methods.record import RELEASE, Layout, exactly, refuse


def encoder_record(encoder: Encoder) -> dict[str, object]:
    """An encoder's sizes and switches."""
    return {
        "num_features": encoder.num_features,
        "hidden": None if encoder.hidden_weight is None else int(encoder.hidden_weight.shape[-1]),
        "centre": encoder.centre is not None,
        "unit_input": encoder.unit_input,
    }


def checked_encoder_record(record: object) -> dict[str, Any]:
    """The record, if it can be an encoder's."""
    flags = dict.fromkeys(("centre", "unit_input"), (bool,))
    facts = exactly(record, "encoder", {**flags, "num_features": (int,), "hidden": (int, type(None))})
    if facts["num_features"] < 1 or (facts["hidden"] is not None and facts["hidden"] < 1):
        refuse(RELEASE, "the sizes in 'encoder' must be at least 1")
    return facts


def encoder_layout(facts: Mapping[str, Any], *, num_classes: int) -> Layout:
    """Type and shape of an encoder's tensors."""
    features, hidden = facts["num_features"], facts["hidden"]
    width = encoder_width(facts)
    layout: Layout = {
        "encoder.head_weight": ("F32", (width, num_classes)),
        "encoder.head_bias": ("F32", (num_classes,)),
    }
    if hidden is not None:
        layout |= {"encoder.hidden_weight": ("F32", (features, hidden)), "encoder.hidden_bias": ("F32", (hidden,))}
    return layout | ({"encoder.centre": ("F64", (width,))} if facts["centre"] else {})


def encoder_width(facts: Mapping[str, Any]) -> int:
    """How wide encoded rows are."""
    width: int = facts["num_features"] if facts["hidden"] is None else facts["hidden"]
    return width


def built_encoder(facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Encoder:
    """The encoder again."""
    parts = {name.removeprefix("encoder."): each for name, each in tensors.items() if name.startswith("encoder.")}
    absent = dict.fromkeys(("hidden_weight", "hidden_bias", "centre"))
    return Encoder(**{**absent, **parts}, unit_input=facts["unit_input"])  # type: ignore[arg-type]
