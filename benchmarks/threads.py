"""What a second thread costs a small training, on a quiet machine and beside busy loops.

    .venv/bin/python benchmarks/threads.py [--nodes 1000] [--busy 0 1] [--repeats 5] [--without-limit]

Every training runs in a process of its own, with two threads (OMP_NUM_THREADS=2) and with one, in turns; the best time of all
turns counts, because a machine has other work too. Exits with 1 if two threads take more than 1.25 times as long as one.
`--without-limit` takes gcon.machine.threads_for away, to show what it is for: expect minutes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

MOST = 1.25
SCRIPT = """
import sys, time, warnings
from contextlib import nullcontext
import gcon
from gcon.files.datasets.synthetic import FRIENDS, FRIENDS_ALIKE, FRIENDS_SIGNAL, social_circles
from gcon.learn import edge_free
from gcon.estimators import estimator

nodes, limited = int(sys.argv[1]), sys.argv[2] == "limited"
if not limited:
    estimator.threads_for = lambda *_: nullcontext()
warnings.simplefilter("ignore")
graph = social_circles(nodes, mean_degree=FRIENDS, homophily=FRIENDS_ALIKE, feature_signal=FRIENDS_SIGNAL, seed=1)
times = []
for _ in range(2):  # the first one imports and compiles
    edge_free._kept.cache_clear()
    start = time.perf_counter()
    gcon.NodeClassifier(epsilon=1.0).fit(graph)
    times.append(time.perf_counter() - start)
print(times[-1])
"""


def seconds(nodes: int, threads: int, *, limited: bool) -> float:
    """Of one training in a process with this many threads."""
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    words = [sys.executable, "-c", SCRIPT, str(nodes), "limited" if limited else "free"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> int:
    """Print a table; 1 if two threads are slower than one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--without-limit", action="store_true")
    given = parser.parse_args()
    worst = 0.0
    print(f"{given.nodes} nodes, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before the start")
    print("| busy loops beside it | one thread, s | two threads, s | ratio |\n|---|---|---|---|")
    for busy in given.busy:
        loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
        try:
            time.sleep(1)
            turns = [
                [seconds(given.nodes, threads, limited=not given.without_limit) for threads in (1, 2)]
                for _ in range(given.repeats)
            ]
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()
        one, two = (min(times) for times in zip(*turns, strict=True))
        worst = max(worst, two / one)
        print(f"| {busy} | {one:.2f} | {two:.2f} | {two / one:.2f} |", flush=True)
    return 0 if worst <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
