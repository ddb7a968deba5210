"""Runs of `gcon` into which a fault is injected: a warm server forks a child per run, and a shim in C makes its calls fail.

Importing torch takes seconds, so this file, run as a script with the shim preloaded, imports gcon once, stays at one thread,
and forks. The child arms the shim; product code knows nothing of it.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

KINDS = ("write", "sync", "rename", "create", "mkdir")
LONGEST = 120  # seconds; a child that hangs ends itself with another signal
VERBS = ("train", "evaluate", "advise", "tune", "predict", "data", "ledger", "serve_tokens", "site")


@dataclass(frozen=True)
class Fault:
    """What goes wrong: call number `call` of a kind below `folder` fails with `error`, or brings `signal`; or a disk is full.

    `lasts`: from then on everything that needs room fails. `room`: bytes that are left on the disk, with kind "". The kind
    "stdout" is a full disk behind standard output, "pipe" a reader who has gone, "stderr" a full disk behind what is told
    meanwhile. With `json`, the result is asked for as JSON.
    """

    folder: str = ""
    kind: str = ""
    call: int = 0
    error: int = 0
    lasts: bool = False
    signal: int = 0
    room: int = -1
    json: bool = False


@dataclass(frozen=True)
class Run:
    """How a run ended."""

    code: int
    out: str
    err: str
    calls: dict[str, int]
    left: bool  # a process of it is still there


class Runner(Protocol):
    """Runs `gcon` with these arguments in a folder, with a fault."""

    def __call__(self, folder: Path, *arguments: object, fault: Fault = ...) -> Run: ...


# The server's side.


def serve() -> None:
    import torch
    import torch._dynamo  # the optimiser imports it on first use

    torch.set_num_threads(1)
    sys.argv = ["gcon", "version", "--quiet"]
    with suppress(SystemExit):
        importlib.import_module("gcon.cli.app").main()
    for verb in VERBS:
        importlib.import_module(f"gcon.cli.{verb}")
    gcon = importlib.import_module("gcon")
    for model in (gcon.NodeClassifier(), gcon.GCON(epochs=2)):
        model.fit(gcon.datasets.social_circles(60, num_classes=3, mean_degree=4, per_class=6, seed=1))
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(_run(**json.loads(line))), flush=True)


def _run(folder: str, arguments: list[str], fault: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        child = os.fork()
        if child == 0:
            _suffer(Path(place), folder, arguments, fault)
        _, status = os.waitpid(child, 0)
        time.sleep(0.01)
        left = False
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
            left = True
        said = {name: (Path(place) / name).read_text(errors="replace") for name in ("out", "err")}
        counts = Path(place) / "calls"
        calls = json.loads(counts.read_text()) if counts.exists() else {}
        return {"code": os.waitstatus_to_exitcode(status), **said, "calls": calls, "left": left}


def _suffer(place: Path, folder: str, arguments: list[str], fault: dict[str, Any]) -> None:
    code = 1
    try:
        os.setsid()
        signal.alarm(LONGEST)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the server runs in the background
        files = [
            os.open(os.devnull, os.O_RDONLY),
            *(os.open(place / name, os.O_WRONLY | os.O_CREAT) for name in ("out", "err")),
        ]
        if fault["kind"] == "stdout":
            files[1] = os.open("/dev/full", os.O_WRONLY)
        if fault["kind"] == "stderr":
            files[2] = os.open("/dev/full", os.O_WRONLY)
        if fault["kind"] == "pipe":
            reading, files[1] = os.pipe()
            os.close(reading)
        for descriptor, file in enumerate(files):
            os.dup2(file, descriptor)
        os.chdir(folder)
        sys.argv = ["gcon", *arguments, *(["--json"] if fault["json"] else [])]
        shim = ctypes.CDLL(None)
        kind = KINDS.index(fault["kind"]) if fault["kind"] in KINDS else -1
        below = os.path.join(folder, fault["folder"]).encode()
        shim.fault_arm(
            below,
            kind,
            ctypes.c_long(fault["call"]),
            fault["error"],
            int(fault["lasts"]),
            fault["signal"],
            ctypes.c_long(fault["room"]),
        )
        try:
            sys.modules["gcon.cli.app"].main()
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else 1
        except BaseException:
            import traceback

            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        counts = (ctypes.c_long * len(KINDS)).in_dll(shim, "fault_counts")
        (place / "calls").write_text(json.dumps(dict(zip(KINDS, counts, strict=True))))
    finally:
        os._exit(code)


# The other side.


@contextmanager
def server() -> Iterator[Runner]:
    """Gives a function that runs `gcon` in a folder, with a fault."""
    with tempfile.TemporaryDirectory() as place:
        shim = Path(place) / "shim.so"
        compiler = shutil.which("cc")
        assert compiler is not None
        source = Path(__file__).with_name("shim.c")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-w", "-o", shim, source, "-ldl"], check=True)
        environment = os.environ | {"OMP_NUM_THREADS": "1", "LD_PRELOAD": str(shim)}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        with subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        ) as process:
            asking, answering = process.stdin, process.stdout
            assert asking is not None and answering is not None  # noqa: PT018
            assert answering.readline() == "ready\n"

            def run(folder: Path, *arguments: object, fault: Fault = Fault()) -> Run:  # noqa: B008
                request = {"folder": str(folder), "arguments": [*map(str, arguments)], "fault": asdict(fault)}
                asking.write(json.dumps(request) + "\n")
                asking.flush()
                return Run(**json.loads(answering.readline()))

            yield run


if __name__ == "__main__":
    serve()
