"""What an attacker with one address can do to others who are answered by the same worker, and to the worker's memory.

    .venv/bin/python benchmarks/service_attack.py                      the service that is imported
    PYTHONPATH=OLD/src .venv/bin/python benchmarks/service_attack.py   another one, for figures before and after

One worker with its default limits; owners ask 50 times each second at even times, each from an address of her own;
the attacker has 127.0.0.2 and 16 connections. Waiting is measured from the time at which an owner meant to ask: one who had to
wait delays the next, and that counts too. The floor is the same without any attack; other work on the machine adds to both, so
look at their ratio too. Exits with 1 if an attack makes the 99th percentile longer than 50 ms.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path

from service import World, _resident, make_world

HEAD = b"POST /predict HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
LISTS = b'{"me":{"id":"1"},"neighbours":[' + b"[[]]," * 780_000 + b"0]}"
NUMBERS = b'{"me":{"features":[' + b"0," * 1_950_000 + b"0]}}"
LONG = b'{"me":{"id":"1"},"neighbours":[' + b",".join([b'{"features":[' + b"0," * 499 + b"1]}"] * 3_900) + b"]}"
FULL = (
    b'{"me":{"id":"1"},"neighbours":['
    + b",".join([b'{"features":[' + b"0.1234567890123," * 499 + b"1]}"] * 520)
    + b"]}"
)
MOST_WAIT = 0.050
ATTACKERS = 16


@contextmanager
def ours(world: World) -> Iterator[tuple[int, int]]:
    """`gcon serve` with the limits that it has; its port, and its worker."""
    folder = world.folder
    command: list[object] = [sys.executable, "-m", "gcon.cli.app", "serve", folder / "model", "--port", 0, "--json"]
    command += ["--nodes", folder / "nodes.parquet", "--edges", folder / "edges.csv", "--tokens", folder / "tokens"]
    command += ["--per-token", 1e6, "--behind-proxy", "127.0.0.1"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    said = ""
    while not said.rstrip().endswith("}"):
        said += process.stdout.readline()
    try:
        worker = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
        yield int(json.loads(said)["address"].rsplit(":", 1)[1]), worker
    finally:
        process.terminate()
        process.wait(60)


def owners(port: int, requests: list[bytes], seconds: float, each: float = 0.02) -> list[float]:
    """How long owners wait, each with an address of her own, as a proxy would tell it."""
    waits, connection = [], _connected(port, "127.0.0.1")
    start = time.perf_counter()
    for turn in range(int(seconds / each)):
        meant = start + turn * each
        if time.perf_counter() > start + 3 * seconds:  # so far behind that the rest says nothing new
            break
        time.sleep(max(0.0, meant - time.perf_counter()))
        head, _, body = requests[turn % len(requests)].partition(b"\r\n\r\n")
        address = b"x-forwarded-for: 10.%d.%d.%d" % (turn >> 16 & 255, turn >> 8 & 255, turn & 255)
        connection.sendall(head + b"\r\n" + address + b"\r\n\r\n" + body)
        answer = _answer(connection)
        assert answer.startswith(b"HTTP/1.1 200"), answer[:300]
        waits.append(time.perf_counter() - meant)
    connection.close()
    return waits


def _connected(port: int, address: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=60, source_address=(address, 0))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _answer(connection: socket.socket) -> bytes:
    got = b""
    while b"\r\n\r\n" not in got:
        got += _more(connection)
    head = got.lower().partition(b"\r\n\r\n")[0]
    length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(got) < len(head) + 4 + length:
        got += _more(connection)
    return got


def _more(connection: socket.socket) -> bytes:
    part = connection.recv(65536)
    if not part:
        raise ConnectionError
    return part


class Attack:
    """A process whose threads send one request over and over from one address, with a pause or without.

    It stands back where processors are scarce: a real attacker brings his own.
    """

    def __init__(self, port: int, request: bytes, pause: float) -> None:
        self._port, self._request, self._pause = port, request, pause
        context = multiprocessing.get_context("fork")
        self._ending, self._counts = context.Event(), context.SimpleQueue()
        self._process = context.Process(target=self._run, daemon=True)
        self.statuses: dict[str, int] = {}

    def __enter__(self) -> Attack:
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self.statuses.update(self._counts.get())
        self._process.join(60)

    def _run(self) -> None:
        os.nice(19)
        with ThreadPoolExecutor(ATTACKERS) as threads:
            for place in range(ATTACKERS):
                threads.submit(self._send, place)
        self._counts.put(self.statuses)

    def _send(self, place: int) -> None:
        self._ending.wait(self._pause * place / ATTACKERS)
        connection = None
        while not self._ending.is_set():
            try:
                connection = connection or _connected(self._port, "127.0.0.2")
                connection.sendall(self._request)
                status = _answer(connection)[9:12].decode()
            except (OSError, IndexError):
                status = "cut off"
                if connection is not None:
                    connection.close()
                connection = None
            self.statuses[status] = self.statuses.get(status, 0) + 1
            if self._pause:
                self._ending.wait(self._pause)


def _slowest(waits: list[float]) -> float:
    return statistics.quantiles(waits, n=100, method="inclusive")[98]


def _posted(body: bytes) -> bytes:
    return HEAD + b"content-length: %d\r\n\r\n" % len(body) + body


def trailers(port: int, worker: int) -> tuple[float, float]:
    """Megabytes that a worker's memory grows by, of how many that were taken, if tiny trailers are sent."""
    with _connected(port, "127.0.0.3") as connection:
        connection.sendall(_posted(b'{"me":{"id":"1"}}'))
        _answer(connection)
    before = most = _resident(worker)
    taken = 0
    with _connected(port, "127.0.0.3") as connection:
        connection.sendall(HEAD + b'transfer-encoding: chunked\r\n\r\n11\r\n{"me":{"id":"1"}}\r\n0\r\n')
        try:
            for _ in range(300):
                connection.sendall(b"a:b\r\n" * 13_000)
                taken += 65_000
                most = max(most, _resident(worker))
        except OSError:
            pass
        most = max(most, _resident(worker))
    return (most - before) / 1e6, taken / 1e6


def main() -> int:
    """All attacks, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="of every attack")
    options = parser.parse_args()
    floor, held = 0.0, True
    attacks: dict[str, Callable[[int], Attack] | None] = {
        "nobody attacks": None,
        # 600 a minute are allowed: 16 connections with a pause of 2 seconds stay within that.
        "lists in lists, within": lambda port: Attack(port, _posted(LISTS), 2.0),
        "lists in lists, above": lambda port: Attack(port, _posted(LISTS), 0.0),
        "long questions, within": lambda port: Attack(port, _posted(LONG), 2.0),
        "full questions, within": lambda port: Attack(port, _posted(FULL), 2.0),
        "numbers, within": lambda port: Attack(port, _posted(NUMBERS), 2.0),
        "numbers, above": lambda port: Attack(port, _posted(NUMBERS), 0.0),
        "small requests, above": lambda port: Attack(port, _posted(b"[]"), 0.0),
    }
    with tempfile.TemporaryDirectory() as folder:
        world = make_world(Path(folder))
        print(f"{'owner waits, ms':24} {'median':>8} {'99 %':>8} {'most':>8} {'to floor':>9}  the attacker got")
        for name, attack in attacks.items():
            with ours(world) as (port, _):
                owners(port, world.me, 2)  # to warm up
                with nullcontext() if attack is None else attack(port) as attacking:
                    waits = owners(port, world.me, options.seconds)
                got = {} if attacking is None else attacking.statuses
            slow = _slowest(waits)
            floor = floor or slow
            held = held and slow < MOST_WAIT
            shown = ", ".join(f"{status}: {count}" for status, count in sorted(got.items()))
            numbers = " ".join(f"{1000 * each:8.1f}" for each in (statistics.median(waits), slow, max(waits)))
            print(f"{name:24} {numbers} {slow / floor:8.1f}x  {shown}", flush=True)
        with ours(world) as (port, worker):
            grown, taken = trailers(port, worker)
            print(f"tiny trailers: a worker grows by {grown:.0f} MB, {taken:.1f} MB were taken")
            held = held and grown < 16
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
