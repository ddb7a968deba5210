"""Answers that are not what was agreed are refused, whatever they are; and the token is never told."""

import datetime
import http.client
import ipaddress
import pickle
import traceback
from contextlib import contextmanager

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.serve.client.conftest import TOKEN, Stub, reply

from gcon.errors import InputError
from gcon.serve.client import Client, RefusedError, ServiceError, TooManyRequestsError
from gcon.serve.client import connection as connections

ANSWER = {
    "label": "red",
    "probabilities": {"red": 0.75, "blue": 0.25},
    "access": "own-edges",
    "audience": "owner only",
    "used": "your edges",
    "promise": "a promise",
    "release": "0123456789abcdef",
}
HEALTH = {"status": "ok", "release": "0" * 16, "me": True, "node_table": False, "access": ["none"]}
PROBLEM = {"error": "busy", "message": "Come back."}


@contextmanager
def asking(stub, kind):
    """An owner's client, and the error that its question must end with."""
    with Client(stub.address, token=TOKEN) as client, pytest.raises(kind) as error:
        yield client, error


def test_the_right_answer_is_taken():
    """So that the tests below can fail."""
    said = [reply(ANSWER), reply(HEALTH), reply({"epsilon": "inf", "sentences": []}), reply("# Café".encode())]
    with Stub(*said) as stub, Client(stub.address, token=TOKEN) as client:
        assert vars(client.me("ann")) == ANSWER
        assert client.health().access == ("none",)
        assert client.statement()["epsilon"] == "inf"
        assert client.card() == "# Café"
    assert stub.connections == 1
    assert f"Bearer {TOKEN}" in stub.asked[0][0]
    assert all(TOKEN not in head for head, _ in stub.asked[1:])  # sent where it is needed only


WRONG = {
    "no JSON": b"<html>",
    "no object": [ANSWER],
    "half": b'{"label": "red"',
    "nested": b"[" * 10**6,
    "not UTF-8": b'{"label": "\xff"}',
    "a number that is none": b'{"label": NaN}',
    "a name twice": b'{"label": "red", "label": "red"}',
    "a field less": {name: ANSWER[name] for name in list(ANSWER)[1:]},
    "a field more": ANSWER | {"more": 1},
    "a label that is no class": ANSWER | {"label": "green"},
    "a label that is no word": ANSWER | {"label": 1},
    "probabilities in a list": ANSWER | {"probabilities": [0.75, 0.25]},
    "a negative probability": ANSWER | {"probabilities": {"red": 1.25, "blue": -0.25}},
    "a sum that is not 1": ANSWER | {"probabilities": {"red": 0.7, "blue": 0.7}},
    "words for numbers": ANSWER | {"probabilities": {"red": "0.75", "blue": 0.25}},
    "truth for numbers": ANSWER | {"probabilities": {"red": True, "blue": 0}},
    "another access": ANSWER | {"access": "none"},
    "another audience": ANSWER | {"audience": "everybody"},
    "no release": ANSWER | {"release": "../../etc"},
    "a release and a new line": ANSWER | {"release": "0123456789abcdef\n"},
    "a list for words": ANSWER | {"used": ["a", "b"]},
}


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG.keys())
def test_wrong_answers(body):
    with (
        Stub(reply(body)) as stub,
        Client(stub.address) as client,
        pytest.raises(ServiceError, match="service's answer"),
    ):
        client.predict("ann")


@pytest.mark.parametrize("change", [{"status": "ill"}, {"me": 1}, {"access": "none"}, {"release": None}, {"more": 1}])
def test_wrong_health(change):
    with Stub(reply(HEALTH | change)) as stub, Client(stub.address) as client, pytest.raises(ServiceError):
        client.health()


@pytest.mark.parametrize(
    "body", [{"epsilon": 1}, {"sentences": []}, {"epsilon": True, "sentences": []}, {"epsilon": -1, "sentences": [""]}]
)
def test_wrong_statements(body):
    with Stub(reply(body)) as stub, Client(stub.address) as client, pytest.raises(ServiceError):
        client.statement()


@pytest.mark.parametrize(
    "said",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 400\r\n\r\n# half a card",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\n# half",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 200,
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000,
        reply(b"# caf\xe9"),
        reply(b"", "302 Found", "location: http://127.0.0.1:1/"),
        reply(b"", "204 No Content"),
    ],
    ids=["not HTTP", "too short", "broken off", "many headers", "a long header", "not UTF-8", "elsewhere", "nothing"],
)
def test_what_is_no_answer(said):
    with Stub(said, None) as stub, Client(stub.address) as client, pytest.raises(ServiceError):
        client.card()


def test_too_many_bytes_are_not_read(monkeypatch):
    assert connections.MOST_BYTES == 2**24
    monkeypatch.setattr(connections, "MOST_BYTES", 1000)
    endless = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 5000
    with Stub(reply(b"x" * 1000), reply(b"x" * 1001), endless, None) as stub, Client(stub.address) as client:
        assert len(client.card()) == 1000
        for _ in range(2):
            with pytest.raises(ServiceError, match="more than 1000 bytes"):
                client.card()
            assert client._connection._kept.sock is None


def test_who_says_nothing_is_not_waited_for():
    said = b"HTTP/1.1 200 OK\r\n"
    with (
        Stub(said, b"") as stub,
        Client(stub.address, timeout=0.1) as client,
        pytest.raises(ServiceError, match="in time"),
    ):
        client.health()


def test_a_closed_connection_is_tried_once_more_and_no_more():
    with Stub(reply(HEALTH), None, reply(HEALTH)) as stub, Client(stub.address) as client:
        assert client.health() == client.health()
        assert (stub.connections, len(stub.asked)) == (2, 2)
    with Stub(reply(HEALTH), None) as stub, Client(stub.address) as client:
        client.health()
        with pytest.raises(ServiceError):
            client.health()
    with Stub(None, reply(HEALTH)) as stub, Client(stub.address) as fresh:
        with pytest.raises(ServiceError, match="RemoteDisconnected"):
            fresh.health()
        assert len(stub.asked) == 1


def test_problems_by_their_status():
    cases = {
        "401 Unauthorized": RefusedError,
        "404 Not Found": ServiceError,
        "413 Too Large": ServiceError,
        "422 Unprocessable": InputError,
        "429 Too Many": ServiceError,  # without Retry-After
        "500 Failed": ServiceError,
        "503 Busy": ServiceError,
    }
    for status, kind in cases.items():
        with (
            Stub(reply(PROBLEM, status)) as stub,
            Client(stub.address) as client,
            pytest.raises(kind, match="Come back") as error,
        ):
            client.predict("ann")
        assert type(error.value) is kind
    with (
        Stub(reply(PROBLEM, "429 Too Many", "retry-after: 7")) as stub,
        asking(stub, TooManyRequestsError) as (client, error),
    ):
        client.health()
    assert (error.value.wait, error.value.status) == (7.0, 429)
    again = pickle.loads(pickle.dumps(error.value))
    assert (type(again), str(again), again.wait, again.status) == (TooManyRequestsError, "Come back.", 7.0, 429)
    for status in ("401 Unauthorized", "502 Bad Gateway", "503 Service Unavailable"):  # by a proxy
        with (
            Stub(reply(b"<h1>no</h1>", status)) as stub,
            asking(stub, ServiceError) as (client, error),
        ):
            client.health()
        assert f"status {status[:3]}" in str(error.value)
        assert type(error.value) is ServiceError


def test_words_of_a_service_cannot_steer_a_terminal_or_repeat_the_token():
    said = {"error": "bad input", "message": f"\x1b[2J{TOKEN} " + "x" * 10_000}
    for status in ("401 No", "404 No", "422 No", "500 No"):
        with Stub(reply(said, status)) as stub, asking(stub, (ServiceError, InputError)) as (client, error):
            client.me("ann")
        told = "".join(traceback.format_exception(error.value)) + repr(error.value)
        assert TOKEN not in told
        assert "\x1b" not in str(error.value)
        assert len(str(error.value)) < 1200


def test_the_token_is_in_no_message(monkeypatch):
    with Client("http://127.0.0.1:1", token=TOKEN) as client:
        assert TOKEN not in repr(client)
        assert "token=..." in repr(client)
        with pytest.raises(ServiceError) as error:
            client.me("ann")
        assert TOKEN not in "".join(traceback.format_exception(error.value))

    def fail(*_):
        raise http.client.HTTPException(f"header Bearer {TOKEN}")

    monkeypatch.setattr(http.client.HTTPConnection, "request", fail)
    with pytest.raises(ServiceError) as error:
        client.me("ann")
    assert TOKEN not in "".join(traceback.format_exception(error.value))
    for wrong in (TOKEN + "\r\nx: y", TOKEN[:-1], " " + TOKEN, "Bearer " + TOKEN, "", TOKEN.encode()):
        with pytest.raises(InputError, match="token") as error:
            Client("https://127.0.0.1", token=wrong)
        assert TOKEN[:-1] not in str(error.value)


@pytest.mark.parametrize(
    "address", ["http://answers.example.org", "http://10.0.0.1:8000", "http://localhost.example.org"]
)
def test_a_token_does_not_travel_in_the_clear(address):
    with pytest.raises(InputError, match="https"):
        Client(address, token=TOKEN)
    Client(address)
    Client(address, token=TOKEN, insecure=True)
    Client(address.replace("http:", "https:"), token=TOKEN)


@pytest.mark.parametrize(
    "address", ["http://localhost:8000", "http://127.0.0.1", "http://127.8.9.1:80", "http://[::1]:8000"]
)
def test_this_machine_may_be_asked_in_the_clear(address):
    Client(address, token=TOKEN)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "127.0.0.1:8000",
        "ftp://a",
        "http://",
        "http://ann:secret@a",
        "http://a?b=secret",
        "http://a#b",
        "http://a:port",
        "http://a:99999",
        "http://[::1",
        "http://a/b c",
        "http://a/b\r\nsecret: x",
        "http://ä",
        None,
        5,
    ],
)
def test_wrong_addresses(address):
    with pytest.raises(InputError, match="address") as error:
        Client(address)
    assert "secret" not in str(error.value)


def test_wrong_questions_are_not_sent():
    with Stub(reply(ANSWER)) as stub, Client(stub.address) as client:
        for arguments, word in (
            ((5,), "me"),
            ((None,), "me"),
            (([1.0, float("nan")],), "me"),
            (([1.0, "2"],), "me"),
            (([True],), "me"),
            (([10**400],), "me"),
            (([[1.0, 2.0]],), "me"),
            (("ann", "bob"), "neighbours"),
            (("ann", [5]), "neighbours"),
            (("ann", ["bob"], "none"), "neighbours"),
            (("ann", [], "cached"), "access.*gcon predict --access cached"),
        ):
            with pytest.raises(InputError, match=word):
                client.predict(*arguments)
        with pytest.raises(InputError, match="token"):
            client.me("ann")
        with pytest.raises(InputError, match="node"):
            Client(stub.address, token=TOKEN).me(5)
    assert stub.asked == []
    for timeout in (0, -1, float("inf"), True, "5"):
        with pytest.raises(InputError, match="timeout"):
            Client("http://127.0.0.1", timeout=timeout)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for this machine that nobody else vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(
            name, name, key.public_key(), x509.random_serial_number(), now, now + datetime.timedelta(days=1)
        )
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "certificate.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return file


def test_certificates_are_checked(certificate, monkeypatch):
    with Stub(reply(ANSWER), certificate=certificate) as stub, asking(stub, ServiceError) as (client, error):
        client.me("ann")
    assert "certificate" in str(error.value)
    assert stub.asked == []
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))  # now somebody vouches for it
    with Stub(reply(ANSWER), certificate=certificate) as stub, Client(stub.address, token=TOKEN) as client:
        assert client.me("ann").label == "red"
    with Stub(reply(ANSWER), certificate=certificate) as stub:
        other_name = stub.address.replace("127.0.0.1", "localhost")
        with Client(other_name, token=TOKEN) as client, pytest.raises(ServiceError, match="certificate"):
            client.me("ann")
    assert stub.asked == []
