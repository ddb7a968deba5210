"""What the commands of the experiments share: options that mean the same everywhere, and how their pages are written."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gcon.writing import write_whole

_OPTIONS: dict[str, dict[str, Any]] = {
    "out": {"type": Path, "required": True, "help": "the folder of results; finished work there is not done again"},
    "graphs": {"help": "names, separated by commas"},
    "epsilons": {"default": "1", "help": "budgets, separated by commas"},
    "first-run": {"type": int, "default": 0, "help": "runs before it are left out"},
    "runs": {"type": int, "default": 10, "help": "so many per graph"},
    "workers": {"type": int, "default": 2, "help": "processes, one core each"},
    "minutes": {"type": float, "default": 90.0, "help": "stop after so long; the same command goes on from there"},
}


def command(about: str | None, *options: str, **defaults: object) -> argparse.ArgumentParser:
    """A parser that says what the module says, with some of the shared options; the defaults are the experiment's own."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("out", *options):
        parser.add_argument(f"--{name}", **_OPTIONS[name])
    parser.set_defaults(**defaults)
    return parser


def write_all(out: Path, texts: Mapping[str, str]) -> list[Path]:
    """Every text into its file, whole or not at all."""
    return [write_whole(out / name, text) for name, text in texts.items()]
