"""What neighbours say: messages by hand, own edges only, and homophily fitted to noisy moments."""

import math

import numpy as np
import pytest
import torch

from gcon.edges.edge_list import public_edges
from gcon.files.datasets import social_circles_parts
from gcon.methods.evidence import LOUDEST, above_chance, messages, scores_with_own_edges, tells
from gcon.methods.graph_facts import homophily_misfits, usual_homophily


def some_answers(num_nodes=40, num_classes=3, seed=0):
    draws = np.random.default_rng(seed).dirichlet(np.full(num_classes, 0.5), size=num_nodes)
    return torch.from_numpy(draws)


def circles(homophily, *, num_classes=4, num_nodes=800):
    """Nodes, edges and answers: in each the true class is the more likely one, with some confusion."""
    nodes, edge_index = social_circles_parts(
        num_nodes, num_classes=num_classes, mean_degree=10.0, homophily=homophily, degree_tail=math.inf, seed=2
    )
    sure = torch.nn.functional.one_hot(nodes.labels, num_classes).double()
    return nodes, edge_index, 0.6 * sure + 0.4 * some_answers(num_nodes, num_classes, seed=1)


def moments_of(answers, edge_index):
    one_way = answers[edge_index[0]].T @ answers[edge_index[1]]
    return one_way + one_way.T


def fitted_homophily(moments, answers, nodes, *, deviation):
    return min(homophily_misfits(moments, answers, nodes, deviation=deviation), key=lambda entry: entry[1])[0]


def random_edges(num_nodes=40, count=70, seed=3):
    return torch.from_numpy(np.random.default_rng(seed).integers(0, num_nodes, (2, count)))


def neighbours_of(edge_index, node):
    pairs = [pair for pair in edge_index.T.tolist() if node in pair and pair[0] != pair[1]]
    return sorted({end for pair in pairs for end in pair} - {node})


def message_by_hand(answers, sender, homophily):
    num_classes = answers.shape[1]
    shares = answers.mean(dim=0)
    said = []
    for receiver in range(num_classes):
        likelihood = 0.0
        for neighbour in range(num_classes):
            meets = homophily if neighbour == receiver else (1 - homophily) / (num_classes - 1)
            likelihood += meets * float(answers[sender, neighbour] / shares[neighbour])
        said.append(math.log(likelihood))
    centre = sum(said) / num_classes
    return [math.tanh(each - centre) for each in said]


@pytest.mark.parametrize("homophily", [0.02, 0.2, 0.6, 0.94])
def test_messages_by_hand(homophily):
    answers = some_answers()
    found = messages(answers, homophily)
    by_hand = [message_by_hand(answers, sender, homophily) for sender in range(40)]
    assert torch.allclose(found, torch.tensor(by_hand, dtype=torch.float64), atol=1e-9)


@pytest.mark.parametrize("homophily", [0.02, 0.6, 0.94, 1.0, 0.0])
@pytest.mark.parametrize("num_classes", [2, 5])
def test_messages_are_bounded_and_centred(homophily, num_classes):
    certain = torch.eye(num_classes, dtype=torch.float64)[torch.arange(40) % num_classes]
    for answers in (some_answers(num_classes=num_classes), certain):
        said = messages(answers, homophily)
        assert bool((said.abs() <= LOUDEST).all())
        before = torch.atanh(said.clamp(-1 + 1e-12, 1 - 1e-12) / LOUDEST)
        assert float(before.sum(dim=1).abs().max()) < 1e-3  # centred before they were bounded
        assert float(said.abs().max()) > 0.1


@pytest.mark.parametrize("num_classes", [2, 3, 7])
def test_friends_by_chance_say_nothing(num_classes):
    said = messages(some_answers(num_classes=num_classes), 1 / num_classes)
    assert float(said.abs().max()) < 1e-12


def test_messages_change_their_sign_with_heterophily():
    certain = torch.eye(3, dtype=torch.float64).repeat(5, 1)
    own = torch.eye(3, dtype=torch.bool).repeat(5, 1)
    alike, unlike = messages(certain, 0.8), messages(certain, 0.1)
    assert bool((alike[own] > 0.5).all() and (alike[~own] < -0.3).all())
    assert bool((unlike[own] < -0.5).all() and (unlike[~own] > 0.3).all())


def test_messages_of_a_class_that_nobody_has_are_finite():
    answers = torch.zeros(10, 3, dtype=torch.float64)
    answers[:, 1] = 1.0
    for homophily in (0.02, 0.6, 1.0):
        assert bool(torch.isfinite(messages(answers, homophily)).all())


@pytest.mark.parametrize("homophily", [0.1, 0.6, 0.9])
def test_scores_by_a_plain_loop(homophily):
    answers, edge_index = some_answers(), random_edges()
    found = scores_with_own_edges(answers, public_edges(edge_index, 40), homophily)
    said = messages(answers, homophily)
    for node in range(40):
        near = neighbours_of(edge_index, node)
        score = answers[node].clamp_min(1e-4).log()
        for neighbour in near:
            score = score + said[neighbour]
        if homophily > 1 / 3:
            mean = (answers[node] + answers[near].sum(dim=0)) / (len(near) + 1)
            score = score + (0.8 * mean + 0.2 * answers[node]).clamp_min(1e-4).log()
        assert torch.allclose(found[node], score, atol=1e-9)


@pytest.mark.parametrize("homophily", [0.1, 0.6, 0.9])
def test_a_score_reads_own_edges_only(homophily):
    answers, edge_index = some_answers(), random_edges()
    before = scores_with_own_edges(answers, public_edges(edge_index, 40), homophily)
    removed = [torch.cat([edge_index[:, :place], edge_index[:, place + 1 :]], dim=1) for place in range(70)]
    added = [torch.cat([edge_index, torch.tensor([[node], [node + 1]])], dim=1) for node in range(39)]
    for edited in removed + added + [edge_index[:, :0]]:
        after = scores_with_own_edges(answers, public_edges(edited, 40), homophily)
        touched = [node for node in range(40) if neighbours_of(edge_index, node) != neighbours_of(edited, node)]
        others = [node for node in range(40) if node not in touched]
        assert torch.equal(before[others], after[others])
        assert not touched or not torch.equal(before[touched], after[touched])


@pytest.mark.parametrize("homophily", [0.28, 1 / 3, 0.38])
def test_homophily_that_tells_nothing_ignores_edges(homophily):
    answers = some_answers()
    assert not tells(homophily, 3)
    with_edges, without = (
        scores_with_own_edges(answers, public_edges(given, 40), homophily)
        for given in (random_edges(), random_edges()[:, :0])
    )
    assert torch.equal(with_edges, without)
    assert torch.equal(without, answers.clamp_min(1e-4).log())


def test_above_chance():
    assert above_chance(1.0, 4) == pytest.approx(1)
    assert above_chance(0.25, 4) == pytest.approx(0)
    assert above_chance(0.0, 2) == pytest.approx(-1)
    assert tells(0.6, 2)
    assert tells(0.1, 4)
    assert not tells(0.3, 4)


@pytest.mark.parametrize("num_classes", [2, 4])
@pytest.mark.parametrize("planted", [0.05, 0.3, 0.6, 0.9])
def test_planted_homophily_is_found(planted, num_classes):
    nodes, edge_index, answers = circles(planted, num_classes=num_classes)
    noise = torch.from_numpy(np.random.default_rng(0).standard_normal((num_classes, num_classes)))
    noisy = moments_of(answers, edge_index) + 2.0 * (noise + noise.T) / 2
    found = fitted_homophily(noisy, answers, nodes, deviation=2.0)
    assert abs(found - planted) <= 0.1
    if planted < 0.2:
        assert above_chance(found, num_classes) < -0.1


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("planted", [0.05, 0.9])
def test_under_huge_noise_homophily_stays_near_what_is_usual(planted, seed):
    nodes, edge_index, answers = circles(planted)
    noise = torch.from_numpy(np.random.default_rng(seed).standard_normal((4, 4)))
    noisy = moments_of(answers, edge_index) + 1e6 * (noise + noise.T) / 2
    assert abs(fitted_homophily(noisy, answers, nodes, deviation=1e9) - 0.6) <= 0.02


def test_labels_of_test_nodes_are_not_read():
    nodes, edge_index, answers = circles(0.8)
    before = fitted_homophily(moments_of(answers, edge_index), answers, nodes, deviation=1.0)
    known = nodes.train_mask | nodes.validation_mask
    nodes.labels[~known] = 0
    assert fitted_homophily(moments_of(answers, edge_index), answers, nodes, deviation=1.0) == before


@pytest.mark.parametrize("deviation", [0.0, 1.0])
def test_homophily_without_edges_or_with_one_class_stays_usable(deviation):
    nodes, edge_index, answers = circles(0.8)
    nothing = torch.zeros(4, 4, dtype=torch.float64)
    assert abs(fitted_homophily(nothing, answers, nodes, deviation=deviation) - 0.6) <= 0.02
    certain = torch.zeros_like(answers)
    certain[:, 2] = 1.0  # all moments lie in one entry: no edge leaves the class
    found = fitted_homophily(moments_of(certain, edge_index), certain, nodes, deviation=deviation)
    assert found >= 0.6


def test_the_guess_without_any_release():
    assert usual_homophily(0.5) == 0.8
    assert usual_homophily(0.0) == usual_homophily(-0.5) == 0.6
