"""Options that several verbs share."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated

import typer

MOST_BYTES = 2**14  # tomllib needs memory with the square of the length


def _read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take defaults from a TOML file: its keys are the verb's long options."""
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise typer.BadParameter(f"has more than {MOST_BYTES} bytes. Keep the defaults of one verb in it.")
        content = tomllib.loads(text.decode())
    except (OSError, ValueError, RecursionError) as error:  # what tomllib says of damage and of numbers is a ValueError
        raise typer.BadParameter(
            f"cannot be read as TOML ({type(error).__name__}). Write lines like, for example, epsilon = 1.0"
        ) from None
    known = {parameter.name for parameter in context.command.params}
    values = {key.replace("-", "_"): value for key, value in content.items()}
    unknown = sorted(set(values) - {name for name in known if name})
    if unknown:
        shown = ", ".join(key[:80] for key in unknown[:8])
        raise typer.BadParameter(f"has keys that this verb does not know: {shown}. Keys are the verb's long options.")
    context.default_map = {**(context.default_map or {}), **values}
    return path


Json = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="TOML file with defaults; keys are the long option names.",
        is_eager=True,
        callback=_read_config,
        exists=True,
        dir_okay=False,
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace a file that is there; never an input or a ledger.")
]
Epsilon = Annotated[float, typer.Option(help="Privacy budget; smaller is more private. 'inf' promises nothing.")]
ProtectEdges = Annotated[
    int, typer.Option(help="How many edges, 1 to 10, may change together within epsilon and delta.")
]
