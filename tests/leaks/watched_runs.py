"""Runs `gcon` verbs in a fresh process and writes down everything that can be seen of them; a script, not a test.

It imports gcon once, stays at one thread, and forks a child for each request (importing torch takes seconds). In the child
every place for files lies in one folder, the clock stands still, and the operating system's random bytes are always the
same, so that two runs differ only in what depends on their edges. On request the gate computes, but gives what it gave in
an earlier run: then the released numbers are the same too, and nothing at all may differ.
"""

import gc
import hashlib
import importlib
import json
import logging
import os
import pickle
import re
import secrets
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from itertools import count
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType

import numpy as np
import torch
import torch._dynamo  # the optimiser imports it on first use

PLACES = {
    "TMPDIR": "tmp",
    "HOME": "home",
    "XDG_CACHE_HOME": "cache",
    "XDG_STATE_HOME": "state",
    "GCON_CACHE": "gcon-cache",
    "POLARS_TEMP_DIR": "tmp/polars",
}
LONGEST = 300  # seconds; a child that hangs is ended by its own alarm
CACHE = type(lru_cache(len))


def serve() -> None:
    torch.set_num_threads(1)
    sys.argv = ["gcon", "version", "--quiet"]  # not polars: its threads would not survive a fork
    with suppress(SystemExit):
        importlib.import_module("gcon.cli.app").main()
    for verb in ("train", "predict", "evaluate", "advise", "tune"):  # once, and not in every child
        importlib.import_module(f"gcon.cli.{verb}")
    importlib.import_module("gcon_lab.cli.baseline")
    gcon = importlib.import_module("gcon")
    for model in (gcon.NodeClassifier(), gcon.GCON(epochs=2)):
        model.fit(gcon.datasets.social_circles(60, num_classes=3, mean_degree=4, per_class=6, seed=1))
    del model
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "nodes" in request:  # public nodes, as a child read them: their edge-free model is trained once for all runs
            nodes = pickle.loads(Path(request["nodes"]).read_bytes())
            sys.modules["gcon.learn.edge_free"].learn_without_edges(nodes, seed=0)
            print("0", flush=True)
            continue
        child = os.fork()
        if child == 0:
            run_and_leave(**request)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def run_and_leave(folder, commands, report, leaky=False, keep_nodes=None, released=None, forced=0):
    code = 1
    try:
        signal.alarm(LONGEST)
        found = observe(Path(folder), Path(report), commands, leaky=leaky, released=released, forced=forced)
        if keep_nodes is not None:
            read = importlib.import_module("gcon.files.tables").read_nodes
            Path(keep_nodes).write_bytes(pickle.dumps(read(Path(folder) / "nodes.csv").nodes))
        Path(report).write_bytes(pickle.dumps(found))
        code = 0
    except BaseException:
        logging.raiseExceptions = False
        import traceback

        Path(report).write_text(traceback.format_exc())
    finally:
        os._exit(code)


def observe(
    folder: Path, report: Path, commands: list[list[str]], *, leaky: bool, released: str | None, forced: int
) -> dict:
    """Run the commands one after the other in the folder; gives everything seen, by channel.

    From the command of number `forced` on, what the gate gives is kept in the file `released`, or taken from it.
    """
    begun = {"descriptors": descriptors(), "shared memory": set(os.listdir("/dev/shm")), "alive": alive()}
    watch = Watch(folder, report)
    if leaky:
        importlib.import_module("leaky_run").leak()
    seen, finish = [watch.run(command) for command in commands[:forced]], lambda: None
    if released is not None:
        finish = hold_released(Path(released), watch)
    seen += [watch.run(command) for command in commands[forced:]]
    finish()
    gc.collect()
    named = str([command["touched files"] for command in seen])
    return {
        "commands": seen,
        "open files": sorted(target for target in descriptors() - begun["descriptors"] if in_the_way(target, folder)),
        "mapped files": sorted(target for target in mapped() if in_the_way(target, folder)),
        # Other programs use it at the same time: ours are the names with our number, and those that we touched.
        "shared memory": sorted(
            name
            for name in set(os.listdir("/dev/shm")) - begun["shared memory"]
            if str(os.getpid()) in name or name in named
        ),
        "state": state(),
        "alive": dict(Counter(alive()) - Counter(begun["alive"])),
        "files": files(folder),
    }


def hold_released(path: Path, watch: "Watch"):
    """Let the gate give what it gave before; gives what writes it down, if this is the first run."""
    gates = [importlib.import_module(f"gcon.privacy.{name}") for name in ("account", "gates")]
    compute, first = gates[0].apply_private, not path.exists()
    known = [] if first else pickle.loads(path.read_bytes())
    numbers = count()

    def held(function, private):
        value = compute(function, private)
        watch.shapes.append(shape(value))
        number = next(numbers)
        if first:
            known.append(pickle.dumps(value))
        return pickle.loads(known[number])

    def give(function):
        for gate in gates:
            gate.apply_private = function

    def finish():
        give(compute)
        if first:
            path.write_bytes(pickle.dumps(known))

    give(held)
    return finish


def shape(value):
    """What a released value looks like, without its numbers. Bare edges are given to methods without a promise only."""
    if isinstance(value, torch.Tensor | np.ndarray):
        return type(value).__name__, str(value.dtype), tuple(value.shape)
    if isinstance(value, list | tuple):
        return [shape(entry) for entry in value]
    kind = type(value).__name__
    return kind if kind == "EdgeList" or not hasattr(value, "__dict__") else (kind, shape(list(vars(value).values())))


class Watch:
    """Everything that is told or touched while a command runs."""

    def __init__(self, folder: Path, report: Path) -> None:
        self.folder, self.report = folder, report
        self._forget()
        os.chdir(folder)
        for name, place in PLACES.items():
            (folder / place).mkdir(exist_ok=True)
            os.environ[name] = str(folder / place)
        for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
            os.environ.pop(name, None)
        sys.dont_write_bytecode = True
        self._stop_the_clock()
        self._force_the_noise()
        self._listen()
        sys.addaudithook(self._audit)

    def _forget(self) -> None:
        self.logs, self.warned, self.words, self.touched, self.shapes, self.random_bytes = [], [], [], [], [], 0

    def _stop_the_clock(self) -> None:
        class Stopped(datetime):
            @classmethod
            def now(cls, tz=None):
                return cls(2030, 1, 2, 3, 4, 5, tzinfo=UTC)

        importlib.import_module("gcon.privacy.ledger_file").datetime = Stopped

    def _force_the_noise(self) -> None:
        numbers = count()

        def same_bytes(size):
            self.random_bytes += size
            return hashlib.shake_256(b"a third noise %d" % next(numbers)).digest(size)

        names = count()
        os.urandom = same_bytes
        importlib.import_module("gcon.privacy.randomness").SystemRandomness.take = staticmethod(same_bytes)
        secrets.token_hex = lambda size: f"{next(names):0{2 * size}}"
        tempfile.tempdir = None
        tempfile._get_candidate_names = lambda: (f"name{number}" for number in names)

    def _listen(self) -> None:
        ear = logging.Handler()
        ear.emit = lambda record: self.logs.append(
            (record.name, record.levelno, re.sub(r"0x[0-9a-f]+", "ADDRESS", record.getMessage()))
        )
        logging.getLogger().addHandler(ear)
        for name in (None, "gcon", "torch", "polars", *logging.root.manager.loggerDict):
            if name is not None and name.split(".")[0] == "numba":
                continue  # its compiler tells gigabytes about the code, and knows nothing of the data
            logger = logging.getLogger(name)
            logger.setLevel(logging.DEBUG)
            if not logger.propagate:
                logger.handlers = [ear]  # torch writes the time and memory addresses to standard error
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, kind, *_: self.warned.append((kind.__name__, str(message)))
        status, progress = (
            importlib.import_module("rich.status").Status,
            importlib.import_module("rich.progress").Progress,
        )
        for owner, name in ((status, "__init__"), (status, "update"), (progress, "add_task"), (progress, "update")):
            setattr(owner, name, self._heard(owner, name))

    def _heard(self, owner, name):
        original = getattr(owner, name)

        def heard(instance, *arguments, **options):
            plain = [value for value in (*arguments, *options.values()) if isinstance(value, str | int | float)]
            self.words.append((owner.__name__, name, plain))
            return original(instance, *arguments, **options)

        return heard

    def _audit(self, event, arguments) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, int) or not (flags & (os.O_WRONLY | os.O_RDWR) or str(self.folder) in str(path)):
                return
            self.touched.append((event, self._short(path), flags))
        elif event.startswith(("os.", "shutil.", "tempfile.", "subprocess.", "socket.", "mmap.")) and event not in (
            "os.listdir",
            "os.scandir",
            "os.putenv",
            "os.unsetenv",
        ):
            if event in ("os.remove", "os.rmdir") and arguments[-1] >= 0:
                arguments = (*arguments[:-1], "A FOLDER")  # open, and its number is any free one
            self.touched.append((event, *map(self._short, arguments)))

    def _short(self, value) -> str:
        return str(value).replace(str(self.folder), "FOLDER")

    def run(self, command: list[str]) -> dict:
        """One verb of the command line."""
        for number in (1, 2):  # the descriptors themselves: not everything that writes is Python
            file = os.open(f"{self.report}.{number}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, number)
            os.close(file)
        self._forget()
        sys.argv, code = ["gcon", *command], None
        try:
            sys.modules["gcon.cli.app"].main()
        except SystemExit as stopped:
            code = stopped.code
        sys.stdout.flush()
        sys.stderr.flush()
        seen, self.touched = self.touched, []
        told = [Path(f"{self.report}.{number}").read_text() for number in (1, 2)]
        return {
            "exit code": code,
            "standard output": told[0],
            "standard error": told[1],
            "logs": self.logs,
            "warnings": self.warned,
            "progress": self.words,
            "touched files": seen,
            "random bytes": self.random_bytes,
            "shapes of what is released": self.shapes,
        }


# What is left at the end.


def files(folder: Path) -> dict[str, tuple]:
    """Everything under the folder but the private input: mode, links, extended attributes and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        facts = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        links = facts.st_nlink if path.is_file() else None
        found[str(path.relative_to(folder))] = (oct(facts.st_mode), links, os.listxattr(path), content)
    del found["edges.csv"]
    return found


def descriptors() -> set[str]:
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the listing's own
            found.add(os.readlink(f"/proc/self/fd/{number}"))
    return found


def mapped() -> set[str]:
    lines = (line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines())
    return {line[5] for line in lines if len(line) == 6}


def in_the_way(target: str, folder: Path) -> bool:
    """Whether a file of the run or a nameless one is still held."""
    return "(deleted)" in target or target.startswith((str(folder), "/dev/shm", "/memfd"))


def state() -> dict[str, str]:
    """Everything that gcon's modules keep: globals, class attributes, and what every cache holds, as a digest each."""
    found = {}
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] != "gcon":
            continue
        for key, value in vars(module).items():
            if key.startswith("__"):
                continue
            if isinstance(value, type):
                kept = vars(value).items() if value.__module__ == name else ()
                found |= {f"{name}.{key}.{inner}": digest(kept_) for inner, kept_ in kept if inner[:2] != "__"}
            else:
                found[f"{name}.{key}"] = digest(value)
    return found


def digest(value) -> str:
    return hashlib.sha256(repr(canonical(value, set())).encode()).hexdigest()


def canonical(value, outer: set[int]):
    """A value without memory addresses. Numbers of tensors and arrays are hashed; caches are opened."""
    if isinstance(value, torch.Tensor):
        value = value.detach().numpy()
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, hashlib.sha256(value.tobytes()).hexdigest()
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | Path):
        return repr(value)
    if str(type(value).__module__).partition(".")[0] in ("numba", "llvmlite"):
        # Compiled code: what it keeps of what it was called with are the types.
        return type(value).__qualname__, [str(types) for types in getattr(value, "signatures", ())]
    if id(value) in outer:
        return "above"
    outer = outer | {id(value)}
    if isinstance(value, CACHE):
        held = [entry for entry in gc.get_referents(value) if not isinstance(entry, FunctionType | type)]
        return value.cache_info(), [canonical(entry, outer) for entry in held]
    if isinstance(value, FunctionType):
        return value.__qualname__, canonical([vars(value), value.__defaults__, in_closure(value)], outer)
    if isinstance(value, BuiltinFunctionType | type | ModuleType):
        return value.__name__
    if isinstance(value, Mapping):
        return [(canonical(key, outer), canonical(entry, outer)) for key, entry in value.items()]
    if isinstance(value, list | tuple):
        return [canonical(entry, outer) for entry in value]
    if isinstance(value, set | frozenset):
        return sorted(repr(canonical(entry, outer)) for entry in value)
    slots = {name: getattr(value, name, None) for name in getattr(type(value), "__slots__", ()) if name[:2] != "__"}
    return type(value).__qualname__, canonical({**slots, **getattr(value, "__dict__", {})}, outer)


def in_closure(function: FunctionType) -> list:
    found = []
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # an empty cell
            found.append(cell.cell_contents)
    return found


def alive() -> dict[str, int]:
    """How many objects of gcon there still are, by class, and tensors, by shape."""
    found = Counter()
    for value in gc.get_objects():
        kind = type(value)
        if str(kind.__module__).partition(".")[0] == "gcon":
            found[kind.__qualname__] += 1
        elif kind is torch.Tensor:
            found[f"tensor {tuple(value.shape)} {value.dtype}"] += 1
    return dict(sorted(found.items()))


if __name__ == "__main__":
    serve()
