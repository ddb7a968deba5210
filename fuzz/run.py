"""Run one target, or all of them for a number of minutes, and add up executions and findings.

`python -m fuzz.run all --minutes 10`, or `python -m fuzz.run npz --seconds 60`. With atheris the inputs are led by coverage;
without it (or with --plain) they are changed at random, starting from the corpus. Breaches do not stop a run: the first
input of each kind is kept under --found.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from random import Random
from types import ModuleType

for _name in ("OMP_NUM_THREADS", "POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

TARGETS = (
    *("edges_text", "nodes_text", "parquet", "npz", "release_json", "safetensors_header", "ledger_file", "toml_config"),
    "run_json",
)
ROOT = Path(__file__).parent
INSTRUMENTED = ["gcon.files", "gcon.release", "gcon.privacy", "gcon.cli.options", "gcon.pages.report", "tomllib"]
LONGEST = 1 << 14


class Campaign:
    """Executions and findings of one target."""

    def __init__(self, target: ModuleType, found: Path) -> None:
        self.target, self.folder = target, found
        self.runs, self.start, self.told = 0, time.monotonic(), 0.0
        self.breaches: dict[str, str] = {}
        self.last: Path | None = None  # where the input is kept while it is tried, for crashes that nothing survives

    def one(self, data: bytes) -> None:
        """Try one input; a breach is kept once for each place it comes from."""
        self.runs += 1
        if self.last is not None:
            self.last.write_bytes(data)
        try:
            self.target.one(data)
        except AssertionError as error:
            cause = error.__cause__
            frames = traceback.extract_tb(cause.__traceback__ if cause is not None else error.__traceback__)
            own = [frame for frame in frames if "gcon" in frame.filename] or list(frames)
            where = f"{own[-1].filename.rpartition('src/')[2]}:{own[-1].lineno} {str(error).split(':')[0]}"
            if where not in self.breaches:
                self.breaches[where] = str(error)
                self.folder.mkdir(parents=True, exist_ok=True)
                name = f"{self.name}-{hashlib.sha256(where.encode()).hexdigest()[:10]}"
                (self.folder / name).write_bytes(data)
                sys.stderr.write(f"BREACH {name} {where} {error}\n")
        if time.monotonic() - self.told > 1:
            self.tell()

    @property
    def name(self) -> str:
        """The target's short name."""
        return self.target.__name__.rpartition(".")[2]

    def tell(self) -> None:
        """Write where the run stands (libFuzzer ends the process itself, so this is done as it goes)."""
        self.told = time.monotonic()
        seconds = round(self.told - self.start, 1)
        record = {"target": self.name, "runs": self.runs, "seconds": seconds, "breaches": self.breaches}
        path = os.environ.get("GCON_FUZZ_RECORD")
        if path:
            Path(path).write_text(json.dumps(record))


def starting_inputs(target: ModuleType) -> list[bytes]:
    """The valid files of a target, and its corpus."""
    kept = sorted((ROOT / "corpus" / target.__name__.rpartition(".")[2]).glob("*"))
    return [*target.seeds(), *(path.read_bytes() for path in kept)]


def run_plain(campaign: Campaign, seconds: float, seed: int) -> None:
    """Random changes of known inputs, a few in a row."""
    random, known = Random(seed), starting_inputs(campaign.target)
    campaign.last = campaign.folder / f"{campaign.name}-last"
    for data in known:
        campaign.one(data)
    while time.monotonic() - campaign.start < seconds:
        data = random.choice(known)
        for _ in range(random.choice((1, 1, 2, 3, 6))):
            data = campaign.target.change(data, random)[:LONGEST]
        campaign.one(data)
    campaign.last.unlink()
    campaign.tell()


def run_atheris(name: str, found: Path, seconds: float, runs: int, seed: int) -> None:
    """libFuzzer, led by coverage of the readers; ends the process."""
    import atheris  # type: ignore[import-not-found]

    with atheris.instrument_imports(include=INSTRUMENTED):
        target = importlib.import_module(f"fuzz.{name}")
    campaign = Campaign(target, found)

    def changed(data: bytes, most: int, seed: int) -> bytes:
        random = Random(seed)
        if random.random() < getattr(target, "PLAIN_SHARE", 0.1):
            return bytes(atheris.Mutate(data, most))
        return bytes(target.change(data, random)[:most])

    importlib.import_module("fuzz.contract").limit_memory()
    with tempfile.TemporaryDirectory(prefix="gcon-corpus-") as folder:
        for place, data in enumerate(starting_inputs(target)):
            (Path(folder) / str(place)).write_bytes(data)
        options = [
            f"-max_total_time={int(seconds)}",
            f"-runs={runs}",
            f"-max_len={LONGEST}",
            f"-seed={seed}",
            "-timeout=60",
        ]
        options += ["-rss_limit_mb=0", "-reload=0", "-print_final_stats=1"]
        atheris.Setup(
            [sys.argv[0], *options, f"-artifact_prefix={found}/{name}-", folder], campaign.one, custom_mutator=changed
        )
        atheris.Fuzz()


def run_all(arguments: argparse.Namespace) -> int:
    """Every target in a process of its own, one after the other; the table goes to standard output."""
    each, bad = arguments.minutes * 60 / len(TARGETS), 0
    sys.stdout.write("| target | executions | seconds | a second | breaches |\n|---|---|---|---|---|\n")
    total = 0
    for name in TARGETS:
        record = run_apart(name, each, arguments)
        total += record["runs"]
        bad += len(record["breaches"]) + record["crashed"]
        rate = record["runs"] / max(record["seconds"], 0.1)
        sys.stdout.write(
            f"| {name} | {record['runs']} | {record['seconds']:.0f} | {rate:.0f} | {len(record['breaches'])} |\n"
        )
        sys.stdout.flush()
    sys.stdout.write(f"| all | {total} | | | {bad} |\n")
    return 1 if bad else 0


def run_apart(name: str, seconds: float, arguments: argparse.Namespace) -> dict[str, object]:
    """One target in a process of its own; what it told last, and whether the process died."""
    command = [
        sys.executable,
        "-m",
        "fuzz.run",
        name,
        f"--seconds={seconds}",
        f"--found={arguments.found}",
        f"--seed={arguments.seed}",
    ]
    with tempfile.TemporaryDirectory() as folder:
        record_path = Path(folder) / "record.json"
        environment = {**os.environ, "GCON_FUZZ_RECORD": str(record_path)}
        more = ["--plain"] if arguments.plain else []
        done = subprocess.run(
            [*command, *more], env=environment, stderr=subprocess.PIPE, text=True, errors="replace", check=False
        )
        record = (
            json.loads(record_path.read_text()) if record_path.exists() else {"runs": 0, "seconds": 0.0, "breaches": {}}
        )
    finished = re.search(r"Done (\d+) runs in (\d+) second", done.stderr)
    if finished:
        record["runs"] = max(record["runs"], int(finished[1]))
    record["crashed"] = int(done.returncode != 0)
    if done.returncode or record["breaches"]:
        sys.stderr.write(done.stderr[-3000:])
    return record


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=(*TARGETS, "all"))
    parser.add_argument("--minutes", type=float, default=10.0, help="for all targets together")
    parser.add_argument("--seconds", type=float, default=60.0, help="for one target")
    parser.add_argument("--runs", type=int, default=-1, help="for one target: stop earlier after so many")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 2**31)
    parser.add_argument("--found", type=Path, default=Path(tempfile.gettempdir()) / "gcon-fuzz-found")
    parser.add_argument("--plain", action="store_true", help="without atheris")
    arguments = parser.parse_args()
    if arguments.target == "all":
        return run_all(arguments)
    arguments.found.mkdir(parents=True, exist_ok=True)
    if not arguments.plain:
        run_atheris(arguments.target, arguments.found, arguments.seconds, arguments.runs, arguments.seed)
    campaign = Campaign(importlib.import_module(f"fuzz.{arguments.target}"), arguments.found)
    importlib.import_module("fuzz.contract").limit_memory()
    run_plain(campaign, arguments.seconds, arguments.seed)
    return 1 if campaign.breaches else 0


if __name__ == "__main__":
    sys.exit(main())
