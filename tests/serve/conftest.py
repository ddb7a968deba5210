"""A private graph, models that were trained on it, and their service: in this process, or as `gcon serve`."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from gcon import GCON, NodeClassifier
from gcon.edges.edge_list import private_edges
from gcon.edges.graph import private_graph
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.files.write_files import write_edges, write_nodes
from gcon.privacy.gates import OwnerAnswers
from gcon.privacy.ledger import MemoryLedger
from gcon.release.store import save_release
from gcon.serve.access_log import AccessLog
from gcon.serve.app import application
from gcon.serve.logs import Log
from gcon.serve.served_release import NodeTable, read_served_release
from gcon.serve.settings import Limits
from gcon.serve.state import Service
from gcon.serve.tokens import TokenStore

NODES = 80
WITHOUT_RATES = ("--per-address", 1e9, "--per-token", 1e9, "--burst", 10**6)
WIDE = Limits(per_address=1e9, per_token=1e9, burst=10**6)


@dataclass(frozen=True)
class World:
    """Files of a graph and of three releases; node 17 is called n17."""

    place: Path
    nodes: object
    edge_index: torch.Tensor
    tokens: dict

    @property
    def ids(self):
        return [f"n{row}" for row in range(NODES)]

    def table(self):
        rows = {name: row for row, name in enumerate(self.ids)}
        return NodeTable(rows=rows, features=self.nodes.features, nodes=self.nodes)


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    place = tmp_path_factory.mktemp("service")
    nodes, edge_index = social_circles_parts(NODES, num_classes=3, mean_degree=8, per_class=8, seed=4)
    graph = private_graph(nodes, edge_index, name="people")
    ids = [f"n{row}" for row in range(NODES)]
    write_nodes(place / "nodes.csv", nodes, ids=ids)
    write_edges(place / "edges.csv", edge_index, num_nodes=NODES, ids=ids)
    # Owners are answered from their edges, whatever a noisy count said of that: at exact counts, or by what neighbours say.
    default = NodeClassifier(8.0).fit(graph).model_
    default = replace(default, own_edges=True, homophily=0.8)
    assert default.counts is not None
    save_release(default, place / "moments")
    save_release(replace(default, cached=None, counts=None, tables=(), gain=0.0), place / "evidence")
    save_release(GCON(4.0, hidden=6, epochs=20).fit(graph).model_, place / "paper")
    tokens = dict(TokenStore(place / "tokens.sqlite", new=True).issue(ids, days=2))
    return World(place, nodes, edge_index, tokens)


def make_service(world, folder, *, kind="moments", edge_index=None, limits=WIDE, held_edges=True):
    """A service in this process; its access log is in the folder."""
    log = AccessLog(folder / "access.log")
    owners = None
    if held_edges:
        edges, _ = private_edges(world.edge_index if edge_index is None else edge_index, NODES)
        owners = OwnerAnswers(edges, ledger=MemoryLedger(), log=log, purpose="a test answers node owners")
    held, seen = read_served_release(world.place / kind, table=world.table(), owners=owners)
    tokens = world.place / "tokens.sqlite" if held_edges else None
    return Service(
        held=held,
        folder=world.place / kind,
        seen=seen,
        limits=limits,
        tokens=tokens,
        access_log=log,
        log=Log(requests=False),
    )


class Caller:
    """Requests to an application in this process, byte for byte."""

    def __init__(self, service):
        self.application = application(service)

    def __call__(self, method, path, body=b"", *, headers=(), address="10.0.0.1", declared=b"true"):
        """Status, headers and body. `declared` is another content-length, or None for none; a body of None is never sent."""
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        length = str(len(content or b"")).encode() if declared == b"true" else declared
        sent = [(b"content-type", b"application/json")]
        sent += [] if length is None else [(b"content-length", length)]
        sent += [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "scheme": "http",
            "headers": sent,
            "client": (address, 1),
            "server": ("test", 80),
        }
        parts = iter([{"type": "http.request", "body": content, "more_body": False}])
        got = []

        async def receive():
            assert content is not None, "the body was asked for"
            return next(parts, {"type": "http.disconnect"})

        async def send(message):
            got.append(message)

        asyncio.run(self.application(scope, receive, send))
        return got[0]["status"], dict(got[0]["headers"]), b"".join(part.get("body", b"") for part in got[1:])

    def me(self, node, token):
        """The owner of a node asks."""
        return self("POST", "/me", {"node": node}, headers=[("authorization", f"Bearer {token}")])


@pytest.fixture(params=["moments", "evidence", "paper"])
def both(request, world, tmp_path):
    """A service of either kind of model, and how to ask it."""
    service = make_service(world, tmp_path, kind=request.param)
    return service, Caller(service)


@pytest.fixture
def service(world, tmp_path):
    return make_service(world, tmp_path)


@pytest.fixture
def call(service):
    return Caller(service)


@dataclass
class Running:
    """`gcon serve` in a process of its own."""

    process: subprocess.Popen
    address: str
    access_log: Path
    errors: Path

    @property
    def workers(self):
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(child) for child in children]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextmanager
def running(
    world, folder, *more, kind="moments", edges=None, wait=True, rates=WITHOUT_RATES, errors=None, **environment
):
    """Start it on a free port and wait until it listens; ended in the end."""
    tokens, log = world.place / "tokens.sqlite", folder / "access.log"
    command = [sys.executable, "-m", "gcon.cli.app", "serve", world.place / kind if isinstance(kind, str) else kind]
    command += ["--nodes", world.place / "nodes.csv", "--edges", edges or world.place / "edges.csv", "--tokens", tokens]
    command += ["--ledger", folder / "ledger", "--access-log", log, "--port", 0, "--json", *more]
    command += rates
    with (folder / "errors").open("w") as file:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdout=subprocess.PIPE,
            stderr=file if errors is None else errors,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1", "XDG_STATE_HOME": str(folder / "state")} | environment,
        )
    try:
        lines = iter(process.stdout.readline, "")
        said = "".join(iter(lambda: next(lines, "}\n"), "}\n")) + "}" if wait else ""
        yield Running(process, json.loads(said)["address"] if wait else "", log, folder / "errors")
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
        process.stdout.close()
