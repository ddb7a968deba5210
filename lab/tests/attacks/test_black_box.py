"""Influence, similarity and learned attacks on tiny graphs where the answer is known."""

import pytest
import torch
from scipy.spatial import distance as scipy_distance

from gcon.edges.edge_list import public_edges
from gcon.errors import AccessRefusedError, InputError
from gcon_lab.attacks.black_box import DISTANCES, InfluenceAttack, Similarity, distance_columns, taught
from gcon_lab.attacks.pairs import (
    LabelledPairs,
    absent_and_present,
    is_linked,
    sample_pairs,
    with_edges,
    without_edge,
)
from gcon_lab.attacks.roc import roc_of
from gcon_lab.attacks.view import View
from gcon_lab.attacks.white_box import Replay
from gcon_lab.mechanisms.plain_sums import neighbour_sums

PATH = public_edges(torch.tensor([[0, 1, 2], [1, 2, 3]]), 5)  # 0-1-2-3, and 4 alone


def random_rows(*shape, seed=0):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def view_of(query, features):
    return View(features=features, posteriors=query(features), query=query)


def test_influence_finds_exactly_the_neighbours_of_a_one_step_model():
    features = random_rows(5, 4)
    view = view_of(lambda rows: torch.softmax(neighbour_sums(PATH, rows), dim=1), features)
    pairs = torch.tensor([[0, 1], [0, 2], [0, 3], [2, 1], [2, 3], [2, 4], [3, 0]])
    assert (InfluenceAttack().scores(view, pairs) > 1e-9).tolist() == [True, False, False, True, True, False, False]


def test_nothing_travels_without_edges():
    features = random_rows(5, 4)
    view = view_of(lambda rows: torch.softmax(rows, dim=1), features)
    assert InfluenceAttack().scores(view, torch.tensor([[0, 1], [0, 4]])).tolist() == [0.0, 0.0]


def test_influence_needs_answers_to_changed_features():
    with pytest.raises(AccessRefusedError):
        InfluenceAttack().scores(View(features=random_rows(2, 2), posteriors=random_rows(2, 2)), torch.tensor([[0, 1]]))


SCIPY = {
    "cosine": "cosine",
    "euclidean": "euclidean",
    "correlation": "correlation",
    "chebyshev": "chebyshev",
    "bray-curtis": "braycurtis",
    "canberra": "canberra",
    "cityblock": "cityblock",
    "squared-euclidean": "sqeuclidean",
}


@pytest.mark.parametrize("name", DISTANCES)
def test_distances_are_those_of_scipy(name):
    rows = random_rows(6, 5)
    rows[0, 0] = rows[1, 0] = 0.0
    pairs = torch.tensor([[0, 1], [2, 3], [4, 5]])
    found = Similarity(name).scores(View(features=rows, posteriors=rows), pairs)
    wanted = [-getattr(scipy_distance, SCIPY[name])(rows[u].numpy(), rows[v].numpy()) for u, v in pairs.tolist()]
    assert found.tolist() == pytest.approx(wanted)


def test_an_unknown_distance_is_refused():
    with pytest.raises(InputError, match="distance"):
        Similarity("hamming")


def groups(num_pairs, seed):
    """Posteriors in two groups; linked pairs are those inside one."""
    generator = torch.Generator().manual_seed(seed)
    group = torch.arange(60) % 2
    noise = torch.rand(60, 2, generator=generator, dtype=torch.float64)
    posteriors = torch.softmax(3 * torch.nn.functional.one_hot(group, 2) + noise, dim=1)
    pairs = torch.randint(60, (num_pairs, 2), generator=generator)
    view = View(features=noise, posteriors=posteriors)
    return view, pairs, group[pairs[:, 0]] == group[pairs[:, 1]]


@pytest.mark.parametrize("kind", ["logistic", "boosting"])
def test_learned_attacks_learn_from_a_shadow_graph(kind):
    shadow, attacked = groups(200, seed=1), groups(200, seed=2)
    attack = taught(*shadow, kind=kind)
    assert attack.name == f"supervised-{kind}"
    view, pairs, linked = attacked
    assert roc_of(attack.scores(view, pairs), linked).area > 0.99
    assert distance_columns(view, pairs).shape == (200, 18)


def test_replay_tells_which_answer_it_was():
    features = random_rows(5, 3)

    def answers(edges):
        return torch.softmax(neighbour_sums(edges, features), dim=1)

    view = View(features=features, posteriors=answers(PATH), answers_on=answers)
    scores = Replay(PATH).scores(view, torch.tensor([[0, 1], [0, 2], [3, 2], [4, 0]]))
    assert (scores > 0).tolist() == [True, False, True, False]
    with pytest.raises(AccessRefusedError):
        Replay(PATH).scores(View(features=features, posteriors=features), torch.tensor([[0, 1]]))


def test_pairs_are_linked_or_not_as_they_say():
    generator = torch.Generator().manual_seed(3)
    edges = public_edges(torch.randint(200, (2, 500), generator=generator), 200)
    found = sample_pairs(edges, 120, seed=1)
    assert int(found.linked.sum()) == int((~found.linked).sum()) == 120
    for pair, linked in zip(found.pairs.tolist(), found.linked.tolist(), strict=True):
        assert pair[0] != pair[1]
        assert is_linked(edges, tuple(pair)) == linked
    firsts = [sorted(found.pairs[kind, 0].tolist()) for kind in (found.linked, ~found.linked)]
    assert firsts[0] == firsts[1]
    assert isinstance(found.part(found.linked), LabelledPairs)


def test_a_graph_without_edges_has_nothing_to_guess():
    with pytest.raises(InputError, match="edges"):
        sample_pairs(public_edges(torch.empty(2, 0, dtype=torch.int64), 4), 2)


def test_neighbouring_graphs_differ_in_the_pair_alone():
    for pair in ((1, 2), (4, 0)):
        absent, present = absent_and_present(PATH, pair)
        assert not is_linked(absent, pair)
        assert is_linked(present, pair)
        assert PATH in (absent, present)
        assert int(present.degrees.sum() - absent.degrees.sum()) == 2
    assert torch.equal(without_edge(with_edges(PATH, torch.tensor([[0, 4]])), (4, 0)).columns, PATH.columns)
