"""A running service, and a server that says whatever a test wants it to say."""

import json
import socket
import ssl
import threading

import pytest
import torch
from tests.pages.site import models
from tests.serve.conftest import World, running

from gcon.files.tables import read_nodes
from gcon.files.write_files import write_edges, write_nodes
from gcon.release.store import save_release
from gcon.serve.tokens import TokenStore

TOKEN = "gcon_" + "Zx9-_" * 8 + "abc"


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """What a service needs, with a model that was made by hand: nobody has to wait for a training."""
    place, count = tmp_path_factory.mktemp("service"), 90
    ids = [f"n{row}" for row in range(count)]
    edge_index = torch.tensor([[row, (row * factor + 1) % count] for row in range(count) for factor in (2, 3)]).T
    write_nodes(place / "nodes.csv", models.nodes(count=count), ids=ids)
    write_edges(place / "edges.csv", edge_index, num_nodes=count, ids=ids)
    save_release(models.moments(), place / "moments")
    tokens = dict(TokenStore(place / "tokens.sqlite", new=True).issue(ids, days=2))
    return World(place, read_nodes(place / "nodes.csv").nodes, edge_index, tokens)


@pytest.fixture(scope="session")
def up(world, tmp_path_factory):
    """`gcon serve` with edges, tokens and a node table."""
    with running(world, tmp_path_factory.mktemp("client")) as service:
        yield service


def reply(body, status="200 OK", *headers):
    """The bytes of a response that is right as HTTP."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = [f"HTTP/1.1 {status}", f"content-length: {len(content)}", *headers]
    return "\r\n".join([*head, "", ""]).encode() + content


class Stub:
    """Says one reply after the other, whatever is asked. None closes the connection; what was asked is kept."""

    def __init__(self, *replies, certificate=None):
        self.replies, self.asked, self.connections = list(replies), [], 0
        self.context = None
        if certificate is not None:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(certificate)
        self.listener = socket.create_server(("127.0.0.1", 0))
        scheme = "http" if certificate is None else "https"
        self.address = f"{scheme}://127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.replies.clear()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join(5)
        self.listener.close()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            try:
                with (
                    connection
                    if self.context is None
                    else self.context.wrap_socket(connection, server_side=True) as kept
                ):
                    kept.settimeout(5)
                    self.answer(kept)
            except OSError:  # the client went away: some tests want that
                pass

    def answer(self, connection):
        while self.replies:
            asked = b""
            while b"\r\n\r\n" not in asked:
                part = connection.recv(65_536)
                if not part:
                    return
                asked += part
            head, _, body = asked.partition(b"\r\n\r\n")
            length = next(
                (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
            )
            while len(body) < length:
                body += connection.recv(65_536)
            self.asked.append((head.decode(), body))
            said = self.replies.pop(0)
            if said is None:
                return
            connection.sendall(said)
            if self.replies and self.replies[0] is None:
                self.replies.pop(0)
                return
