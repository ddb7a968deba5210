"""Editing any edge that does not touch a node changes no byte of what its owner is answered."""

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.serve.conftest import NODES, Caller, make_service

PAIRS = [(low, high) for low in range(NODES) for high in range(low + 1, NODES)]


def edited(edge_index, flipped):
    """The graph with some pairs flipped: an edge where there was none, and none where there was one."""
    pairs = {tuple(sorted(pair)) for pair in edge_index.T.tolist() if pair[0] != pair[1]}
    return torch.tensor(sorted(pairs ^ set(flipped)), dtype=torch.int64).reshape(-1, 2).T


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    flipped=st.sets(st.sampled_from(PAIRS), min_size=1, max_size=200),
    asked=st.sets(st.integers(0, NODES - 1), max_size=8),
)
def test_other_peoples_edges_change_no_byte(world, both, tmp_path, flipped, asked):
    service, call = both
    kind = service.folder.name
    other = Caller(make_service(world, tmp_path, kind=kind, edge_index=edited(world.edge_index, flipped)))
    touched = {node for pair in flipped for node in pair}
    for row in sorted(asked | {0}):
        node = f"n{row}"
        answers = [each.me(node, world.tokens[node]) for each in (call, other)]
        if row not in touched:
            assert answers[0] == answers[1]
        assert [answer[0] for answer in answers] == [200, 200]
        assert call("POST", "/predict", {"me": {"id": node}}) == other("POST", "/predict", {"me": {"id": node}})


def test_own_edges_change_the_answer(world, both, tmp_path):
    """The test above can see a difference."""
    service, call = both
    flipped = [(3, other) for other in range(10, 40)]
    kind = service.folder.name
    other = Caller(make_service(world, tmp_path, kind=kind, edge_index=edited(world.edge_index, flipped)))
    assert call.me("n3", world.tokens["n3"]) != other.me("n3", world.tokens["n3"])


def test_what_everybody_can_see_is_the_same_whatever_the_edges(world, both, tmp_path):
    service, call = both
    edges = edited(world.edge_index, PAIRS[::7])
    other = Caller(make_service(world, tmp_path, kind=service.folder.name, edge_index=edges))
    for each in (call, other):
        for node in ("n1", "n2"):
            each.me(node, world.tokens[node])
    for path in ("/", "/ask.html", "/model.html", "/statement", "/card", "/health", "/openapi.json"):
        assert call("GET", path) == other("GET", path)
    counts = [
        sorted(line for line in each("GET", "/metrics")[2].splitlines() if b"_total{" in line) for each in (call, other)
    ]
    assert counts[0] == counts[1] != []
