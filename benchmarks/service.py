"""How many people a service answers: requests each second and the slowest of a hundred, against a bare FastAPI handler.

    .venv/bin/python benchmarks/service.py            ours against the bare handler; exits with 1 below 65 % (/me: 50 %) of it
    .venv/bin/python benchmarks/service.py --steady 600   ten minutes of steady load: memory at the beginning and at the end
    .venv/bin/python benchmarks/service.py --refusals 20000   whether the time of a refusal tells if a node exists

One worker each, one load generator, two cores. The bare handler, /predict and /me take turns, a few seconds each, several times.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from scipy.stats import mannwhitneyu

NODES, FEATURES, CLASSES, DEGREE = 19_717, 500, 3, 4.5  # of PubMed
LEAST_SHARE = {"/predict, ids": 0.65, "/me": 0.5}  # of the bare handler
CONNECTIONS = 16
BARE = """
import sys, socket
import uvicorn
from fastapi import FastAPI
app = FastAPI()

@app.post("/")
async def nothing():
    return {"label": "1"}

listener = socket.socket(); listener.bind(("127.0.0.1", 0)); listener.listen(2048)
print(listener.getsockname()[1], flush=True)
config = uvicorn.Config(app, access_log=False, log_level="warning")
uvicorn.Server(config).run(sockets=[listener])
"""


@dataclass
class Load:
    """What one stretch of load saw."""

    seconds: float = 0.0
    times: list[float] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        """Requests."""
        return len(self.times) / self.seconds

    @property
    def slowest(self) -> float:
        """The 99th percentile, in milliseconds."""
        return 1000 * statistics.quantiles(self.times, n=100)[98]


class _Connection(asyncio.Protocol):
    """Sends a request, waits for the whole answer, sends the next: as little work as Python can do."""

    def __init__(self, requests: Iterator[bytes], until: float, times: list[float], done: asyncio.Future[None]) -> None:
        self._requests, self._until, self._times, self._done = requests, until, times, done
        self._got = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        self._start = time.perf_counter()
        if self._start >= self._until:
            self._transport.close()
            if not self._done.done():
                self._done.set_result(None)
            return
        self._transport.write(next(self._requests))

    def data_received(self, data: bytes) -> None:
        self._got += data
        head = self._got.find(b"\r\n\r\n")
        if head < 0:
            return
        if not self._got.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"not answered: {self._got[:400]!r}")
        place = self._got.lower().find(b"content-length: ")
        length = int(self._got[place + 16 : self._got.find(b"\r\n", place)])
        if len(self._got) >= head + 4 + length:
            self._got = b""
            self._times.append(time.perf_counter() - self._start)
            self._ask()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._done.done():
            self._done.set_result(None)


def load(port: int, requests: list[bytes], seconds: float) -> Load:
    """Ask over some connections for some time."""

    async def run() -> Load:
        loop, found = asyncio.get_running_loop(), Load()
        start = time.perf_counter()
        ends: list[asyncio.Future[None]] = [loop.create_future() for _ in range(CONNECTIONS)]
        for place, end in enumerate(ends):
            turn = _forever(requests, place * 101)
            await loop.create_connection(
                lambda turn=turn, end=end: _Connection(turn, start + seconds, found.times, end),  # type: ignore[misc]
                "127.0.0.1",
                port,
            )
        await asyncio.gather(*ends)
        found.seconds = time.perf_counter() - start
        return found

    import uvloop

    return uvloop.run(run())


def _forever(requests: list[bytes], place: int) -> Iterator[bytes]:
    while True:
        yield requests[place % len(requests)]
        place += 1


def request(path: str, body: object, token: str = "") -> bytes:
    """A request as bytes."""
    content = json.dumps(body).encode()
    more = f"authorization: Bearer {token}\r\n" if token else ""
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{more}content-length: {len(content)}\r\n\r\n"
    return head.encode() + content


@dataclass(frozen=True)
class World:
    """A graph of PubMed's size with a release and tokens, and what people ask."""

    folder: Path
    predict: list[bytes]
    features: list[bytes]
    me: list[bytes]


def make_world(folder: Path) -> World:
    """Make the graph, train on it, issue tokens."""
    from gcon import NodeClassifier
    from gcon.edges.edge_list import public_edges
    from gcon.edges.graph import private_graph
    from gcon.files.datasets.synthetic import social_circles_parts
    from gcon.files.write_files import write_edges, write_nodes
    from gcon.release.store import save_release

    nodes, edge_index = social_circles_parts(
        NODES, num_classes=CLASSES, num_features=FEATURES, mean_degree=DEGREE, seed=1
    )
    write_nodes(folder / "nodes.parquet", nodes)
    write_edges(folder / "edges.csv", edge_index, num_nodes=NODES)
    save_release(NodeClassifier(1.0).fit(private_graph(nodes, edge_index, name="made")).model_, folder / "model")
    gcon("serve", "tokens", "issue", folder / "tokens", "--nodes", folder / "nodes.parquet", "--out", folder / "t.csv")
    with (folder / "t.csv").open() as file:
        tokens = {line["node"]: line["token"] for line in csv.DictReader(file)}
    edges, chosen = public_edges(edge_index, NODES), torch.randperm(NODES)[:2000].tolist()
    near = {row: edges.neighbours(row).tolist() for row in chosen}
    rows = nodes.features
    return World(
        folder,
        [
            request("/predict", {"me": {"id": str(row)}, "neighbours": [{"id": str(each)} for each in near[row]]})
            for row in chosen
        ],
        [
            request(
                "/predict",
                {
                    "me": {"features": rows[row].tolist()},
                    "neighbours": [{"features": rows[each].tolist()} for each in near[row]],
                },
            )
            for row in chosen[:200]
        ],
        [request("/me", {"node": str(row)}, tokens[str(row)]) for row in chosen],
    )


def gcon(*arguments: object) -> None:
    """One verb."""
    subprocess.run([sys.executable, "-m", "gcon.cli.app", *map(str, arguments), "--quiet"], check=True)


@contextmanager
def ours(world: World, workers: int = 1) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """`gcon serve` as it is, but for rates: one address asks for everybody here."""
    folder = world.folder
    command: list[object] = [sys.executable, "-m", "gcon.cli.app", "serve", folder / "model", "--port", 0, "--json"]
    command += ["--nodes", folder / "nodes.parquet", "--edges", folder / "edges.csv", "--tokens", folder / "tokens"]
    command += ["--workers", workers, "--per-address", 1e9, "--per-token", 1e9, "--burst", 10**9]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    said = ""
    while not said.rstrip().endswith("}"):
        said += process.stdout.readline()
    try:
        yield int(json.loads(said)["address"].rsplit(":", 1)[1]), process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@contextmanager
def bare() -> Iterator[int]:
    """A handler that returns a constant."""
    process = subprocess.Popen([sys.executable, "-c", BARE], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(60)


def compare(world: World, turns: int, seconds: float) -> bool:
    """All against the bare handler, turn by turn."""
    constant = [request("/", {})]
    found: dict[str, list[Load]] = {"bare": [], "/predict, ids": [], "/predict, features": [], "/me": []}
    with bare() as nothing, ours(world) as (port, _):
        for turn in range(turns + 1):
            for name, where, what in (
                ("bare", nothing, constant),
                ("/predict, ids", port, world.predict),
                ("/predict, features", port, world.features),
                ("/me", port, world.me),
            ):
                got = load(where, what, seconds)
                if turn:  # the first is to warm up
                    found[name].append(got)
    rates = {name: statistics.median(each.per_second for each in loads) for name, loads in found.items()}
    print(f"{'':20} {'a second':>9} {'of bare':>8} {'99th percentile':>16}")
    for name, loads in found.items():
        slowest = statistics.median(each.slowest for each in loads)
        print(f"{name:20} {rates[name]:9.0f} {rates[name] / rates['bare']:8.0%} {slowest:13.2f} ms")
    return all(rates[name] >= least * rates["bare"] for name, least in LEAST_SHARE.items())


def steady(world: World, seconds: float) -> bool:
    """Steady load; memory of the workers a tenth into it, and at its end."""
    sizes, answered, start = [], 0, time.perf_counter()
    with ours(world, workers=2) as (port, process):
        while time.perf_counter() - start < seconds:
            answered += len(load(port, world.me, 5).times) + len(load(port, world.predict, 5).times)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            sizes.append([_resident(int(child)) for child in children])
    early, late = sizes[max(0, len(sizes) // 10 - 1)], sizes[-1]
    growth = [after / before - 1 for before, after in zip(early, late, strict=True)]
    print(f"{answered:,} answers in {time.perf_counter() - start:.0f} s; resident MiB of each worker:")
    print(f"  after a tenth of the time {[f'{each / 2**20:.1f}' for each in early]}")
    print(f"  at the end                {[f'{each / 2**20:.1f}' for each in late]}")
    print(f"  growth                    {[f'{each:+.2%}' for each in growth]}")
    return max(growth) < 0.02


def refusals(world: World, count: int) -> bool:
    """Requests one at a time, kinds in random order: medians, and a test of the two pairs that differ in nothing but the node."""
    own = json.loads(world.me[0].split(b"\r\n\r\n", 1)[1])["node"]
    token = world.me[0].split(b"Bearer ", 1)[1].split(b"\r\n", 1)[0].decode()
    other = next(str(node) for node in range(NODES) if str(node) != own)
    nobody = "x" * len(other)  # as long as a node's id
    kinds = {
        f"{who}, {whose}": request("/me", {"node": node}, secret)
        for who, node in (("a node", other), ("nobody", nobody))
        for whose, secret in (("wrong token", "gcon_" + "A" * 43), ("token of another", token))
    }
    times: dict[str, list[float]] = {name: [] for name in kinds}
    with ours(world) as (port, _), socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for turn in range(count + 200):
            name = random.choice(list(kinds))
            start = time.perf_counter()
            connection.sendall(kinds[name])
            answer = b""
            while not answer.endswith(b"}"):
                answer += connection.recv(65536)
            took = time.perf_counter() - start
            assert answer.startswith(b"HTTP/1.1 401"), answer[:200]
            if turn >= 200:
                times[name].append(took)
    for name, each in times.items():
        low, middle, high = statistics.quantiles(each, n=4)
        print(
            f"{name:26} median {1e6 * middle:7.1f} us, quartiles {1e6 * low:7.1f} and {1e6 * high:7.1f}, {len(each)} requests"
        )
    alike = True
    for token_kind in ("wrong token", "token of another"):
        found = mannwhitneyu(times[f"a node, {token_kind}"], times[f"nobody, {token_kind}"])
        alike = alike and bool(found.pvalue > 0.001)
        print(f"a node against nobody, {token_kind}: p = {found.pvalue:.3f} (Mann-Whitney)")
    return alike


def _resident(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> int:
    """Run one of the two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steady", type=float, metavar="SECONDS")
    parser.add_argument("--refusals", type=int, metavar="REQUESTS")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        world = make_world(Path(folder))
        if options.refusals is not None:
            return 0 if refusals(world, options.refusals) else 1
        if options.steady is not None:
            return 0 if steady(world, options.steady) else 1
        return 0 if compare(world, options.turns, options.seconds) else 1


if __name__ == "__main__":
    sys.exit(main())
