"""People who mean harm: what they send is counted, paid for and cut off, and others are answered all the same."""

import http.client
import json
import socket
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.serve.conftest import Caller, make_service, running

from gcon.errors import InputError
from gcon.serve.limits import UNIT
from gcon.serve.questions import MOST_NUMBERS, Shape, question
from gcon.serve.settings import Limits

pytestmark = pytest.mark.slow

HEAD = b"POST /predict HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
QUESTION = b'{"me":{"id":"n1"}}'


@pytest.fixture(scope="module")
def up(world, tmp_path_factory):
    """A service whose connections may be idle for a second."""
    with running(world, tmp_path_factory.mktemp("attacked"), "--idle-seconds", 1) as service:
        yield service


def connected(service):
    place = urlsplit(service.address)
    return socket.create_connection((place.hostname, place.port), timeout=20)


def until_closed(connection):
    """All that comes until the other side closes."""
    got = b""
    try:
        while part := connection.recv(65536):
            got += part
    except ConnectionError:
        pass
    return got


def sent(connection, content):
    """Send as much as is taken."""
    try:
        connection.sendall(content)
    except (ConnectionError, TimeoutError):
        return False
    return True


def resident(process):
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * 4096


@pytest.mark.slow
def test_trailers_are_counted(up):
    """Twenty megabytes of them cost a worker 430 MB once."""
    with connected(up) as connection:  # what a first request needs is not what is measured
        connection.sendall(HEAD + b"content-length: %d\r\n\r\n%s" % (len(QUESTION), QUESTION))
        connection.recv(65536)
    before = resident(up.workers[0])
    with connected(up) as connection:
        connection.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n" % (len(QUESTION), QUESTION))
        taken = all(sent(connection, b"a:b\r\n" * 13_000) for _ in range(60))
        got = until_closed(connection)
    assert not taken or got.startswith(b"HTTP/1.1 400")
    assert resident(up.workers[0]) - before < 8 * 2**20
    with connected(up) as connection:  # a few are no crime, and no headers
        trailers = b"authorization: Bearer x\r\nx: y\r\n\r\n"
        connection.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n" % (len(QUESTION), QUESTION))
        connection.sendall(trailers)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("line", [b"1\r\nx\r\n", b"a:\r\n"], ids=["tiny chunks", "tiny headers"])
def test_tiny_pieces_are_counted(up, line):
    head = HEAD + (b"transfer-encoding: chunked\r\n\r\n" if line.startswith(b"1") else b"")
    with connected(up) as connection:
        connection.sendall(head)
        sent(connection, line * 12_000)
        got = until_closed(connection)
    assert got.startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    ("head", "body", "status"),
    [
        (b"content-length: 9999999\r\n", b" " * 5_000_000, 413),
        (b"transfer-encoding: chunked\r\n", b"10000\r\n" + b" " * 65_536 + b"\r\n", 413),
        (b"content-length: 4000000\r\n", b'{"me":{"id":"n1"},"neighbours":[' + b"[[]]," * 30_000, 422),
        (b"transfer-encoding: chunked\r\n", b"10000\r\n" + b"[" * 65_536 + b"\r\n", 422),
    ],
    ids=["declared", "chunked", "shape", "shape in chunks"],
)
def test_who_is_refused_before_the_end_is_cut_off_with_the_reason(up, head, body, status):
    with connected(up) as connection:
        connection.sendall(HEAD + head + b"\r\n")
        sent(connection, body * (80 if status == 413 and b"chunked" in head else 1))
        got = until_closed(connection)
    assert got.startswith(b"HTTP/1.1 %d" % status)
    assert b"connection: close" in got


@pytest.mark.slow
def test_who_is_too_slow_is_cut_off(world, tmp_path):
    with running(world, tmp_path, "--seconds", 0.3) as service, connected(service) as connection:
        connection.sendall(HEAD + b"content-length: 100\r\n\r\n{")
        got = until_closed(connection)
    assert got.startswith(b"HTTP/1.1 503")
    assert b"connection: close" in got


@pytest.mark.parametrize("said", [b"", b"GET /health HT", b"\r\n"], ids=["nothing", "half a head", "empty lines"])
def test_idle_connections_end(up, said):
    with connected(up) as connection:
        start = time.monotonic()
        while time.monotonic() - start < 15 and sent(connection, said):
            connection.settimeout(0.2)
            try:
                if connection.recv(1) == b"":
                    break
            except TimeoutError:
                said = said[-2:] if said == b"\r\n" else b""
            except ConnectionError:
                break
    assert 0.5 < time.monotonic() - start < 10


def test_a_kept_connection_is_kept_after_small_refusals(up):
    connection = http.client.HTTPConnection(urlsplit(up.address).netloc, timeout=20)
    for body, status in ((b"{", 422), (b'{"me":{"id":"n1"}}', 200), (b"[]", 422), (b'{"me":{"id":"n2"}}', 200)):
        connection.request("POST", "/predict", body)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status
        first = connection.sock
        assert first is not None  # http.client forgets the socket of a connection that was closed
    connection.close()


def test_a_long_body_costs_as_much_as_many_requests(world, tmp_path):
    call = Caller(make_service(world, tmp_path, limits=Limits(per_address=60, burst=10)))
    long = json.dumps({"me": {"id": "n1"}}).encode().ljust(20 * UNIT)
    assert call("POST", "/predict", long)[0] == 200  # whoever has asked nothing may ask much once
    status, headers, _ = call("GET", "/health")
    assert status == 429
    assert 10 <= int(headers[b"retry-after"]) <= 14
    assert call("POST", "/predict", long, address="10.0.0.2")[0] == 200
    assert call("GET", "/health", address="10.0.0.3")[0] == 200
    assert call("POST", "/predict", None, address="10.0.0.3", declared=str(20 * UNIT).encode())[0] == 429


def test_what_does_not_say_its_length_pays_while_it_is_read(world, tmp_path):
    call = Caller(make_service(world, tmp_path, limits=Limits(per_address=60, burst=10)))
    chunked = [("transfer-encoding", "chunked")]
    long = json.dumps({"me": {"id": "n1"}}).encode()
    assert call("POST", "/predict", long, headers=chunked, declared=None)[0] == 200
    assert call("POST", "/predict", long.ljust(12 * UNIT), headers=chunked, declared=None)[0] == 429


def test_the_same_for_a_service_that_other_sites_may_ask(world, tmp_path):
    """There the application reads bodies, not the guard."""
    service = make_service(world, tmp_path, limits=Limits(per_address=60, burst=10))
    service.origin = "https://pages.example"
    call, chunked = Caller(service), [("transfer-encoding", "chunked")]
    assert call("POST", "/predict", QUESTION)[0] == 200
    status, headers, body = call("POST", "/predict", QUESTION.ljust(12 * UNIT), headers=chunked, declared=None)
    assert (status, json.loads(body)["error"]) == (429, "too many requests")
    assert int(headers[b"retry-after"]) >= 1


@pytest.mark.parametrize(
    "body",
    [
        b'{"me": {"id": "n1"}, "neighbours": [' + b"[[]]," * 780_000 + b"0]}",
        b'{"me": {"id": "n1"}, "neighbours": ' + b"[" * 3_900_000,
        b'{"me": {"features": [' + b"0," * 1_900_000 + b"0]}}",
        b'{"me": {"id": "n1"}, "neighbours": [' + b'{"id":""},' * 380_000 + b'{"id":""}]}',
    ],
    ids=["lists in lists", "deep", "numbers", "people"],
)
def test_what_no_question_can_be_is_refused_in_no_time(call, body):
    """Four megabytes of nested lists took two seconds once."""
    took = []
    for _ in range(3):
        start = time.process_time()
        status, _, _ = call("POST", "/predict", body)
        took.append(time.process_time() - start)
        assert status == 422
    assert min(took) < 0.03


def test_a_question_holds_at_most_so_many_numbers():
    """Each of its people is right; but numbers of two bytes would fill a body with two millions, and others wait for them."""
    person, shape = b'{"features":[' + b"0," * 499 + b"0]}", Shape(most_neighbours=10_000, features=500)
    people = MOST_NUMBERS // 500
    fit, more = (
        b'{"me":{"id":"n1"},"neighbours":[' + b",".join([person] * number) + b"]}"
        for number in (people - 1, people + 2)
    )
    assert len(question(fit, shape).neighbours) == people - 1
    with pytest.raises(InputError, match="at most 262,144 in one question"):
        question(more, shape)


def test_long_questions_do_not_hold_up_others(world, service, call, monkeypatch):
    """The loop goes on while a long one is worked on."""
    threads = []
    monkeypatch.setattr(service.held, "from_rows", lambda rows: threads.append(threading.current_thread()) or 1 / 0)
    people = [{"id": f"n{row}"} for row in range(2)]
    call("POST", "/predict", {"me": people[0], "neighbours": people[1:]})
    call("POST", "/predict", json.dumps({"me": people[0], "neighbours": people[1:]}).encode().ljust(100_000))
    assert threads[0] is threading.main_thread()
    assert threads[1] is not threading.main_thread()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/predict", b'{"me": {"id": "n1"}, "me": {"id": "n2"}}'),
        ("/predict", b'{"me": {"id": "n1", "id": "n1"}}'),
        ("/predict", b'{"me": {"id": "n1"}, "access": "none", "access": "own-edges"}'),
        ("/predict", b'{"me": {"id": "n1"}, "neighbours": [{"id": "a:b", "id": "n2"}]}'),
        ("/predict", b'{"me": {"id": "n:\\u003a", "id": "n\\u003a"}}'),
        ("/me", b'{"node": "n1", "node": "n2"}'),
    ],
)
def test_a_key_twice_is_refused(call, path, body):
    status, _, said = call("POST", path, body)
    assert (status, "once" in json.loads(said)["message"]) == (422, True)


def test_colons_in_ids_are_no_keys(call):
    status, _, said = call("POST", "/predict", {"me": {"id": "urn:x:1"}, "neighbours": [{"id": "a:b"}]})
    assert (status, "node table" in json.loads(said)["message"]) == (422, True)


@pytest.mark.parametrize("path", ["/me/", "/predict/", "/health/"])
def test_nobody_is_sent_elsewhere(call, path):
    status, headers, _ = call("POST", path, {"node": "n1"}, headers=[("host", "evil.example")])
    assert status == 404
    assert b"location" not in headers


def test_bodies_are_described_by_name(call):
    """Programs that write clients leave out what has no name."""
    schema = json.loads(call("GET", "/openapi.json")[2])
    for path, name in (("/predict", "Question"), ("/me", "Owner")):
        content = schema["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        assert content == {"schema": {"$ref": f"#/components/schemas/{name}"}}
    text, parts = json.dumps(schema), schema["components"]["schemas"]
    named = {part.split('"')[0] for part in text.split('"$ref": "#/components/schemas/')[1:]}
    assert {"Question", "ById", "ByFeatures", "Owner", "Answer", "Problem"} <= named <= set(parts)
    assert text.count("$ref") == text.count("#/components/schemas/")
