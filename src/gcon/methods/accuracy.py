"""Micro-F1, which for single labels is the share of correct answers."""

from __future__ import annotations

from torch import Tensor

from gcon.errors import InputError


def micro_f1(predicted: Tensor, labels: Tensor, mask: Tensor) -> float:
    """Share of correct classes among the nodes of a mask.

    Privacy:
        As private as the predictions: measured with private edges it is a diagnostic, not for publication.
    """
    check_scored(mask)
    return float((predicted[mask] == labels[mask]).double().mean())


def beyond(share: float) -> str:
    """What to say of a noisy share that no count could give; nothing of any other. It is shown as it was released."""
    if 0 <= share <= 1:
        return ""
    return "more than all: noise" if share > 1 else "less than none: noise"


def check_scored(mask: Tensor) -> None:
    """Refuse an empty mask. It is public: where private edges are used, check it before a gate opens them."""
    if not bool(mask.any()):
        raise InputError("mask", rule="needs at least one node to score", got="an empty mask", fix="Mark test nodes.")
