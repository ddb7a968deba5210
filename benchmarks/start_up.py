"""How fast the command line starts, how large the wheel is, and how long the tests take; into docs/architecture.md.

    .venv/bin/python benchmarks/start_up.py [--repeats 5] [--suites] [--write]

Seconds on the clock, the best of the repeats, each in a process of its own. Exits with 1 if `gcon --help` or `gcon --version`
takes half a second, or `import gcon` 0.2 s more than `import torch`. `--suites` also times `make test` and `make test-all`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

from gcon_lab.tables import markdown
from rooms import ROOT, put_into_page

HELP, IMPORT = 0.5, 0.2  # seconds
GCON = str(Path(sys.executable).with_name("gcon"))
STARTS = {
    "`import torch`": [sys.executable, "-c", "import torch"],
    "`import gcon`": [sys.executable, "-c", "import gcon"],
    "`gcon --help`": [GCON, "--help"],
    "`gcon --version`": [GCON, "--version"],
}


def seconds(command: Sequence[str]) -> float:
    """Of one process."""
    start = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def wheel() -> str:
    """The size of the product's wheel, and how many files are in it."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder]
        subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(ROOT)], check=True)
        [path] = Path(folder).glob("*.whl")
        return f"{path.stat().st_size / 1000:,.0f} kB, {len(zipfile.ZipFile(path).namelist())} files"


def main() -> int:
    """Print the table; 1 if something starts too slowly."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--suites", action="store_true", help="time `make test` and `make test-all` too")
    parser.add_argument("--write", action="store_true", help="put the table into docs/architecture.md")
    given = parser.parse_args()
    times = {name: min(seconds(command) for _ in range(given.repeats)) for name, command in STARTS.items()}
    rows = [[name, f"{found:.2f} s"] for name, found in times.items()]
    for target in ("test", "test-all") if given.suites else ():
        rows.append([f"`make {target}`", f"{seconds(['make', target]) / 60:.1f} minutes"])
    text = markdown(["what", "measured"], [*rows, ["the wheel", wheel()]])
    print(text)
    if given.write:
        put_into_page("times", text)
    torch, ours, *verbs = times.values()
    return int(max(verbs) >= HELP or ours > torch + IMPORT)


if __name__ == "__main__":
    sys.exit(main())
