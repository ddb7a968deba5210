"""`gcon version`: what runs here."""

from __future__ import annotations

import platform
from importlib import metadata

import gcon
from gcon.cli import options
from gcon.cli.output import Output


@options.verb
def version(output: Output) -> None:
    """Versions of gcon, torch and Python."""
    fields: dict[str, object] = {
        "gcon": gcon.__version__,
        "torch": metadata.version("torch"),
        "python": platform.python_version(),
    }
    text = ", ".join(f"{name} {number}" for name, number in fields.items())
    output.result(fields, text)
