"""Waits until the suite that started it ends, however it ends, and kills every process that the suite left behind.

Each process that a suite starts, and each that those start, has the suite's mark in its environment. Standard input is a
pipe that only the suite holds open: a killed one closes it too.
"""

import os
import signal
import sys
import time
from pathlib import Path

SECONDS = 60


def marked(mark: bytes) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:  # it has just ended, or is another user's
            continue
    return found


def main(mark: str) -> None:
    sys.stdin.buffer.read()
    end = time.monotonic() + SECONDS
    while (left := marked(mark.encode())) and time.monotonic() < end:
        for number in left:
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.02)


if __name__ == "__main__":
    main(sys.argv[1])
