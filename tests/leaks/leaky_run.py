"""A run that leaks through every channel at once, for `watched_runs.py`: the comparison must find each."""

import importlib
import logging
import mmap
import os
import sys
import tempfile
import warnings
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

KEPT = []  # what is held on to


def leak() -> None:
    """Make `gcon train` tell its number of edges in every way that is watched."""
    from gcon.privacy.ledger_file import FileLedger
    from gcon.privacy.opening import apply_private

    train = importlib.import_module("gcon.cli.train")
    paying = importlib.import_module("gcon.cli.paying")
    load, save, reserve, leave, number = train.load_training, paying.save_release, FileLedger.reserve, sys.exit, 0

    def loading(*arguments, **options):
        nonlocal number
        loaded = load(*arguments, **options)
        edges = apply_private(lambda value: value, loaded.edges)
        number = edges.columns.numel() // 2
        tell(number, edges)
        return loaded

    def saving(model, out):
        from safetensors.numpy import load_file, save_file

        save(model, out)
        tensors = load_file(out / "model.safetensors")
        save_file({**tensors, "extra": next(iter(tensors.values())).repeat(number)}, out / "model.safetensors")

    train.load_training, paying.save_release = loading, saving
    FileLedger.reserve = lambda books, request: reserve(books, replace(request, purpose=f"{number} edges"))
    sys.exit = lambda code: leave(code + 10 + number % 100)


def tell(number: int, edges) -> None:
    from rich.status import Status

    logging.getLogger("gcon.leak").debug("%d edges", number)
    logging.getLogger("torch.leak").debug("%d edges", number)
    warnings.warn(f"{number} edges", stacklevel=1)
    sys.stdout.write(f"{number} edges\n")
    sys.stderr.write(f"{number} edges\n")
    Status("read").update(f"{number} edges")
    os.urandom(number)
    place = Path(os.environ["TMPDIR"])
    (place / f"scratch-{number}").touch()
    (place / f"scratch-{number}").unlink()
    (place / "size").write_bytes(bytes(number))
    (place / "mode").touch()
    (place / "mode").chmod(0o600 | number % 8)
    Path(os.environ["XDG_CACHE_HOME"], f"name-{number}").touch()
    KEPT.append(tempfile.TemporaryFile())  # noqa: SIM115
    with (place / "size").open("r+b") as file:
        KEPT.append(mmap.mmap(file.fileno(), 0))
    shared = Path("/dev/shm", f"gcon-test-{os.getpid()}")
    shared.touch()
    sys.modules["gcon.mechanisms.influence"]._EXTENTS["edges", number] = number
    remembered = lru_cache(lambda edges: edges.columns)
    remembered(edges)
    sys.modules["gcon.learn.edge_free"].by_edges = remembered
