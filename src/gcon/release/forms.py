"""What each kind of model keeps in a release folder beside what all keep: its settings and its tensors.

A form turns a model into a record of plain numbers and words, says from the record alone which tensors there must be, and
builds the model again.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from torch import Tensor

from gcon.edges.schemes import Schemes
from gcon.errors import check_number
from gcon.learn.encoder import Encoder
from gcon.mechanisms.gaussian_curve import gaussian_delta
from gcon.mechanisms.gaussian_release import NoisyStatistic
from gcon.mechanisms.losses import loss_by_name
from gcon.methods.moments_model import MomentsModel, MomentsSettings
from gcon.methods.objective_model import ModelSettings, ReleasedModel
from gcon.methods.published import PublishedModel
from gcon.privacy.receipt import Receipt
from gcon.release.strict import NUMBER, RELEASE, TENSORS, WORDS, exactly, refuse, with_infinity

Layout = dict[str, tuple[str, tuple[int, ...]]]
_ROW_SLACK = 1e-3  # probabilities are kept in single precision
ModelT = TypeVar("ModelT", bound=PublishedModel)
_SLACK = 1e-9  # shares may add to this much more than 1, by rounding


@dataclass(frozen=True, eq=False, kw_only=True)
class Common:
    """What all models have, read already."""

    encoder: Encoder
    class_names: tuple[object, ...]
    receipt: Receipt


class Form(ABC, Generic[ModelT]):
    """The form of one kind of model."""

    @abstractmethod
    def record(self, model: ModelT) -> dict[str, object]:
        """The model's settings as plain numbers and words."""

    @abstractmethod
    def check(self, record: object, *, num_classes: int) -> dict[str, Any]:
        """The record, if everything in it may be there."""

    @abstractmethod
    def layout(self, record: Mapping[str, Any], *, width: int, num_classes: int) -> Layout:
        """Type and shape of its tensors but the encoder's, from a checked record and the encoder's width."""

    @abstractmethod
    def build(self, record: Mapping[str, Any], tensors: Mapping[str, Tensor], common: Common) -> ModelT:
        """The model again."""


class _PaperForm(Form[ReleasedModel]):
    def record(self, model: ReleasedModel) -> dict[str, object]:
        settings = model.settings
        return {
            "restart": settings.schemes.restart,
            "steps": settings.schemes.steps,
            "clip": settings.schemes.clip,
            "inference_restart": settings.inference_restart,
            "loss": settings.loss,
            "training_nodes": settings.training_nodes,
        }

    def check(self, record: object, *, num_classes: int) -> dict[str, Any]:
        kinds = dict.fromkeys(("restart", "clip", "inference_restart"), NUMBER)
        words = dict.fromkeys(("loss", "training_nodes"), WORDS)
        given = exactly(record, "settings", {**kinds, **words, "steps": (list,)})
        loss_by_name(given["loss"], num_classes)
        check_number(
            "inference_restart",
            given["inference_restart"],
            allowed=lambda number: 0 <= number <= 1,
            rule="must lie in [0, 1]",
            fix="The paper uses 0.1 to 0.9.",
        )
        _check_training_nodes(given["training_nodes"])
        self._schemes(given)
        return given

    def layout(self, record: Mapping[str, Any], *, width: int, num_classes: int) -> Layout:
        return {"weights": ("F64", (self._schemes(record).num_blocks * width, num_classes))}

    def build(self, record: Mapping[str, Any], tensors: Mapping[str, Tensor], common: Common) -> ReleasedModel:
        settings = ModelSettings(
            schemes=self._schemes(record),
            inference_restart=record["inference_restart"],
            loss=record["loss"],
            class_names=common.class_names,
            training_nodes=record["training_nodes"],
        )
        return ReleasedModel(
            weights=tensors["weights"], encoder=common.encoder, settings=settings, receipt=common.receipt
        )

    def _schemes(self, record: Mapping[str, Any]) -> Schemes:
        return Schemes(record["restart"], tuple(with_infinity(record["steps"])), record["clip"])


class _MomentsForm(Form[MomentsModel]):
    def record(self, model: MomentsModel) -> dict[str, object]:
        return {
            "homophily": model.settings.homophily,
            "nodes": len(model.answers),
            "cached": model.cached is not None,
            "training_nodes": model.settings.training_nodes,
            "statistics": [
                {
                    "name": each.name,
                    "shape": list(each.value.shape),
                    "standard_deviation": each.standard_deviation,
                    "symmetric": each.symmetric,
                    "sensitivity": each.sensitivity,
                    "share": each.share,
                }
                for each in model.statistics
            ],
        }

    def check(self, record: object, *, num_classes: int) -> dict[str, Any]:
        kinds = {
            "homophily": NUMBER,
            "nodes": (int,),
            "cached": (bool,),
            "training_nodes": WORDS,
            "statistics": (list,),
        }
        given = exactly(record, "settings", kinds)
        if not 0 <= given["homophily"] <= 1 or given["nodes"] < 1:
            refuse(RELEASE, "'settings' must hold a homophily in [0, 1] and at least one node")
        _check_training_nodes(given["training_nodes"])
        for entry in given["statistics"]:
            self._check_statistic(entry)
        if math.fsum(entry["share"] for entry in given["statistics"]) > 1 + _SLACK:
            refuse(RELEASE, "the shares in 'statistics' must add to at most 1")
        return given

    def _check_statistic(self, entry: object) -> None:
        numbers = dict.fromkeys(("standard_deviation", "sensitivity", "share"), NUMBER)
        found = exactly(entry, "statistics", {**numbers, "name": WORDS, "symmetric": (bool,), "shape": (list,)})
        sizes = found["shape"]
        if len(sizes) != 2 or any(type(size) is not int or size < 1 for size in sizes):
            refuse(RELEASE, "'shape' in 'statistics' must be two whole numbers from 1")
        if found["symmetric"] and sizes[0] != sizes[1]:
            refuse(RELEASE, "a symmetric table in 'statistics' must be square")
        if any(not 0 <= float(found[name]) < math.inf for name in numbers):  # whole numbers beyond all floats end here
            refuse(RELEASE, "the numbers in 'statistics' must be finite and at least 0")

    def layout(self, record: Mapping[str, Any], *, width: int, num_classes: int) -> Layout:
        table = ("F32", (record["nodes"], num_classes))
        statistics = {
            f"statistic.{place}": ("F64", tuple(entry["shape"])) for place, entry in enumerate(record["statistics"])
        }
        return {"answers": table, **statistics} | ({"cached": table} if record["cached"] else {})

    def build(self, record: Mapping[str, Any], tensors: Mapping[str, Tensor], common: Common) -> MomentsModel:
        names = ("name", "standard_deviation", "symmetric", "sensitivity", "share")
        if common.receipt.keeps_promise:
            self._check_promise(record, common.receipt)
        for name in ("answers", "cached"):
            _check_answers(tensors.get(name), name)
        return MomentsModel(
            answers=tensors["answers"],
            cached=tensors.get("cached"),
            encoder=common.encoder,
            settings=MomentsSettings(
                homophily=record["homophily"],
                class_names=common.class_names,
                training_nodes=record["training_nodes"],
            ),
            statistics=tuple(
                NoisyStatistic(value=tensors[f"statistic.{place}"], **{name: entry[name] for name in names})
                for place, entry in enumerate(record["statistics"])
            ),
            receipt=common.receipt,
        )

    def _check_promise(self, record: Mapping[str, Any], receipt: Receipt) -> None:
        """The noise of the statistics is what the promise needs. `gcon statement --verify` checks more, by other code."""
        distance, budget = receipt.plan.get("distance"), receipt.budget
        if type(distance) not in NUMBER or not 0 < float(distance) < math.inf:  # type: ignore[arg-type]
            refuse(RELEASE, "'receipt' claims a promise without a Gaussian distance in its plan")
        if gaussian_delta(budget.epsilon, float(distance)) > budget.delta:  # type: ignore[arg-type]
            refuse(RELEASE, "'receipt' claims a smaller budget than the distance in its plan costs")
        for entry in record["statistics"]:
            needed = entry["sensitivity"] / (float(distance) * math.sqrt(max(entry["share"], 1e-300)))  # type: ignore[arg-type]
            if entry["sensitivity"] > 0 and not entry["standard_deviation"] >= needed:
                refuse(RELEASE, "'receipt' claims a promise that the noise in 'statistics' is too small for")


_FORMS: dict[str, Form[Any]] = {ReleasedModel.method: _PaperForm(), MomentsModel.method: _MomentsForm()}


def form_of(method: str) -> Form[Any]:
    """The form of a method's models."""
    if method not in _FORMS:
        refuse(RELEASE, f"'method' is none of {', '.join(_FORMS)}", "Install a newer gcon.")
    return _FORMS[method]


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


def _check_answers(table: Tensor | None, name: str) -> None:
    """Rows are probabilities."""
    if table is None:
        return
    if bool((table < 0).any()) or not bool(((table.double().sum(dim=1) - 1).abs() <= _ROW_SLACK).all()):
        refuse(TENSORS, f"'{name}' must hold class probabilities, row by row")


def _check_training_nodes(checksum: str) -> None:
    if not re.fullmatch("[0-9a-f]{64}", checksum):
        refuse(RELEASE, "'training_nodes' in 'settings' is not a checksum")
