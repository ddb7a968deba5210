"""Where the heavy sums run: the processor, or a GPU by name. The code is the same."""

from __future__ import annotations

import re

import torch

from gcon.errors import InputError

_CUDA = re.compile(r"cuda(?::(\d+))?")


def chosen_device(device: str) -> str:
    """`auto` as the device that it stands for: a GPU if there is one, else the processor; others are checked.

    Args:
        device: `auto`, `cpu`, `cuda`, or `cuda:NUMBER` where there are several.
    """
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    match = _CUDA.fullmatch(device) if isinstance(device, str) else None
    if device != "cpu" and match is None:
        rule = "must be 'auto', 'cpu', 'cuda' or 'cuda:NUMBER'"
        raise InputError("device", rule=rule, got=repr(device), fix="Use 'auto'.")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if match is not None and int(match[1] or 0) >= count:
        rule = "must be there, and torch must be able to use it"
        raise InputError("device", rule=rule, got=f"{device!r} with {count} usable GPUs", fix="Use 'auto' or 'cpu'.")
    return device
