"""The `gcon` command: one file per verb."""

import os
import signal
import sys
from typing import Any, NoReturn

from gcon.errors import MissingExtraError

handlers: dict[int, Any] = {}  # who takes a signal once a verb has begun, and itself says what was stopped


def main() -> None:
    """The entry point: names the extra to install where the command line's own dependencies are missing."""
    _open_standard_files()
    for number in (signal.SIGINT, signal.SIGTERM):  # loading takes seconds, in which people change their minds
        if signal.getsignal(number) is not signal.SIG_IGN:
            handlers[number] = signal.signal(number, _stop_at_once)
    try:
        from gcon.cli.app import main as run
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] in ("typer", "rich"):
            raise SystemExit(str(MissingExtraError(error.name, extra="cli"))) from None
        raise
    run()


def _open_standard_files() -> None:
    """No ledger may get the number of a standard file that the caller has closed: libraries write to these numbers."""
    for number, flags in enumerate(
        (os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)
    ):  # what is written to output is refused, not lost
        try:
            os.fstat(number)
        except OSError:
            if os.open(os.devnull, flags) == number and number:
                setattr(sys, "stdout" if number == 1 else "stderr", open(number, "w", closefd=False))  # noqa: SIM115


def _stop_at_once(number: int, _: object) -> NoReturn:
    """No exception: some libraries catch them while they are loaded."""
    code, words = 128 + number, f"stopped by {signal.Signals(number).name}. Nothing was read or charged."
    try:
        if "--json" in sys.argv:
            os.write(1, f'{{"error": "StoppedError", "message": "{words}", "exit_code": {code}}}\n'.encode())
        else:
            os.write(2, f"error: {words}\n".encode())
    finally:  # also if nobody reads that any more
        os._exit(code)
