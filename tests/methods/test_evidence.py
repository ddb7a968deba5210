"""What neighbours say: messages and counts by hand, own edges only, and homophily fitted to noisy moments."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch

from gcon.edges import source
from gcon.edges.edge_list import public_edges
from gcon.edges.source import RowBlock, block_slices
from gcon.errors import InputError
from gcon.files.datasets import social_circles_parts
from gcon.learn.after_counts import CountModel, count_inputs
from gcon.learn.believed_counts import CountBelief, with_labels
from gcon.mechanisms.gaussian_release import NoisyStatistic
from gcon.methods import evidence
from gcon.methods.evidence import (
    LOUDEST,
    Evidence,
    ExactCounts,
    PublishedAnswers,
    above_chance,
    messages,
    row_scores,
    scores_from_far,
    scores_with_own_edges,
    tells,
)
from gcon.methods.graph_facts import counted_rows, graph_facts, usual_homophily


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


def facts_of(moments, answers, nodes, *, deviation):
    noise = {"standard_deviation": deviation, "symmetric": True, "sensitivity": 2.18, "share": 1.0}
    known = nodes.train_mask | nodes.validation_mask
    examples = nodes.labels[known], answers[known]
    return graph_facts(NoisyStatistic(name="m", value=moments, **noise), answers, examples)


def fitted_homophily(moments, answers, nodes, *, deviation):
    with_counts = torch.nn.functional.pad(moments, (0, 1, 0, 1))
    return facts_of(with_counts, answers, nodes, deviation=deviation).homophily


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


SHARES = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
BELIEF = CountBelief(  # without noise
    usual=torch.ones(4, 3, dtype=torch.float64),
    spread=0.5,
    proportions=torch.tensor([[0.7, 0.2, 0.1], [0.15, 0.8, 0.05], [0.3, 0.3, 0.4]], dtype=torch.float64),
    crowding=torch.tensor([0.6, 1.4, 5.0], dtype=torch.float64),
)
NOBODY = torch.full((40,), -1)
SOME = torch.where(torch.arange(40) % 4 == 0, torch.arange(40) % 3, -1)  # public labels of ten nodes
KINDS = ["alike", "unlike", "counts", "voices", "published"]


def some_model(seed=0, num_classes=3):
    """Two regressions that nobody taught."""
    generator = torch.Generator().manual_seed(seed)
    tables = torch.randn(2, 5 * num_classes + 1, num_classes, generator=generator, dtype=torch.float64)
    return CountModel(torch.tensor([0.25, 0.75], dtype=torch.float64), 0.3 * tables)


def exact_counts(voice=0.0):
    """A way that asks regressions, with messages or without."""
    said_anyway, model = torch.tensor([0.2, -0.3, 0.1], dtype=torch.float64), some_model()
    return ExactCounts(
        table=torch.cat(model.tables.unbind(), dim=1).numpy(),
        weights=model.weights.numpy(),
        proportions=BELIEF.proportions.numpy(),
        crowding=BELIEF.crowding.numpy(),
        edge_shares=SHARES,
        edge_messages=said_anyway,
        shares=torch.tensor([0.3, 0.3, 0.4], dtype=torch.float64),
        homophily=0.7,
        lean=0.7,
        voice=voice,
    )


def count_rows(start, counted, answers, labels):
    """Of `ExactCounts`: the start, the codes that were counted, those of published answers, and these with labels."""
    later = torch.where(labels >= 0, labels, answers.argmax(dim=1))
    coded = [torch.nn.functional.one_hot(each, 3).double() for each in (counted, later)]
    return torch.cat([start, *coded, with_labels(answers, labels)], dim=1)


def way_and_rows(kind, labels=SOME):
    """A way that owners may be answered in, and the rows of forty nodes."""
    answers = some_answers()
    if kind in ("counts", "voices"):
        rows = count_rows(some_answers(seed=5), torch.arange(40) % 3, answers, labels)
        return exact_counts(0.5 if kind == "voices" else 0.0), rows
    if kind == "published":
        return PublishedAnswers(), answers
    rows = torch.cat([answers, with_labels(answers, labels)], dim=1)
    return Evidence(homophily={"alike": 0.8, "unlike": 0.1}[kind], shares=SHARES), rows


def own_scores(way, rows, edge_index):
    return scores_with_own_edges(way, rows, public_edges(edge_index, len(rows)), 3)


@pytest.mark.parametrize("kind", ["alike", "counts", "published"])
@pytest.mark.parametrize("num_nodes", [39, 41])
def test_rows_of_another_number_of_nodes_are_refused(kind, num_nodes):
    """With too many of them, the last ones would be answered from memory that nobody wrote to."""
    way, rows = way_and_rows(kind)
    with pytest.raises(InputError, match=rf"^features: must have one row per node \({num_nodes}\); got 40"):
        scores_with_own_edges(way, rows, public_edges(random_edges(39), num_nodes), 3)


@pytest.mark.parametrize("labels", [NOBODY, SOME], ids=["no labels", "some labels"])
@pytest.mark.parametrize("homophily", [0.1, 0.6, 0.9])
def test_evidence_by_a_plain_loop(homophily, labels):
    answers, edge_index = some_answers(), random_edges()
    heard = with_labels(answers, labels)
    way = Evidence(homophily=homophily, shares=SHARES)
    found = own_scores(way, torch.cat([answers, heard], dim=1), edge_index)
    said = messages(heard, homophily, SHARES)
    for node in range(40):
        near = neighbours_of(edge_index, node)
        score = answers[node].clamp_min(1e-4).log()
        for neighbour in near:
            score = score + said[neighbour]
        if homophily > 1 / 3:
            mean = (answers[node] + heard[near].sum(dim=0)) / (len(near) + 1)
            score = score + (0.8 * mean + 0.2 * answers[node]).clamp_min(1e-4).log()
        assert torch.allclose(found[node], 0.4 * score, atol=1e-7)


@pytest.mark.parametrize("voice", [0.0, 0.5])
@pytest.mark.parametrize("labels", [NOBODY, SOME], ids=["no labels", "some labels"])
def test_counts_by_a_plain_loop(labels, voice):
    """Regressions at exact counts by two codes, and the mean answer around a node over what edges lead to."""
    start, answers, edge_index = some_answers(seed=5), some_answers(), random_edges()
    counted, model = torch.arange(40) % 3, some_model()
    way = exact_counts(voice)
    found = own_scores(way, count_rows(start, counted, answers, labels), edge_index)
    heard = with_labels(answers, labels)
    later = heard.argmax(dim=1)
    for node in range(40):
        near = neighbours_of(edge_index, node)
        score = torch.zeros(3, dtype=torch.float64)
        for coded in (counted, later):
            counts = torch.tensor([[sum(int(coded[each]) == code for each in near) for code in range(3)]])
            own = start[node : node + 1]
            inputs = count_inputs(own, counts, BELIEF.of(counts, 0.0, own).evidence)[0]
            asked = sum(w * torch.softmax(inputs @ t, dim=0) for w, t in zip(model.weights, model.tables, strict=True))
            score = score + asked.clamp_min(1e-4).log() / 2
        around = (heard[near].sum(dim=0) + 2 * SHARES) / (len(near) + 2)
        score = score + 0.7 * ((around + 0.02) / (SHARES + 0.02)).log()
        for each in near:
            score = score + voice * (messages(heard, 0.7, way.shares)[each] - way.edge_messages)
        assert torch.allclose(found[node], score, atol=1e-7)


def test_what_is_said_is_at_most_1():
    """Also where messages and what edges say anyway are as far apart as they can be: sums are exact for such numbers."""
    certain = torch.eye(3, dtype=torch.float64)[torch.arange(40) % 3]
    for far in (1.0, -1.0):
        way = replace(exact_counts(0.5), homophily=0.94, edge_messages=torch.full((3,), far, dtype=torch.float64))
        said = way.said(count_rows(certain, torch.arange(40) % 3, certain, NOBODY))
        assert said.shape == (40, 12)
        assert float(said.abs().max()) <= 1


@pytest.mark.parametrize("kind", ["alike", "unlike", "counts", "voices"])
def test_labelled_neighbours_say_their_label(kind):
    """Whoever has a public label says it: to her neighbours what she answers is all the same, and to nobody else."""
    edge_index, labelled = random_edges(), SOME >= 0
    way, rows = way_and_rows(kind)
    said = way.said(rows)[labelled]
    truth = torch.nn.functional.one_hot(SOME[labelled], 3).double()
    if kind in ("counts", "voices"):
        assert torch.equal(said[:, 3:6], truth)
        assert torch.equal(said[:, 6:9], truth)
    else:
        assert torch.equal(said[:, :3], messages(truth, way.homophily, SHARES))
        assert torch.equal(said[:, 3:], truth if kind == "alike" else truth[:, :0])
    silent_way, silent = way_and_rows(kind, NOBODY)
    with_label, without = own_scores(way, rows, edge_index), own_scores(silent_way, silent, edge_index)
    touched = [bool(labelled[neighbours_of(edge_index, node)].any()) for node in range(40)]
    assert 5 < sum(touched) < 40
    assert (with_label != without).any(dim=1).tolist() == touched


def test_the_code_of_a_node_is_its_label_or_its_likeliest_class():
    answers = some_answers()
    assert torch.equal(with_labels(answers, NOBODY).argmax(dim=1), answers.argmax(dim=1))
    certain = with_labels(answers.float(), SOME)
    assert certain.dtype == torch.float64
    assert torch.equal(certain[SOME < 0], answers.float().double()[SOME < 0])
    assert torch.equal(certain[SOME >= 0].argmax(dim=1), SOME[SOME >= 0])
    assert bool((certain[SOME >= 0].max(dim=1).values == 1).all())


@pytest.mark.parametrize("kind", KINDS)
def test_a_score_reads_own_edges_only(kind):
    edge_index, (way, rows) = random_edges(), way_and_rows(kind)
    before = own_scores(way, rows, edge_index)
    removed = [torch.cat([edge_index[:, :place], edge_index[:, place + 1 :]], dim=1) for place in range(70)]
    added = [torch.cat([edge_index, torch.tensor([[node], [node + 1]])], dim=1) for node in range(39)]
    for edited in removed + added + [edge_index[:, :0]]:
        after = own_scores(way, rows, edited)
        touched = [node for node in range(40) if neighbours_of(edge_index, node) != neighbours_of(edited, node)]
        others = [node for node in range(40) if node not in touched]
        assert torch.equal(before[others], after[others])
        assert not touched or torch.equal(before[touched], after[touched]) == (kind == "published")


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_strangers_change_nothing(kind):
    """Neither does what they say: a score reads a node's own row and those of its neighbours."""
    edge_index, (way, rows) = random_edges(), way_and_rows(kind)
    before = own_scores(way, rows, edge_index)
    for node in range(40):
        strangers = torch.ones(40, dtype=torch.bool)
        strangers[[node, *neighbours_of(edge_index, node)]] = False
        changed = rows.clone()
        changed[strangers] = rows[strangers].flip(0).roll(1, dims=1)
        assert torch.equal(own_scores(way, changed, edge_index)[node], before[node])


@pytest.mark.parametrize("kind", KINDS)
def test_one_row_at_a_time_is_the_row_of_the_table(kind):
    edge_index, (way, rows) = random_edges(), way_and_rows(kind)
    table, of_row = own_scores(way, rows, edge_index), row_scores(way, rows)
    for node in range(40):
        near = np.array(neighbours_of(edge_index, node), dtype=np.int64)
        assert np.array_equal(of_row(node, near), table[node].numpy())
        assert np.array_equal(of_row(node, near[::-1]), table[node].numpy())


class InBlocks:
    """Edges that come in blocks of a few neighbours, as those of a store do: where they end depends on the edges."""

    def __init__(self, edges, most):
        self.edges, self.most, self.num_nodes = edges, most, edges.num_nodes

    def map_blocks(self, work, *shared):
        [whole] = self.edges.blocks(torch.device("cpu"))
        for nodes in block_slices(whole.row_pointers, self.most):
            pointers = whole.row_pointers[nodes.start : nodes.stop + 1]
            columns = whole.columns[int(pointers[0]) : int(pointers[-1])]
            block = RowBlock(nodes, pointers - pointers[0], columns, self.num_nodes)
            yield work(block, *shared)


@dataclass
class Watched:
    """A way that keeps the rows that it was asked at: in them a node's number tells where it was."""

    asked: list = field(default_factory=list)

    def said(self, rows):
        return rows

    def scores(self, rows, sums, degrees):
        assert len(sums) == len(degrees) == len(rows)
        self.asked.append([round(50 * float(row)) for row in rows[:, 0]])
        return np.stack([rows[:, 0], sums[:, 0], degrees[:, 0]], axis=1)


def test_scores_are_made_in_the_same_pieces_wherever_blocks_end(monkeypatch):
    """The count of right answers has a sensitivity of 2: no rounding of another node's scores may follow the blocks."""
    monkeypatch.setattr(evidence, "_PIECE_ROWS", 16)
    rows, edges = torch.arange(40, dtype=torch.float64)[:, None] / 50, public_edges(random_edges(), 40)
    pieces = [list(range(16)), list(range(16, 32)), list(range(32, 40))]
    found = []
    for most in (10**6, 30, 7, 1):
        way = Watched()
        found.append(scores_with_own_edges(way, rows, InBlocks(edges, most), 3))
        assert all(asked in pieces for asked in way.asked)
        assert {asked[0] for asked in way.asked} == {0, 16, 32}
    assert all(torch.equal(each, found[0]) for each in found)
    assert torch.equal(found[0][:, 2], edges.degrees.double())
    for node in range(40):
        near = neighbours_of(random_edges(), node)
        assert float(found[0][node, 1]) == pytest.approx(sum(near) / 50, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_change_no_bit(kind, monkeypatch):
    monkeypatch.setattr(evidence, "_PIECE_ROWS", 16)
    edges, (way, rows) = public_edges(random_edges(), 40), way_and_rows(kind)
    found = [scores_with_own_edges(way, rows, InBlocks(edges, most), 3) for most in (10**6, 30, 7, 1)]
    assert all(torch.equal(each, found[0]) for each in found)


@pytest.mark.parametrize("homophily", [0.28, 1 / 3, 0.38])
def test_homophily_that_tells_nothing_ignores_edges(homophily):
    answers = some_answers()
    assert not tells(homophily, 3)
    way, rows = Evidence(homophily=homophily, shares=SHARES), torch.cat([answers, with_labels(answers, SOME)], dim=1)
    with_edges, without = (own_scores(way, rows, given) for given in (random_edges(), random_edges()[:, :0]))
    assert torch.equal(with_edges, without)
    assert torch.allclose(without, answers.clamp_min(1e-4).log(), atol=1e-7)


def test_answers_that_are_published_are_all_there_is_where_own_edges_are_left_out():
    way, rows = way_and_rows("published")
    assert way.said(rows).shape == (40, 0)
    found = torch.softmax(own_scores(way, rows, random_edges()), dim=1)
    assert torch.allclose(found, rows.clamp_min(1e-4) / rows.clamp_min(1e-4).sum(dim=1, keepdim=True), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_nodes_never_seen_are_like_those_without_labels(kind):
    way, _ = way_and_rows(kind)
    answers = some_answers(seed=8)
    expected = {
        "counts": count_rows(answers, answers.argmax(dim=1), answers, NOBODY),
        "voices": count_rows(answers, answers.argmax(dim=1), answers, NOBODY),
        "published": answers,
    }.get(kind, torch.cat([answers, answers], dim=1))
    assert torch.equal(way.rows(answers), expected)
    assert way.rows(answers.float()).dtype == torch.float64


def test_answers_from_far_count_where_friends_are_alike():
    answers, edges = some_answers(), public_edges(random_edges(), 40)
    for homophily in (0.05, 1 / 3, 0.38):
        assert not scores_from_far(answers, edges, homophily).any()
    assert scores_from_far(answers, edges, 0.8).abs().min() > 0


def test_a_node_without_neighbours_has_no_counts():
    way, rows = way_and_rows("counts")
    lonely = own_scores(way, rows, random_edges()[:, :0])
    start = rows[:, :3]
    nothing = torch.zeros(40, 3)
    inputs = count_inputs(start, nothing, BELIEF.of(nothing, 0.0, start).evidence)
    expected = some_model().answers(inputs).clamp_min(1e-4).log()
    assert torch.allclose(lonely, expected, atol=1e-7)  # the mean answer around nobody is what edges lead to


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


@pytest.mark.parametrize("kind", KINDS)
def test_only_whole_numbers_come_from_the_edges(kind):
    """Sums and degrees, which are the same on every machine; logarithms and products of matrices are made in one process."""
    way, rows = way_and_rows(kind)
    edges, seen = public_edges(random_edges(), 40), []

    class Watched:
        num_nodes = 40

        def map_blocks(self, work, *shared):
            for heard in edges.map_blocks(work, *shared):
                seen.append(heard.clone())
                yield heard

    found = scores_with_own_edges(way, rows, Watched(), 3)
    [heard] = seen
    assert torch.equal(heard, heard.round())
    assert heard.shape == (40, way.said(rows).shape[1] + 1)
    assert torch.equal(found, scores_with_own_edges(way, rows, edges, 3))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nodes", [[], [0], [7, 8, 39], range(40)], ids=len)
def test_some_nodes_get_the_scores_that_all_get(monkeypatch, kind, nodes):
    """In small blocks too: a count of right answers reads the edges of the nodes that it counts, and of nobody else."""
    way, rows = way_and_rows(kind)
    edges, asked = public_edges(random_edges(), 40), torch.zeros(40, dtype=torch.bool)
    asked[list(nodes)] = True
    every = scores_with_own_edges(way, rows, edges, 3)
    monkeypatch.setitem(source.PART_NODES, "cpu", 7)
    assert torch.equal(scores_with_own_edges(way, rows, edges, 3, asked=asked), every[asked])


@pytest.mark.parametrize("deviation", [0.0, 300.0, 1e5])
@pytest.mark.parametrize("planted", [0.05, 0.3, 0.9])
def test_cautious_homophily_stops_at_chance(planted, deviation):
    nodes, edge_index, answers = circles(planted)
    facts = facts_of(moments_of(counted_rows(answers), edge_index), answers, nodes, deviation=deviation)
    away, cautious = facts.homophily - 0.25, facts.cautious_homophily - 0.25
    told = 1 - (facts.homophily_error / 0.2) ** 2  # of the variance of what was believed before, 0.6 +- 0.2
    assert abs(cautious) == pytest.approx(max(abs(away) - told * facts.homophily_error, 0.0))
    assert cautious == 0 or cautious * away > 0


def test_where_little_was_told_owners_hear_as_the_control_does_and_where_much_was_caution_is_a_standard_error():
    nodes, edge_index, answers = circles(0.3)
    exact = moments_of(counted_rows(answers), edge_index)
    drowned, clear = (facts_of(exact, answers, nodes, deviation=deviation) for deviation in (1e6, 0.0))
    assert drowned.cautious_homophily == pytest.approx(0.6, abs=0.05)
    assert clear.homophily - clear.cautious_homophily == pytest.approx(clear.homophily_error, rel=0.05)
