"""The client and the service as people run it."""

import json
import socket
from urllib.parse import urlsplit

import numpy as np
import pytest

from gcon.edges.edge_list import public_edges
from gcon.errors import InputError
from gcon.methods.no_edges import predict_without_edges
from gcon.release.layout import texts
from gcon.release.read import load_release
from gcon.serve.client import Client, RefusedError, ServiceError


@pytest.fixture
def client(up, world):
    with Client(up.address, token=world.tokens["n3"]) as client:
        yield client


def test_an_owner_gets_her_answer_and_nobody_elses(client, world, up):
    mine = client.me("n3")
    assert (mine.access, mine.audience) == ("own-edges", "owner only")
    assert mine.label == max(mine.probabilities, key=mine.probabilities.get)
    assert "No edge between other people was read" in mine.used
    neighbours = [f"n{row}" for row in public_edges(world.edge_index, len(world.tokens)).neighbours(3).tolist()]
    assert client.predict("n3", neighbours).probabilities == mine.probabilities
    assert client.predict("n3").probabilities != mine.probabilities  # the line above can see a difference
    with pytest.raises(RefusedError) as refused:
        client.me("n4")
    assert refused.value.status == 401
    assert world.tokens["n3"] not in repr(refused.value) + str(refused.value)
    assert json.loads(up.access_log.read_text().splitlines()[-1])["node"] == "n3"


def test_people_as_ids_lists_arrays_and_tensors(client, world):
    features = world.nodes.features
    forms = [features[0], features[0].numpy(), features[0].tolist(), features[0].numpy().astype(np.float64)]
    answers = [client.predict(form, features[1:4]) for form in forms]
    assert all(answer == answers[0] for answer in answers)
    assert client.predict(features[0], [features[1].tolist(), "n2", features[3].numpy()]).audience == "owner only"
    expected = predict_without_edges(load_release(world.place / "moments"), features)
    alone = client.predict("n0", access="none")
    assert alone.audience == "public"
    assert list(alone.probabilities.values()) == pytest.approx(expected.probabilities[0].tolist(), abs=1e-12)


def test_facts(client, world):
    health = client.health()
    assert (health.status, health.me, health.node_table, health.access) == ("ok", True, True, ("own-edges", "none"))
    assert client.predict("n0").release == health.release
    assert client.statement()["epsilon"] == 1.0
    assert "one edge" in " ".join(client.statement()["sentences"])
    assert client.card() == texts(load_release(world.place / "moments"))["README.md"].decode()


def test_what_breaks_a_rule_is_told_in_the_words_of_the_service(client):
    with pytest.raises(InputError, match=r"must be in the service's node table; got 'nobody'\. [^.]+\. Its"):
        client.predict("nobody")
    with pytest.raises(InputError, match="one twice"):
        client.predict("n1", ["n2", "n2"])
    with pytest.raises(InputError, match="features"):
        client.predict([1.0, 2.0])
    assert client.predict("n1").label  # on the same connection


def test_a_connection_is_kept_and_opened_again_when_it_was_closed(client):
    client.health()
    first = client._connection._kept.sock
    client.health()
    assert client._connection._kept.sock is first
    first.shutdown(socket.SHUT_RDWR)  # as if the service had closed it
    assert client.health().status == "ok"
    assert client._connection._kept.sock is not first
    client.close()
    assert client.health().status == "ok"


def test_nobody_is_there(up):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}") as client, pytest.raises(ServiceError, match="cannot be reached") as error:
        client.health()
    assert error.value.status is None
    with Client(up.address + "/elsewhere") as client, pytest.raises(ServiceError, match="not found") as error:
        client.health()
    assert error.value.status == 404
    with Client(f"https://{urlsplit(up.address).netloc}") as client, pytest.raises(ServiceError):
        client.health()
