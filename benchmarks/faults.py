"""Inject faults into every verb that writes, and check what is left: charge and result, words, exit code, files, processes.

    .venv/bin/python benchmarks/faults.py --out faults.jsonl

Needs a C compiler (cc) and Linux. Every finished fault is a line of the record, and is not repeated: start it again to go on.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.faults.cases import VERBS, as_line, calls_of, faults, make_world, strike
from tests.faults.runs import Fault, server


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the record; JSON lines")
    parser.add_argument("--verbs", nargs="*", default=list(VERBS), help="only these")
    parser.add_argument("--most", type=int, default=10**9, help="faults per verb, chosen at random")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so long")
    given = parser.parse_args()
    end, random_order = time.monotonic() + 60 * given.minutes, random.Random(0)
    lines = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    done = {(line["verb"], Fault(**line["fault"])) for line in lines}
    with server() as run, tempfile.TemporaryDirectory() as place, given.out.open("a") as record:
        template = Path(place) / "template"
        template.mkdir()
        make_world(run, template)
        for name in given.verbs:
            verb = VERBS[name]
            chosen = list(faults(verb, calls_of(run, template, Path(place), verb)))
            random_order.shuffle(chosen)
            for fault in chosen[: given.most]:
                if (name, fault) in done or time.monotonic() > end:
                    continue
                ended, problems = strike(run, template, Path(place), verb, fault)
                line = as_line(name, fault, ended, problems)
                record.write(line + "\n")
                record.flush()
                lines.append(json.loads(line))
                if problems:
                    print(f"{name}: {fault}: {'; '.join(problems)}", flush=True)
    tried, bad = Counter(line["verb"] for line in lines), Counter(line["verb"] for line in lines if line["problems"])
    codes = {name: Counter(line["code"] for line in lines if line["verb"] == name) for name in tried}
    for name in tried:
        shown = ", ".join(f"{code}: {count}" for code, count in sorted(codes[name].items()))
        print(f"{name:22s} {tried[name]:5d} faults, {bad[name]:3d} with problems; exit codes {shown}")
    print(f"{'all':22s} {sum(tried.values()):5d} faults, {sum(bad.values()):3d} with problems")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
