"""Who is not the owner learns nothing: not from words, bytes, headers, counts or files. And limits hold."""

import asyncio
import json
import statistics
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.serve.conftest import Caller, make_service

from gcon.serve.settings import NOT_CACHED, Limits
from gcon.serve.tokens import TokenStore


def refusals(world):
    """All reasons to refuse, by name."""
    store = TokenStore(world.place / "tokens.sqlite")
    revoked, expired = store.issue(["n1"], days=1)[0][1], store.issue(["n1"], days=1e-9)[0][1]
    store.revoke(name=store.check(revoked, "n1"))
    store.issue(["gone"], days=1)
    other, gone = world.tokens["n2"], store.issue(["gone"], days=1)[0][1]
    return {
        "wrong token": ("n1", "gcon_" + "A" * 43),
        "token of somebody else": ("n1", other),
        "unknown node": ("nobody", other),
        "unknown node, wrong token": ("nobody", "gcon_" + "A" * 43),
        "node that left the table": ("gone", gone),
        "revoked": ("n1", revoked),
        "expired": ("n1", expired),
        "no token": ("n1", ""),
        "no token, unknown node": ("nobody", ""),
        "not a token": ("n1", "' OR 1=1 --"),
        "letters beyond ASCII": ("n1", "gcon_\xe4\xf6"),
    }


def test_all_refusals_are_the_same_bytes(world, service, call, tmp_path):
    seen = {name: call.me(*pair) for name, pair in refusals(world).items()}
    assert len(set(map(repr, seen.values()))) == 1, seen
    status, headers, body = seen["wrong token"]
    assert (status, headers[b"www-authenticate"]) == (401, b"Bearer")
    assert json.loads(body)["error"] == "refused"
    assert (tmp_path / "access.log").read_bytes() == b""
    assert call.me("n1", world.tokens["n1"])[0] == 200  # the test can see an answer


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(node=st.text(max_size=30) | st.sampled_from(["n1", "n79", "n80"]), token=st.text("abcXYZ019_-", max_size=60))
def test_fuzzed_ids_and_tokens_get_one_answer(world, service, call, node, token):
    status, _, body = call.me(node, "gcon_" + token)
    assert (status, body) == (401, call.me("n1", "x")[2])


def test_the_time_of_a_refusal_does_not_tell_whether_a_node_exists(world, service, call):
    """A median over many, interleaved: known and unknown nodes differ by less than the spread of either."""
    names, times = ("n1", "nobody"), {"n1": [], "nobody": []}
    for turn in range(800):
        for name in names if turn % 2 else names[::-1]:
            start = time.perf_counter()
            call.me(name, "gcon_" + "A" * 43)
            times[name].append(time.perf_counter() - start)
    medians = [statistics.median(times[name]) for name in names]
    quarters = statistics.quantiles(times["n1"], n=4)
    assert abs(medians[0] - medians[1]) < max(quarters[2] - quarters[0], 2e-5)


def test_too_often(world, tmp_path):
    limits = Limits(per_address=60, per_token=60, burst=4)
    call = Caller(make_service(world, tmp_path, limits=limits))
    got = [call("GET", "/health") for _ in range(6)]
    assert [each[0] for each in got] == [200] * 4 + [429] * 2
    assert int(got[-1][1][b"retry-after"]) >= 1
    assert json.loads(got[-1][2])["error"] == "too many requests"
    assert call("GET", "/health", address="10.0.0.2")[0] == 200
    # A token is limited wherever it is used; and guesses are limited by their address.
    ask = [("authorization", f"Bearer {world.tokens['n1']}")]
    codes = [call("POST", "/me", {"node": "n1"}, headers=ask, address=f"10.0.1.{turn}")[0] for turn in range(6)]
    assert codes == [200] * 4 + [429] * 2


def test_too_much(world, tmp_path):
    limits = Limits(most_bytes=1000, most_neighbours=3)
    call = Caller(make_service(world, tmp_path, limits=limits))
    status, _, body = call("POST", "/predict", b" " * 1001)
    assert (status, json.loads(body)["error"]) == (413, "too large")
    assert call("POST", "/predict", b" " * 1001, declared=None)[0] == 413  # a body that comes without its length
    assert call("POST", "/predict", b" " * 1001, declared=b"3")[0] == 413
    assert call("POST", "/predict", b"{}", declared=b"x")[0] == 413
    people = [{"id": f"n{row}"} for row in range(5)]
    assert call("POST", "/predict", {"me": people[0], "neighbours": people[1:4]})[0] == 200
    status, _, body = call("POST", "/predict", {"me": people[0], "neighbours": people[1:]})
    assert status == 422
    assert b"at most 3" in body


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"node=17"])
def test_a_body_that_is_no_question_is_told_what_one_looks_like(call, body):
    for path, example in (("/me", {"node": "YOUR ID"}), ("/predict", {"me": {"id": "17"}, "access": "none"})):
        status, _, said = call("POST", path, body)
        assert status == 422
        assert json.dumps(example) in json.loads(said)["message"]
    assert "Authorization: Bearer TOKEN" in json.loads(call("POST", "/me", body)[2])["message"]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (
            {"me": {"id": "n1"}, "access": "cached"},
            f"access: must be 'own-edges' or 'none'; got 'cached'. {NOT_CACHED}",
        ),
        ({"me": {"id": "n1"}, "access": "all"}, "access: must be 'own-edges' or 'none'; got 'all'. See /openapi.json."),
        ({"me": {"id": 1}}, "me.id: must be a string; got `int`."),
        ({"me": "n1"}, "me: must be people, each with either id or features; got `str`."),
        (
            {"me": {"id": "n1"}, "neighbours": ["n2"]},
            "neighbours: must be people, each with either id or features, in a list",
        ),
    ],
)
def test_a_wrong_value_is_told_which_are_right(call, question, said):
    status, _, answer = call("POST", "/predict", question)
    assert status == 422
    assert json.loads(answer)["message"].startswith(said)


def test_a_long_body_is_refused_before_it_is_read(call):
    assert call("POST", "/predict", None, declared=b"99999999999999999999999")[0] == 413
    assert call("POST", "/me", None, declared=b"4097")[0] == 413


@pytest.mark.parametrize(
    "body",
    [
        b'{"me": {"id": "n1"}, "neighbours": [' + b"0," * 10**6 + b"0]}",
        b'{"me": {"id": "n1"}, "neighbours": [' + b'{"id":"n1"},' * 300_000 + b"0]}",
        b'{"me": {' + b",".join(b'"%d":0' % key for key in range(300_000)) + b"}}",
        b"{" + b",".join(b'"%d":0' % key for key in range(300_000)) + b"}",
        b'{"me": {"features": [' + b'"x",' * 10**6 + b"0]}}",
    ],
    ids=["numbers for people", "too many", "keys of a person", "keys", "words for numbers"],
)
def test_a_broken_body_costs_little(call, body):
    start = time.process_time()
    status, _, answer = call("POST", "/predict", body)
    assert (status, len(answer) < 1000) == (422, True)
    assert time.process_time() - start < 1


def test_callers_by_network(world, tmp_path):
    call = Caller(make_service(world, tmp_path, limits=Limits(per_address=60, burst=3)))

    def passed(addresses):
        return sum(call("GET", "/health", address=address)[0] == 200 for address in addresses)

    assert passed(f"2001:db8::{turn:x}" for turn in range(9)) == 3
    assert passed(f"2001:db8:0:{turn:x}::1" for turn in range(1, 5)) == 4
    assert passed(["10.0.0.7", "::ffff:10.0.0.7", "10.0.0.7", "::ffff:10.0.0.7"]) == 3


def test_too_slow(world, tmp_path, monkeypatch):
    service = make_service(world, tmp_path, limits=Limits(seconds=0.05))
    call = Caller(service)

    async def slow(scope, receive, send):
        await asyncio.sleep(1)

    call.application._application = slow
    status, _, body = call("GET", "/health")
    assert (status, json.loads(body)["error"]) == (503, "busy")


def test_a_failure_that_nobody_foresaw_tells_nothing(service, call, capfd):
    async def broken(scope, receive, send):
        raise RuntimeError("node n17 has 12 neighbours")

    call.application._application = broken
    status, _, body = call("GET", "/health")
    assert (status, json.loads(body)["error"]) == (500, "withheld")
    assert b"n17" not in body
    said = capfd.readouterr().err
    assert "RuntimeError" in said
    assert "n17" not in said


@pytest.mark.parametrize(("method", "path"), [("GET", "/nothing"), ("GET", "/me"), ("DELETE", "/predict")])
def test_other_paths_and_methods(call, method, path):
    status, _, body = call(method, path)
    assert status in (404, 405)
    assert json.loads(body)["error"] in ("not found", "not allowed")
