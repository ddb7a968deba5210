"""`gcon export`: a released model for programs without gcon, and for a model hub."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gcon.cli import options
from gcon.cli.checks import check_replaceable, check_writable
from gcon.cli.output import Output
from gcon.errors import InputError
from gcon.methods.features_only import onnx_bytes
from gcon.release.hub import save_for_hub
from gcon.release.read import load_release
from gcon.writing import write_whole


@options.verb
def export(
    output: Output,
    model: Annotated[Path, typer.Argument(help="A release folder.")],
    *,
    onnx: Annotated[
        Path | None, typer.Option(help="ONNX file to write: the part of the model that reads features only.")
    ] = None,
    hub: Annotated[
        Path | None, typer.Option(help="Folder to write that a model hub accepts as it is; it must not exist yet.")
    ] = None,
    licence: Annotated[
        str | None, typer.Option("--license", help="With --hub: the licence in the card's metadata, such as cc-by-4.0.")
    ] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Write a released model for other programs: ONNX, or a folder for a model hub.

    Reads public files only and costs nothing.
    Example: gcon export model --onnx model.onnx --hub for-the-hub
    """
    if onnx is None and hub is None:
        raise InputError("--onnx, --hub", rule="say what to write", got="neither", fix="Pass one or both.")
    if licence is not None and hub is None:
        raise InputError("--license", rule="goes with --hub", got="no --hub", fix="Leave it out.")
    if onnx is not None:
        check_replaceable(onnx, overwrite=overwrite)
    if hub is not None:
        check_writable(hub, new=True)
    released = load_release(model)
    written = []
    if onnx is not None:
        written.append(write_whole(onnx, onnx_bytes(released), mode=None))
    if hub is not None:
        save_for_hub(released, hub, licence=licence)
        written.append(hub)
    fields: dict[str, object] = {
        "onnx": None if onnx is None else str(onnx),
        "hub": None if hub is None else str(hub),
        "promise": released.receipt.keeps_promise,
    }
    output.result(fields, "\n".join(f"Written: {path}" for path in written))
