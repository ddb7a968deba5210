"""The `gcon` command: one file per verb."""

import os
import signal
import sys
from typing import Any, NoReturn

from gcon.errors import MissingExtraError

handlers: dict[int, Any] = {}  # who takes a signal once a verb has begun, and itself says what was stopped


def main() -> None:
    """The entry point: names the extra to install where the command line's own dependencies are missing."""
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


def _stop_at_once(number: int, _: object) -> NoReturn:
    """No exception: some libraries catch them while they are loaded."""
    code, words = 128 + number, f"stopped by {signal.Signals(number).name}. Nothing was read or charged."
    if "--json" in sys.argv:
        os.write(1, f'{{"error": "StoppedError", "message": "{words}", "exit_code": {code}}}\n'.encode())
    else:
        os.write(2, f"error: {words}\n".encode())
    os._exit(code)
