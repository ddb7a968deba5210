"""Training by moments: one charged release, and everything else a function of it and of public data."""

import inspect
import math
import warnings
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from tests.counted import counted

import gcon.learn.edge_free
import gcon.learn.sample
import gcon.methods.evidence
import gcon.methods.moments
import gcon.privacy.account
from gcon.edges.edge_list import private_edges
from gcon.edges.stored import StoredEdges
from gcon.errors import AnswersWarning, BudgetExceededError, InputError, PrivateComputationError
from gcon.files.edge_store import write_edge_store
from gcon.learn.after_counts import AfterCounts
from gcon.learn.sample import with_validation
from gcon.mechanisms.counts import NeighbourCounts, NoisyCount, geometric_deviation
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.methods.evidence import Evidence, ExactCounts, PublishedAnswers
from gcon.methods.moments import (
    FIRST_SHARE,
    HEARD,
    LOUD,
    MOST_COUNTED,
    UNSURE,
    Moments,
    counted_share,
    labels_say_more,
    owner_counts,
    owners_way,
)
from gcon.methods.no_edges import predict_without_edges
from gcon.methods.own_edges import predict_from_own_edges
from gcon.privacy.account import transcript
from gcon.privacy.boundary import Private
from gcon.privacy.budget import NOTHING, Budget
from gcon.privacy.ledger import Kind, MemoryLedger, Outcome
from gcon.privacy.randomness import SeededRandomness, SystemRandomness
from gcon.release.layout import release_files

FIRST = ["learn without edges", "first release"]
LAST = ["second release", "count right answers", "learn from what was released"]


@pytest.fixture(autouse=True)
def with_counts_of_right_answers():
    with counted():
        yield


def sureness(answers):
    """The mean probability of the likeliest class."""
    return float(answers.max(dim=1).values.mean(dtype=torch.float64))


class Untouchable:
    """Edges that must not be read."""

    def __getattr__(self, name):
        raise AssertionError(f"{name} of the edges was read")


def trained(nodes, edges, *, epsilon=8.0, delta=None, seed=0, ledger=None, randomness=None, **others):
    private = edges if isinstance(edges, Private) else private_edges(edges, nodes.num_nodes)[0]
    return Moments(epsilon=epsilon, delta=delta, seed=seed).train(
        nodes,
        private,
        ledger=ledger or MemoryLedger("circles", clock=lambda: datetime(2030, 1, 2, tzinfo=UTC)),
        randomness=randomness or SeededRandomness(4),
        **others,
    )


@pytest.fixture
def forced():
    """Inside, every training releases what this model released, and no edge is opened for it."""

    @contextmanager
    def force(model):
        last = [] if model.right is None else [model.right]
        known, given = [*model.statistics, *model.tables, *last], []

        def next_known(*_):
            given.append(known[len(given) % len(known)])
            return given[-1]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gcon.privacy.account, "apply_private", next_known)
            yield
        assert len(given) % len(known) == 0  # no release was left out, and none was added

    return force


@pytest.mark.slow
def test_the_model_is_a_function_of_the_release_and_of_public_data(nodes, dense, sparse, unsure, labelled, forced):
    """Two graphs that share few edges, and one that must not be read: with one release, one model to the last bit."""
    runs = [(nodes, dense, 0.3), (nodes, dense, 8.0), (*unsure, 16.0), (*labelled, 8.0)]
    models = [trained(given, edges, epsilon=epsilon) for given, edges, epsilon in runs]
    assert [[table.one_way for table in model.tables] for model in models] == [[], [False], [False] * 2, [True]]
    gcon.learn.edge_free.forget_learned()  # what is kept is computed again, with another graph near
    for model, (given, _, epsilon) in zip(models, runs, strict=True):
        expected = release_files(model)
        other = trained(given, sparse, epsilon=epsilon)
        assert release_files(other)["model.safetensors"] != expected["model.safetensors"]
        with forced(model):
            for edges in (dense[:, :0], sparse, Private(Untouchable(), "edges that must not be read")):
                assert release_files(trained(given, edges, epsilon=epsilon)) == expected


def released(model):
    return [each.get("statistic", "answers") for each in model.receipt.plan["releases"]]


def blind(nodes):
    """The same nodes, none of them for validation."""
    return replace(nodes, validation_mask=torch.zeros_like(nodes.validation_mask))


def test_both_kinds_of_second_release_are_trained_here(nodes, dense, sparse):
    with_counts, without = trained(nodes, dense), trained(nodes, sparse, epsilon=0.3)
    assert [each.name for each in with_counts.statistics] == ["edge moments"] * 2
    assert [(each.rounds, each.value.shape) for each in with_counts.tables] == [(1, (100, 3))]
    assert [each.name for each in without.statistics] == ["edge moments"] * 3
    assert without.tables == ()
    assert without.cached is None
    assert without.counts is None
    assert without.best_answers is without.answers
    assert with_counts.best_answers is with_counts.cached
    for model in (with_counts, without):
        assert model.best_answers.shape == (100, 3)
        assert torch.allclose(model.best_answers.sum(dim=1), torch.ones(100), atol=1e-5)
        assert model.training_nodes == nodes.fingerprint
        assert torch.equal(model.labels, torch.where(nodes.train_mask, nodes.labels, -1))
        assert model.asked == int(nodes.validation_mask.sum())


def test_counts_are_of_labels_and_of_answers_elsewhere(nodes, dense):
    """Without noise the table is what a plain loop over the edges counts."""
    model = trained(nodes, dense, epsilon=math.inf)
    coded = torch.where(nodes.train_mask, nodes.labels, model.answers.argmax(dim=1))
    assert torch.equal(model.counts.codes, coded)
    by_hand = torch.zeros(100, 3, dtype=torch.int64)
    for one, two in {frozenset(pair) for pair in dense.T.tolist()}:
        by_hand[one, coded[two]] += 1
        by_hand[two, coded[one]] += 1
    assert torch.equal(model.tables[0].value, by_hand)


def test_labels_that_are_set_aside_as_judges_are_said_to_neighbours(nodes, dense, monkeypatch):
    """Judges teach nobody, but their labels are public: neighbours count them as labels, like those of all labelled nodes."""
    monkeypatch.setattr(gcon.learn.sample, "_ENOUGH", 1)
    monkeypatch.setattr(gcon.learn.sample, "_ENOUGH_PER_CLASS", 1)
    found = blind(nodes)
    aside = with_validation(found)
    assert bool(aside.validation_mask.any())
    assert not torch.equal(aside.train_mask, found.train_mask)
    model = trained(found, dense, epsilon=math.inf)
    assert (model.asked, model.right) == (0, None)  # a count would hear what judges said
    said = torch.where(found.train_mask, found.labels, -1)
    assert torch.equal(model.labels, said)
    assert torch.equal(model.counts.codes, torch.where(said >= 0, said, model.answers.argmax(dim=1)))
    assert model.taught(found, found.train_mask) == int(found.train_mask.sum())


def test_with_many_labels_and_unsure_answers_labelled_neighbours_are_counted_alone(labelled):
    nodes, edge_index = labelled
    model = trained(nodes, edge_index, epsilon=math.inf)
    assert [(each.rounds, each.one_way) for each in model.tables] == [(1, True)]
    assert torch.equal(model.counts.codes, model.labels)
    by_hand = torch.zeros(100, 3, dtype=torch.int64)
    for one, two in {frozenset(pair) for pair in edge_index.T.tolist()}:
        for node, other in ((one, two), (two, one)):
            if nodes.train_mask[other]:
                by_hand[node, nodes.labels[other]] += 1
    assert torch.equal(model.tables[0].value, by_hand)
    assert "Counts are of labelled neighbours alone." in release_files(model)["README.md"].decode()
    # Owners ask at the counts of all neighbours, by what is published of them, so much smaller.
    _, rows = owners_way(model.best_answers, model.labels, model.counts, model.homophily)
    codes = torch.where(model.labels >= 0, model.labels, model.best_answers.argmax(dim=1))
    assert not rows.counted_alone
    for place in (3, 6):
        assert torch.equal(rows[:][:, place : place + 3], 0.6 * torch.nn.functional.one_hot(codes, 3).double())
    model = trained(nodes, edge_index, epsilon=8.0)
    plan = model.receipt.plan
    assert plan["one_way"] is True
    assert [(each.rounds, each.one_way, each.rate) for each in model.tables] == [(1, True, plan["rates"][1])]
    assert plan["releases"][2]["one_way"] is True
    assert not trained(*labelled, epsilon=0.3).tables  # not heard


def test_with_many_labels_and_sure_answers_all_are_counted(labelled):
    """Features that say everything: codes are as good as labels, and with so little noise two fifths more neighbours are more."""
    nodes, edge_index = labelled
    said = torch.cat([nodes.features, 9.0 * torch.nn.functional.one_hot(nodes.labels.clamp_min(0), 3)], dim=1)
    model = trained(replace(nodes, features=said), edge_index, epsilon=8.0)
    assert sureness(model.answers) > 0.9
    plan = model.receipt.plan
    assert plan["one_way"] is True
    assert [(each.rounds, each.one_way, each.rate) for each in model.tables] == [(1, False, plan["rates"][0])]
    assert bool((model.counts.codes >= 0).all())


@pytest.mark.parametrize(("labelled_nodes", "planned"), [(39, False), (40, True)])
def test_plans_for_one_way_counts_are_for_many_labels(labelled, labelled_nodes, planned):
    nodes, edge_index = labelled
    some = nodes.train_mask.nonzero()[:labelled_nodes, 0]
    mask = torch.zeros_like(nodes.train_mask)
    mask[some] = True
    model = trained(replace(nodes, train_mask=mask), edge_index[:, ::10], epsilon=0.3)
    assert model.receipt.plan.get("one_way", False) is planned


def test_what_says_more_by_hand():
    """Two classes, six nodes in ten labelled: worth of the others, noise, and counts as they scatter."""
    labels, rates = torch.where(torch.arange(10) < 6, 0, -1), (0.4, 0.8)
    every, alone = (geometric_deviation(rate) ** 2 for rate in rates)
    for right, degree in ((0.5, 40.0), (0.8, 40.0), (1.0, 40.0), (1.0, 1000.0), (0.8, 1000.0)):
        answers = torch.tensor([[right, 1 - right]]).repeat(10, 1)
        signal = 0.6 + 0.4 * (2 * right - 1) ** 2
        more = 0.36 / (alone + 0.6 * degree / 2) >= signal**2 / (every + degree / 2)
        assert labels_say_more(answers, labels, degree, rates) is more
    assert not labels_say_more(torch.eye(2).repeat(5, 1), labels, 1000.0, rates)
    assert labels_say_more(torch.full((10, 2), 0.5), labels, 1.0, rates)
    assert labels_say_more(torch.eye(2).repeat(5, 1), torch.zeros(10, dtype=torch.int64), 1.0, (0.4, 0.8))


@pytest.mark.slow
def test_two_rounds_on_a_dense_graph_with_unsure_answers(nodes, dense, unsure):
    model = trained(*unsure, epsilon=16.0)
    assert sureness(model.answers) <= UNSURE
    assert released(model) == ["edge moments"] * 2 + ["neighbour counts"] * 2 + ["answers"]
    rates = model.receipt.plan["rates"]
    assert [(each.rounds, each.rate) for each in model.tables] == [(2, rates[1])] * 2
    assert rates[1] < rates[0]
    # The second table counts by what the first one gave, and is asked about on top of it.
    assert not torch.equal(
        model.counts.codes, torch.where(model.labels >= 0, model.labels, model.answers.argmax(dim=1))
    )
    assert not torch.equal(model.counts.start, model.answers)
    assert sureness(model.cached) > sureness(model.counts.start) > sureness(model.answers)
    # Sure answers, or few neighbours over the noise: one round.
    sure = trained(nodes, dense, epsilon=16.0)
    assert sureness(sure.answers) > UNSURE
    assert [each.rounds for each in sure.tables] == [1]
    quiet = trained(*unsure, epsilon=4.0)
    assert HEARD * geometric_deviation(quiet.receipt.plan["rates"][0]) < 18
    assert LOUD * geometric_deviation(quiet.receipt.plan["rates"][1]) > 15
    assert sureness(quiet.answers) <= UNSURE
    assert [each.rounds for each in quiet.tables] == [1]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.3, 8.0, math.inf])
def test_without_validation_nodes_no_answers_are_counted(nodes, dense, epsilon):
    stages = []
    model = trained(blind(nodes), dense, epsilon=epsilon, progress=stages.append)
    assert "count right answers" not in stages
    assert "answers" not in released(model)
    assert model.receipt.plan["answer_epsilon"] == 0
    assert (model.right, model.asked, model.own_edges) == (None, 0, True)
    asked = trained(nodes, dense, epsilon=epsilon)
    assert "count of right answers" in asked.choices
    assert "count of right answers" not in model.choices
    # Twins answer less surely, so that a second table of counts may be worth it; apart from that the releases are the same.
    assert [*dict.fromkeys(released(asked))] == [*dict.fromkeys(released(model)), "answers"]
    assert asked.receipt.plan["answer_epsilon"] == pytest.approx(0.05 * epsilon)
    if math.isfinite(epsilon):  # what is not spent on the count is spent on the rest
        assert all(
            more > less for more, less in zip(model.receipt.plan["rates"], asked.receipt.plan["rates"], strict=True)
        )


@pytest.mark.parametrize("edges", [1, 5])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_a_count_of_right_answers_is_bought_only_where_it_tells(epsilon, edges):
    """Three deviations of its noise are at most a tenth of the validation nodes, for at most a twentieth of the budget."""
    shares = [counted_share(epsilon, asked, protect_edges=edges) for asked in range(0, 40_000, 50)]
    worth = [share > 0 for share in shares]
    assert not worth[1]
    assert worth[-1]
    assert worth == sorted(worth)
    assert max(shares) <= MOST_COUNTED
    for asked, share in zip(range(0, 40_000, 50), shares, strict=True):
        of_most = 3 * geometric_deviation(MOST_COUNTED * epsilon / edges / 2) / (0.1 * max(asked, 1))
        if share:
            assert 3 * geometric_deviation(share * epsilon / edges / 2) == pytest.approx(0.1 * asked, rel=0.01)
        else:
            assert of_most > 0.99
    assert counted_share(math.inf, 10) == MOST_COUNTED
    assert counted_share(math.inf, 0) == counted_share(1.0, 0) == 0
    assert (
        counted_share(5e-324, 500) == counted_share(1e-310, 1, protect_edges=10) == 0
    )  # refused later, in clear words


def test_too_few_validation_nodes_are_not_counted(nodes, dense, monkeypatch):
    monkeypatch.setattr(gcon.methods.moments, "counted_share", counted_share)
    model, free = trained(nodes, dense), trained(blind(nodes), dense)
    assert (model.right, model.asked, model.own_edges) == (None, 0, True)
    assert released(model) == ["edge moments", "edge moments", "neighbour counts"]
    assert model.receipt.plan["answer_epsilon"] == 0
    assert model.receipt.plan["rates"] == free.receipt.plan["rates"]
    assert "count of right answers" not in model.choices


def own_answers(model, nodes, edge_index):
    edges = private_edges(edge_index, nodes.num_nodes)[0]
    return predict_from_own_edges(model, nodes.features, edges, ledger=MemoryLedger())


def test_the_count_without_noise_is_that_of_right_answers(nodes, dense, sparse, unsure):
    for given, edges in ((nodes, dense), (nodes, sparse), unsure):
        model = trained(given, edges, epsilon=math.inf)
        assert model.own_edges
        right = (own_answers(model, given, edges).classes == given.labels)[given.validation_mask]
        assert model.right == int(right.sum())


def test_own_edges_are_left_out_where_they_mislead(misled, monkeypatch):
    """No noise: own edges do worse on the validation nodes than published answers, so nobody is answered from them.

    Regressions were weighted by these nodes and see through it; the mean answer around a node, believed too much, does not.
    """
    nodes, edge_index = misled
    for name in ("LEAN", "MOST_LEAN"):
        monkeypatch.setattr(gcon.methods.moments, name, 20.0)
    model = trained(nodes, edge_index, epsilon=math.inf)
    alone = int((model.best_answers.argmax(dim=1) == nodes.labels)[nodes.validation_mask].sum())
    assert model.right < alone - 0.03 * model.asked
    assert not model.own_edges
    assert isinstance(model.scorer().way, PublishedAnswers)
    own = own_answers(model, nodes, edge_index)
    cached = predict_without_edges(model, nodes.features, access="cached")
    assert torch.equal(own.classes, cached.classes)
    torch.testing.assert_close(own.probabilities, cached.probabilities, rtol=0, atol=1e-3)  # at least 1e-4 each
    assert torch.equal(own_answers(model, nodes, edge_index[:, :0]).probabilities, own.probabilities)
    assert "`own-edges` gives what `cached` gives" in model.description()
    # The same release, asked with them: they do mislead.
    asked = replace(model, own_edges=True)
    assert isinstance(asked.scorer().way, ExactCounts)
    right = (own_answers(asked, nodes, edge_index).classes == nodes.labels)[nodes.validation_mask]
    assert int(right.sum()) == model.right
    assert "gives what `cached` gives" not in asked.description()


@pytest.mark.parametrize(("homophily", "gain", "lean"), [(0.8, 0.2, 1.45), (0.8, 0.0, 0.25), (0.8, 0.6, 2.0 / 3)])
def test_how_much_the_answer_around_counts(homophily, gain, lean):
    """As much as counts added to the answers, less where little is in doubt; not at all where friends avoid their own class."""
    before, sure = torch.full((6, 3), 1 / 3, dtype=torch.float64), torch.tensor([0, 1, 2, 0, 1, 2])
    after = before - gain / 2
    after[torch.arange(6), sure] += 1.5 * gain
    belief = SimpleNamespace(proportions=None, crowding=None)
    found = AfterCounts(start=before, belief=belief, model=None, answers=after, twins=(), gain=0.0)
    counts, labels = torch.ones(6, 3, dtype=torch.int64), torch.full((6,), -1)
    made = partial(owner_counts, found, counts, coded=sure, before=before, labels=labels)
    owners = made(homophily=homophily)
    assert owners.lean == pytest.approx(lean)
    assert owners.voice == (0.5 if sureness(after) <= UNSURE else 0)  # many weak voices add up
    for other in (0.05, 1 / 3):
        assert made(homophily=other).lean == made(homophily=other).voice == 0
        assert torch.allclose(made(homophily=other).edge_shares, torch.full((3,), 1 / 3, dtype=torch.float64))


@pytest.mark.parametrize("edges", [1, 2])
def test_the_price_of_the_count_is_that_of_all_edges_that_are_protected(nodes, dense, edges):
    ledger = MemoryLedger("circles")
    method = Moments(epsilon=8.0, protect_edges=edges)
    kept = private_edges(dense, nodes.num_nodes)[0]
    model = method.train(nodes, kept, ledger=ledger, randomness=SystemRandomness())
    price = edges * model.receipt.plan["answer_epsilon"]
    assert price == pytest.approx(0.05 * 8.0)
    assert f"which takes {price!r} of epsilon" in model.choices


@pytest.mark.slow
def test_judges_that_were_set_aside_are_silent_if_there_are_two_tables(unsure, monkeypatch):
    """Their own labels would come back to them by what neighbours are coded with the second time."""
    monkeypatch.setattr(gcon.learn.sample, "_ENOUGH", 1)
    monkeypatch.setattr(gcon.learn.sample, "_ENOUGH_PER_CLASS", 1)
    nodes, edge_index = unsure
    found = blind(nodes)
    model = trained(found, edge_index, epsilon=16.0)
    assert len(model.tables) == 2
    taught = with_validation(found).train_mask
    assert not torch.equal(taught, found.train_mask)
    assert torch.equal(model.labels, torch.where(taught, found.labels, -1))


@pytest.mark.parametrize(("classes", "voice"), [(10, 0.0), (11, 0.5)])
def test_with_many_classes_neighbours_are_heard_however_sure_answers_are(classes, voice):
    sure = torch.eye(classes, dtype=torch.float64)
    belief = SimpleNamespace(proportions=None, crowding=None)
    found = AfterCounts(start=sure, belief=belief, model=None, answers=sure, twins=(), gain=0.0)
    made = partial(owner_counts, found, torch.ones_like(sure), coded=sure.argmax(dim=1), before=sure)
    assert made(labels=torch.full((classes,), -1), homophily=0.5).voice == voice


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_own_edges_are_left_out_only_if_they_are_worse_by_more_than_the_noise(nodes, dense, sparse, kind, monkeypatch):
    edges, epsilon = {"dense": (dense, 8.0), "sparse": (sparse, 0.3)}[kind]
    model = trained(nodes, edges, epsilon=epsilon)
    alone = int((model.best_answers.argmax(dim=1) == nodes.labels)[nodes.validation_mask].sum())
    deviation = model.receipt.plan["releases"][-1]["standard_deviation"]
    least = math.ceil(alone - 3 * deviation - 0.03 * model.asked)
    for right, used in ((least, True), (least - 1, False), (10**6, True), (-(10**6), False)):
        monkeypatch.setattr(NoisyCount, "apply", lambda self, edges, randomness, right=right: right)
        found = trained(nodes, edges, epsilon=epsilon)
        assert (found.right, found.own_edges) == (right, used)
        way = {True: ExactCounts if kind == "dense" else Evidence, False: PublishedAnswers}[used]
        assert isinstance(found.scorer().way, way)
        assert torch.equal(found.best_answers, model.best_answers)


def test_without_counts_cached_is_none_and_the_card_says_so(nodes, dense, sparse):
    words = "No counts were released, so access `cached` gives what `none` gives."
    for edges, epsilon, counts in ((sparse, 0.3, False), (dense, 8.0, True)):
        model = trained(nodes, edges, epsilon=epsilon)
        none, cached = (predict_without_edges(model, nodes.features, access=each) for each in ("none", "cached"))
        assert torch.equal(none.probabilities, cached.probabilities) != counts
        assert (words in release_files(model)["README.md"].decode()) != counts


def test_how_owners_are_answered_was_counted_as_it_is_later(nodes, dense, sparse):
    """What the account counted with is what the model has: single precision and all."""
    for edges, epsilon in ((dense, 8.0), (sparse, 0.3)):
        model = trained(nodes, edges, epsilon=epsilon)
        seen = []

        def watched(*given, seen=seen):
            seen.append(owners_way(*given))
            return seen[-1]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gcon.methods.moments, "owners_way", watched)
            trained(nodes, edges, epsilon=epsilon)
        [(way, made)] = seen
        rows = made[:]
        scorer = replace(model, own_edges=True).scorer()
        assert torch.equal(scorer.rows, rows)
        assert type(scorer.way) is type(way)
        assert torch.equal(scorer.way.said(rows), way.said(rows))


@pytest.mark.parametrize(
    ("kind", "epsilon", "tables"),
    [("unsure", 0.3, 0), ("unsure", 8.0, 2), ("unsure", 16.0, 2), ("labelled", 8.0, 1)],
)
def test_a_store_of_edges_gives_the_same_bits(kind, epsilon, tables, tmp_path, monkeypatch, request):
    """Blocks of a few neighbours, cut where edges say, in and outside of the pieces that scores are made in."""
    monkeypatch.setattr(gcon.methods.evidence, "_PIECE_ROWS", 16)
    nodes, edge_index = request.getfixturevalue(kind)
    write_edge_store([edge_index.numpy()], tmp_path / "edges", num_nodes=100)
    stored = Private(StoredEdges(tmp_path / "edges", 64), "stored edges")
    here, there = (trained(nodes, edges, epsilon=epsilon) for edges in (edge_index, stored))
    assert len(here.tables) == tables
    assert all(each.one_way == (kind == "labelled") for each in here.tables)
    assert release_files(here) == release_files(there)
    own = [
        predict_from_own_edges(model, nodes.features, edges, ledger=MemoryLedger()).probabilities
        for model, edges in ((here, private_edges(edge_index, 100)[0]), (there, stored))
    ]
    assert torch.equal(*own)


def test_charged_once_and_before_edges_are_opened(nodes, dense, monkeypatch):
    ledger, events = MemoryLedger("circles"), []
    for mechanism, name in ((EdgeMoments, "precisely"), (NeighbourCounts, "apply"), (NoisyCount, "apply")):
        real = getattr(mechanism, name)

        def watched(self, *given, real=real):
            events.append([(entry.outcome, entry.request.cost) for entry in ledger.entries()])
            return real(self, *given)

        monkeypatch.setattr(mechanism, name, watched)
    model = trained(nodes, dense, epsilon=8.0, delta=1e-4, ledger=ledger, randomness=SystemRandomness(), purpose="test")
    assert events == [[(Outcome.RESERVED, Budget(8.0, 1e-4))]] * 4
    (entry,) = ledger.entries()
    assert (entry.request.kind, entry.outcome, entry.request.purpose) == (Kind.RELEASE, Outcome.RELEASED, "test")
    assert entry.request.plan == {**model.receipt.plan, "releases": []}  # what comes second is not known in advance
    assert released(model) == ["edge moments", "edge moments", "neighbour counts", "answers"]
    assert model.receipt.plan["first_share"] == FIRST_SHARE
    assert ledger.total() == model.receipt.budget == model.receipt.total == Budget(8.0, 1e-4)
    assert model.receipt.keeps_promise
    assert model.receipt.mechanism == "mixed release (moments)"


def test_a_refused_budget_reads_nothing(nodes):
    ledger, stages = MemoryLedger("circles", ceiling=Budget(1.0, 1e-5)), []
    with pytest.raises(BudgetExceededError):
        trained(
            nodes,
            Private(Untouchable(), "edges that must not be read"),
            epsilon=1.5,
            ledger=ledger,
            progress=stages.append,
        )
    assert ledger.total() == NOTHING
    assert stages == []  # refused before anything is learned


def test_what_is_told_on_the_way(nodes, dense, sparse):
    for edges, epsilon, counts in ((dense, 8.0, True), (sparse, 0.3, False), (dense[:, :0], 8.0, False)):
        stages = []
        model = trained(nodes, edges, epsilon=epsilon, progress=stages.append)
        assert (model.cached is not None) == counts
        assert stages == [*FIRST, *(["learn from the first release"] if counts else []), *LAST]


def test_infinite_epsilon_promises_nothing(nodes, dense):
    ledger = MemoryLedger("circles")
    model = trained(nodes, dense, epsilon=math.inf, ledger=ledger, randomness=SystemRandomness())
    assert not model.receipt.keeps_promise
    assert math.isinf(ledger.total().epsilon)
    assert "There is no promise: no noise was added." in model.statement().sentences
    assert [each.standard_deviation for each in (*model.statistics, *model.tables)] == [0.0] * 3


def test_noise_from_a_seed_promises_nothing(nodes, dense):
    ledger = MemoryLedger("circles")
    model = trained(nodes, dense, epsilon=1.0, ledger=ledger)
    assert not model.receipt.keeps_promise
    assert math.isinf(ledger.total().epsilon)
    assert any("drawn from a seed" in sentence for sentence in model.statement().sentences)
    assert all(each.standard_deviation > 0 for each in (*model.statistics, *model.tables))


def test_a_failure_between_the_releases_tells_its_own_words_and_stays_charged(nodes, dense, monkeypatch):
    """Public code sees released numbers alone, so its error may say them; they were released, so they are charged."""

    def failing(counts, answers, nodes):
        raise RuntimeError(f"the noisy sum is {counts.value.sum()}")

    monkeypatch.setattr(gcon.methods.moments, "graph_facts", failing)
    ledger = MemoryLedger("circles")
    with pytest.raises(RuntimeError, match="the noisy sum is"), transcript() as lines:
        trained(nodes, dense, epsilon=1.0, ledger=ledger, randomness=SystemRandomness())
    assert len(lines) == 2
    assert [entry.outcome for entry in ledger.entries()] == [Outcome.RELEASED]
    assert ledger.total().epsilon == 1.0


@pytest.mark.parametrize("call", [0, 1, 2, 3])
def test_a_failure_inside_a_release_stays_charged_and_tells_nothing(nodes, dense, monkeypatch, call):
    calls = []
    for mechanism, name in ((EdgeMoments, "precisely"), (NeighbourCounts, "apply"), (NoisyCount, "apply")):
        real = getattr(mechanism, name)

        def failing(self, edges, *others, real=real):
            calls.append(type(self))
            if len(calls) == call + 1:
                raise RuntimeError(f"{edges.columns.sum()}")
            return real(self, edges, *others)

        monkeypatch.setattr(mechanism, name, failing)
    ledger = MemoryLedger("circles")
    with pytest.raises(PrivateComputationError) as raised:
        trained(nodes, dense, epsilon=8.0, ledger=ledger, randomness=SystemRandomness())
    assert len(calls) == call + 1
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    assert not any(character.isdigit() for character in str(raised.value))
    assert [entry.outcome for entry in ledger.entries()] == [Outcome.RELEASED if call else Outcome.WITHHELD]
    assert ledger.total().epsilon == 8.0


def test_test_labels_and_unlabelled_nodes_change_nothing(nodes, dense):
    model = trained(nodes, dense)
    known = nodes.train_mask | nodes.validation_mask
    blind = replace(nodes, labels=torch.where(known, nodes.labels, -1), test_mask=torch.zeros_like(known))
    assert release_files(trained(blind, dense))["model.safetensors"] == release_files(model)["model.safetensors"]


@pytest.mark.slow
@pytest.mark.parametrize("change", ["no edges", "no validation", "features of zero", "two nodes", "every node known"])
def test_unusual_input(nodes, dense, change):
    edges, given = dense, nodes
    if change == "no edges":
        edges = dense[:, :0]
    elif change == "no validation":
        given = replace(nodes, validation_mask=torch.zeros_like(nodes.validation_mask))
    elif change == "features of zero":
        given = replace(nodes, features=torch.zeros_like(nodes.features))
    elif change == "every node known":
        nobody = torch.zeros_like(nodes.train_mask)
        given = replace(nodes, train_mask=~nobody, validation_mask=nobody, test_mask=nobody)
    else:
        nobody = torch.zeros(2, dtype=torch.bool)
        masks = {"train_mask": ~nobody, "validation_mask": nobody, "test_mask": nobody}
        given = replace(nodes, features=nodes.features[:2], labels=torch.tensor([0, 1]), **masks)
        edges = torch.tensor([[0], [1]])
    for epsilon in (0.3, 8.0, 100.0, math.inf):
        model = trained(given, edges, epsilon=epsilon)
        assert model.best_answers.isfinite().all()
        assert own_answers(model, given, edges).probabilities.isfinite().all()
        assert float((model.best_answers.sum(dim=1) - 1).abs().max()) < 1e-5
        assert model.encoder.probabilities(given.features).isfinite().all()
        assert release_files(model)


@pytest.mark.parametrize(
    "change",
    [{"epsilon": 0.0}, {"epsilon": math.nan}, {"delta": 0.0}, {"delta": 1.0}, {"seed": -1}, {"seed": 1.5}],
    ids=str,
)
def test_wrong_settings_are_refused_when_they_are_made(change):
    with pytest.raises(InputError):
        Moments(**{"epsilon": 1.0, **change})


def test_the_seed_of_the_networks_is_not_that_of_the_noise(nodes, dense):
    one, two = (trained(nodes, dense, seed=0, randomness=SystemRandomness()) for _ in range(2))
    for first, second in zip([*one.statistics, *one.tables], [*two.statistics, *two.tables], strict=True):
        assert not torch.equal(first.value, second.value)


def test_edges_come_in_as_private_ones_only():
    assert "Private" in str(inspect.signature(Moments.train).parameters["edges"].annotation)


def test_the_device_is_checked_before_anything_is_paid():
    assert Moments(epsilon=1.0).device == "auto"
    assert Moments(epsilon=1.0, device="cpu").device == "cpu"
    with pytest.raises(InputError, match="device"):
        Moments(epsilon=1.0, device="tpu")


def test_a_part_of_the_training_table_is_answered_as_nodes_never_seen_and_says_so(nodes, sparse):
    model = trained(nodes, sparse)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AnswersWarning)
        predict_without_edges(model, nodes.features)
        predict_without_edges(model, nodes.features + 1)  # others
    with pytest.warns(AnswersWarning, match="as nodes never seen"):
        part = predict_without_edges(model, nodes.features.flip(0))
    new = predict_without_edges(model, nodes.features.flip(0) + 1e-6)
    assert torch.allclose(part.probabilities, new.probabilities, atol=1e-3)
