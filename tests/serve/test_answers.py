"""Answers are those of the library, whoever sends what; and what a service says about itself."""

import json
import shutil

import pytest
import torch
from tests.serve.conftest import NODES, Caller, make_service

from gcon.edges.edge_list import private_edges, public_edges
from gcon.errors import ReleaseFormatError
from gcon.methods.no_edges import predict_without_edges
from gcon.methods.own_edges import predict_for_one_owner, predict_from_own_edges
from gcon.privacy.ledger import MemoryLedger
from gcon.serve.served_release import read_served_release
from gcon.serve.state import Faces
from gcon.serve.upkeep import Releases


def neighbours_of(world, row):
    return public_edges(world.edge_index, NODES).neighbours(row).tolist()


def check(found, expected, row=0, *, exactly=False):
    """The answer says what the library predicts."""
    status, _, body = found
    answer = json.loads(body)
    assert status == 200, body
    names = [str(name) for name in expected.class_names]
    numbers = torch.tensor([answer["probabilities"][name] for name in names], dtype=torch.float64)
    assert torch.allclose(numbers, expected.probabilities[row].double(), rtol=0, atol=0 if exactly else 1e-9)
    assert answer["label"] == names[int(expected.classes[row])]
    assert answer["access"] == expected.access
    assert answer["promise"] == expected.promise
    assert answer["audience"] == expected.audience
    return answer


def test_an_owner_is_answered_like_everybody_in_a_table(world, both):
    service, call = both
    edges, _ = private_edges(world.edge_index, NODES)
    expected = predict_from_own_edges(service.held.model, world.nodes.features, edges, ledger=MemoryLedger())
    for row in range(NODES):
        answer = check(call.me(f"n{row}", world.tokens[f"n{row}"]), expected, row)
        assert answer["release"] == service.held.release
        assert "access log" in answer["used"]


def test_who_names_her_neighbours_gets_the_bytes_that_the_held_edges_give(world, both):
    _, call = both
    for row in (0, 5, 33):
        people = [{"id": f"n{other}"} for other in reversed(neighbours_of(world, row))]
        sent = json.loads(call("POST", "/predict", {"me": {"id": f"n{row}"}, "neighbours": people})[2])
        held = json.loads(call.me(f"n{row}", world.tokens[f"n{row}"])[2])
        assert sent["probabilities"] == held["probabilities"]
        assert sent["used"] != held["used"]


def test_features_alone_are_enough(world, both):
    service, call = both
    features = world.nodes.features
    for row, others in ((0, [3, 4]), (7, []), (9, [1, 2, 3, 4, 5])):
        people = [{"features": features[each].tolist()} for each in others]
        found = call("POST", "/predict", {"me": {"features": features[row].tolist()}, "neighbours": people})
        check(found, predict_for_one_owner(service.held.model, features[row], features[others]))
    mixed = [{"id": "n3"}, {"features": features[4].tolist()}]
    assert call("POST", "/predict", {"me": {"id": "n0"}, "neighbours": mixed})[0] == 200


def test_without_edges(world, both):
    service, call = both
    expected = predict_without_edges(service.held.model, world.nodes.features)
    for row in (0, 11):
        answer = check(call("POST", "/predict", {"access": "none", "me": {"id": f"n{row}"}}), expected, row)
        assert "No edge was read" in answer["used"]
    stranger = torch.full_like(world.nodes.features[0], 0.25)
    found = call("POST", "/predict", {"access": "none", "me": {"features": stranger.tolist()}})
    check(found, predict_without_edges(service.held.model, stranger[None]))


def test_who_is_described_by_features_is_told_that_her_id_may_say_another_label(world, both):
    service, call = both
    features, knows = world.nodes.features[3].tolist(), "cached" in service.held.model.accesses
    assert knows == (service.held.model.method != "paper")
    for body, said in (
        ({"me": {"id": "n3"}, "neighbours": [{"id": "n4"}]}, False),
        ({"me": {"id": "n3"}, "access": "none"}, False),
        ({"me": {"features": features}}, knows),
        ({"me": {"features": features}, "access": "none"}, knows),
        ({"me": {"id": "n4"}, "neighbours": [{"features": features}]}, knows),
    ):
        assert ("may be another" in json.loads(call("POST", "/predict", body)[2])["used"]) is said
    assert "may be another" not in json.loads(call.me("n3", world.tokens["n3"])[2])["used"]


def test_answers_from_held_edges_have_one_length(world, both):
    _, call = both
    assert len({len(call.me(node, token)[2]) for node, token in world.tokens.items()}) == 1


def test_every_answer_is_logged_before_it_is_given_and_refusals_are_not(world, service, call, tmp_path):
    call.me("n3", world.tokens["n3"])
    call.me("n3", world.tokens["n4"])
    call.me("n5", world.tokens["n5"])
    call("POST", "/predict", {"me": {"id": "n6"}})
    lines = [json.loads(line) for line in (tmp_path / "access.log").read_text().splitlines()]
    assert [line["node"] for line in lines] == ["n3", "n5"]
    assert all(set(line) == {"time", "node"} for line in lines)


def test_what_cannot_be_logged_is_not_answered(world, service, call, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gcon.serve.access_log.os.write", fail)
    status, _, body = call.me("n3", world.tokens["n3"])
    assert (status, json.loads(body)["error"]) == (500, "withheld")
    assert b"probabilities" not in body


def test_a_failure_inside_tells_nothing(world, service, call, monkeypatch):
    monkeypatch.setattr(service.held, "_of_one", lambda row, neighbours: 1 / (len(neighbours) * 0))
    status, _, body = call.me("n3", world.tokens["n3"])
    assert (status, json.loads(body)["error"]) == (500, "withheld")
    assert b"division" not in body
    assert b"may depend on the edges, so it is not told" in body


def test_facts(service, call):
    statement = json.loads(call("GET", "/statement")[2])
    assert statement["epsilon"] == 8.0
    assert statement["sentences"] == list(service.held.model.statement().sentences)
    assert b"# A node classifier" in call("GET", "/card")[2]
    health = json.loads(call("GET", "/health")[2])
    expected = {"status": "ok", "me": True, "node_table": True, "access": ["own-edges", "none"]}
    assert health == {**expected, "release": service.held.release}
    schema = json.loads(call("GET", "/openapi.json")[2])
    assert set(schema["paths"]) == {"/predict", "/me", "/statement", "/card", "/health", "/metrics"}
    for page in ("/", "/index.html", "/ask.html", "/model.html"):
        status, headers, body = call("GET", page)
        assert status == 200
        assert headers[b"content-type"].startswith(b"text/html")
        assert body.startswith(b"<!doctype html>")
    assert headers[b"x-content-type-options"] == b"nosniff"
    assert headers[b"cache-control"] == b"no-store"
    assert b"access-control-allow-origin" not in call("GET", "/health", headers=[("origin", "https://a.example")])[1]


def test_where_edges_are_held_nothing_is_timed(world, service, call):
    """How long anybody waits may depend on the edges of whoever is answered before."""
    for _ in range(3):
        call.me("n3", world.tokens["n3"])
    call("POST", "/predict", {"me": {"id": "n6"}})
    call("GET", "/nowhere/secret")
    page = call("GET", "/metrics")[2].decode()
    assert 'gcon_requests_total{route="/me",status="200"} 3.0' in page
    assert 'gcon_requests_total{route="/predict",status="200"} 1.0' in page
    assert 'gcon_requests_total{route="other",status="404"} 1.0' in page
    assert "seconds_count" not in page
    assert "secret" not in page
    assert "n3" not in page


def test_without_edges_requests_are_timed(world, tmp_path):
    call = Caller(make_service(world, tmp_path, held_edges=False))
    call("POST", "/predict", {"me": {"id": "n6"}})
    assert 'gcon_request_seconds_count{route="/predict"} 1.0' in call("GET", "/metrics")[2].decode()


def test_an_answer_that_fails_was_logged_before(world, service, call, tmp_path, monkeypatch):
    monkeypatch.setattr(service.held, "_of_one", lambda row, neighbours: 1 / 0)
    assert call.me("n3", world.tokens["n3"])[0] == 500
    assert json.loads((tmp_path / "access.log").read_text())["node"] == "n3"


def test_without_held_edges_there_is_no_me(world, tmp_path):
    call = Caller(make_service(world, tmp_path, held_edges=False))
    assert call.me("n3", world.tokens["n3"])[0] == 404
    assert "/me" not in json.loads(call("GET", "/openapi.json")[2])["paths"]
    assert json.loads(call("GET", "/health")[2])["me"] is False
    assert call("POST", "/predict", {"me": {"id": "n3"}})[0] == 200


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"me": {"id": "nobody"}}, "node table"),
        ({"me": {"id": "n1"}, "neighbours": [{"id": "n1"}]}, "different people"),
        ({"me": {"id": "n1"}, "neighbours": [{"id": "n2"}, {"id": "n2"}]}, "different people"),
        ({"me": {"id": "n1"}, "neighbours": [{"id": "n2"}], "access": "none"}, "own-edges"),
        ({"me": {"features": [1.0]}}, "columns"),
        ({"me": {"features": []}}, "columns"),
        ({"me": {"features": [1e300] * 32}}, "finite"),
        ({"me": {"id": "n1"}, "access": "full"}, "access"),
        ({"me": {"id": "n1"}, "extra": 1}, "extra"),
        ({"me": {}}, "me"),
        ({}, "me"),
        ([], "body"),
        ({"me": {"id": "n1"}, "neighbours": {}}, "neighbours"),
        ({"me": {"id": 3}}, "me.id"),
        ({"me": {"id": "n" * 201}}, "200"),
        ({"me": {"id": "n1", "features": []}}, "either"),
        ({"me": {"features": ["1"] * 32}}, "numbers"),
        ({"me": {"features": [True] * 32}}, "numbers"),
        ({"me": {"features": [10**400] * 32}}, "finite"),
        ({"me": {"features": "x"}}, "numbers"),
        (b"{", "json"),
        (b'{"me": {"features": [NaN]}}', "json"),
        (b"[" * 100_000, ""),
        (b"\xff\xfe", ""),
    ],
)
def test_bad_questions_name_the_parameter_and_the_rule(call, body, words):
    status, headers, answer = call("POST", "/predict", body)
    said = json.loads(answer)
    assert status == 422, answer
    assert said["error"] == "bad input"
    assert words.lower() in said["message"].lower()
    assert headers[b"content-type"] == b"application/json"
    assert len(answer) < 1000


def test_a_release_and_its_words_are_exchanged_together(world, service, call, monkeypatch):
    """A new release comes while somebody is being answered: she gets the old one, whole."""
    old, answer = service.held, service.held.from_rows

    def exchanged(rows):
        other, seen = read_served_release(world.place / "paper", table=old.table, owners=old.owners)
        service.take(other, seen)
        return answer(rows)

    monkeypatch.setattr(old, "from_rows", exchanged)
    found = json.loads(call("POST", "/predict", {"me": {"id": "n1"}})[2])
    assert found["release"] == old.release
    assert service.held.release != old.release
    assert json.loads(call("POST", "/predict", {"me": {"id": "n1"}})[2])["release"] == service.held.release


def test_between_two_assignments_of_a_new_release(world, service, call):
    """`take` runs in another thread: whatever it has done so far, an answer is of one release."""
    other, _ = read_served_release(world.place / "paper", table=service.held.table, owners=service.held.owners)
    service.faces = Faces(other)  # and `held` not yet
    found = json.loads(call("POST", "/predict", {"me": {"id": "n1"}, "access": "none"})[2])
    expected = predict_without_edges(other.model, world.nodes.features)
    assert found["release"] == other.release
    assert found["probabilities"]["0"] == pytest.approx(float(expected.probabilities[1, 0]), abs=1e-9)


def test_a_release_that_was_refused_is_looked_at_again_when_somebody_says_so(world, service, tmp_path):
    shutil.copytree(world.place / "moments", tmp_path / "broken")
    (tmp_path / "broken" / "model.safetensors").write_bytes(b"x")
    service.folder, releases = tmp_path / "broken", Releases(service)
    assert releases.is_new()
    with pytest.raises(ReleaseFormatError):
        releases.take()
    assert not releases.is_new()
    releases.try_again()  # as SIGHUP does
    assert releases.is_new()
