"""Short questions that are there to their end are answered in one write, with the bytes that all others get."""

import asyncio
import json
import os
import re
from datetime import UTC, datetime

import pytest
import uvicorn
from tests.serve.conftest import make_service
from uvicorn.server import ServerState

from gcon.serve.access_log import AccessLog
from gcon.serve.app import application
from gcon.serve.guard import caller
from gcon.serve.logs import Log, timestamp
from gcon.serve.protocol import BoundedProtocol
from gcon.serve.settings import Limits


class Wire(asyncio.Transport):
    """A connection of which we keep what is said."""

    def __init__(self):
        super().__init__({"peername": ("10.0.0.1", 5), "sockname": ("10.0.0.2", 80)})
        self.said, self.closed = [], False

    def write(self, data):
        self.said.append(bytes(data))

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True

    def can_write_eof(self):
        return False

    def get_write_buffer_size(self):
        return 0

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass

    def abort(self):
        self.closed = True


def said_to(service, *pieces, proxies=""):
    """Everything that is written to one connection, write by write, and whether it is closed."""

    async def talk():
        wire = Wire()
        protocol = BoundedProtocol(config, ServerState(), {}, asyncio.get_running_loop())
        protocol.connection_made(wire)
        for piece in pieces:
            protocol.data_received(piece)
            for _ in range(5):
                await asyncio.sleep(0)
        closed = wire.closed
        protocol.connection_lost(None)
        return wire.said, closed

    config = uvicorn.Config(
        application(service),
        http=BoundedProtocol,
        access_log=False,
        log_level="critical",
        ws="none",
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies or None,
    )
    config.load()
    return asyncio.run(talk())


def post(path, body, *lines):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = ("host: x", f"content-length: {len(content)}", *lines)
    return (f"POST {path} HTTP/1.1\r\n" + "".join(f"{line}\r\n" for line in lines) + "\r\n").encode() + content


ASK = {"me": {"id": "n1"}, "neighbours": [{"id": "n2"}, {"id": "n5"}]}


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (post("/predict", ASK), 200),
        (post("/predict", ASK, "connection: close"), 200),
        (post("/predict", ASK).replace(b"HTTP/1.1", b"HTTP/1.0"), 200),
        (post("/predict", {"me": {"id": "nobody"}}), 422),
        (post("/predict", b"{"), 422),
        (post("/predict", b""), 422),
        (post("/me", {"node": "n1"}, "authorization: Bearer gcon_x"), 401),
        (post("/me", {"node": "n" * 5000}), 413),
        (post("/nowhere", {}), 404),
    ],
    ids=["ids", "close", "HTTP/1.0", "nobody", "half", "empty", "refused", "too large", "nowhere"],
)
def test_the_bytes_are_those_of_a_request_in_pieces(service, request_bytes, status):
    """In pieces it goes the way of long requests, through uvicorn's messages."""
    at_once, closed = said_to(service, request_bytes)
    in_pieces, closed_too = said_to(service, request_bytes[:-1], request_bytes[-1:])
    assert b"".join(at_once) == b"".join(in_pieces)
    assert at_once[0].startswith(b"HTTP/1.1 %d " % status)
    assert closed == closed_too == (b"connection: close" in at_once[0])
    assert b"x-frame-options: DENY\r\n" in at_once[0]
    if status not in (404, 413):
        assert len(at_once) == 1
        length = int(at_once[0].split(b"content-length: ")[1].split(b"\r\n")[0])
        assert length == len(at_once[0].partition(b"\r\n\r\n")[2])


def test_an_owner_is_answered_and_written_down_once(world, service, tmp_path):
    request = post("/me", {"node": "n1"}, f"authorization: Bearer {world.tokens['n1']}")
    (at_once,), _ = said_to(service, request)
    assert at_once.startswith(b"HTTP/1.1 200")
    assert (tmp_path / "access.log").read_text().count("\n") == 1
    assert b"".join(said_to(service, request[:-1], request[-1:])[0]) == at_once
    assert (tmp_path / "access.log").read_text().count("\n") == 2


def test_rates_hold_at_once_too(world, tmp_path):
    """Also behind a proxy, whose word about the address counts; what is refused is the same in pieces."""
    limits = Limits(per_address=1e-3, burst=3)
    request = post("/predict", ASK)
    said, closed = said_to(make_service(world, tmp_path, limits=limits), *[request] * 5)
    assert [each[9:12] for each in said] == [b"200"] * 3 + [b"429"] * 2
    assert not closed
    halves = [part for _ in range(5) for part in (request[:-1], request[-1:])]
    in_pieces, _ = said_to(make_service(world, tmp_path, limits=limits), *halves)
    seconds = rb"retry-after: \d+"  # the clock goes on
    assert re.sub(seconds, b"", b"".join(in_pieces)) == re.sub(seconds, b"", b"".join(said))
    others = [post("/predict", ASK, f"x-forwarded-for: 10.1.1.{each}") for each in (1, 1, 1, 1, 2)]
    said, _ = said_to(make_service(world, tmp_path, limits=limits), *others, proxies="10.0.0.1")
    assert [each[9:12] for each in said] == [b"200"] * 3 + [b"429", b"200"]


def test_a_length_with_zeros_in_front_hides_nothing(world, tmp_path):
    """The limits are those of what comes, at once as in pieces, whatever the header says."""

    def padded(path, content):
        return f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {'0' * 20}{len(content)}\r\n\r\n".encode() + content

    limits = Limits(per_address=1e-3, burst=3)
    for request, status in (
        (padded("/me", json.dumps({"node": "n" * 8000}).encode()), b"413"),
        (padded("/predict", json.dumps(ASK).encode() + b" " * 200_000), b"429"),
    ):
        for pieces in ([request], [request[:-1], request[-1:]]):
            said, _ = said_to(make_service(world, tmp_path, limits=limits), *pieces)
            assert said[0][9:12] == status


def test_several_at_once_are_answered_in_turn(service):
    """Two requests in one piece: the first does not take the body of the second."""
    both, _ = said_to(service, post("/predict", ASK) + post("/predict", {"me": {"id": "n7"}}))
    one, _ = said_to(service, post("/predict", ASK))
    other, _ = said_to(service, post("/predict", {"me": {"id": "n7"}}))
    assert one != other
    assert b"".join(both) == one[0] + other[0]


def test_who_asks_whether_to_go_on_is_told(service):
    said, _ = said_to(service, post("/predict", ASK, "expect: 100-continue"))
    assert said[0].startswith(b"HTTP/1.1 100")
    assert b"".join(said[1:]) == said_to(service, post("/predict", ASK))[0][0]


def test_a_failure_that_nobody_foresaw_is_withheld(service, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("n1 and n2")

    service.log = Log()
    seen = []
    monkeypatch.setattr(service.log, "_write", seen.append)
    monkeypatch.setattr("gcon.serve.answers._predict", fail)
    request = post("/predict", ASK)
    (said,), _ = said_to(service, request)
    assert said.startswith(b"HTTP/1.1 500")
    assert b"n2" not in said
    assert b"".join(said_to(service, request[:-1], request[-1:])[0]) == said
    events = [json.loads(line) for line in seen]
    assert [event["event"] for event in events] == ["failure", "request"] * 2
    assert events[0]["kind"] == "ZeroDivisionError"
    assert events[1]["status"] == 500


@pytest.mark.parametrize("moment", [0, 999_999_999, 1_700_000_000_000_000_001, 1_794_847_499_999_999_999])
def test_the_time_is_written_as_the_library_writes_it(monkeypatch, moment):
    monkeypatch.setattr("gcon.serve.logs.time.time_ns", lambda: moment)
    milliseconds = datetime.fromtimestamp(moment // 10**9, UTC).replace(microsecond=moment % 10**9 // 10**6 * 1000)
    assert timestamp() == milliseconds.isoformat(timespec="milliseconds")


def test_lines_are_written_as_the_library_writes_them(tmp_path, monkeypatch):
    seen, log = [], Log()
    monkeypatch.setattr(log, "_write", seen.append)
    for seconds in (None, 0.0, 0.00123, 12.5, 1e-9):
        log.request("/card", 200, seconds)
    for owner in ("n1", 'a "quoted" \\ one', "ä\u2028\ud800", "\n"):
        access = AccessLog(tmp_path / "log")
        access.record(owner)
        seen.append((tmp_path / "log").read_bytes())
        assert json.loads(seen[-1])["node"] == owner
        os.truncate(tmp_path / "log", 0)
    assert seen == [json.dumps(json.loads(line)).encode() + b"\n" for line in seen]


def test_long_addresses_are_told_apart_as_short_ones_are():
    for address, owner in (("10.0.0.1", "10.0.0.1"), ("2001:db8::1", "2001:db8::/64"), ("::ffff:10.0.0.1", "10.0.0.1")):
        assert caller(address) == caller(f"{address}%{'x' * 200}") == owner
    assert caller("y" * 200) == "y" * 200
