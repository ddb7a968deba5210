"""Tables of nodes x classes that a large training holds, counted as tensors: one more of them shows without a large machine."""

from types import SimpleNamespace

import pytest
import torch

from gcon.edges.edge_list import public_edges
from gcon.learn import believed_counts, sample
from gcon.learn.after_counts import CountModel
from gcon.learn.believed_counts import CountBelief
from gcon.methods import evidence
from gcon.methods.evidence import scores_with_own_edges
from gcon.methods.moments import OwnerCounts, owner_counts, owners_way
from gcon_lab.bench.live_tensors import LiveTensors

NODES, CLASSES = 60_000, 10
TABLE = 8 * NODES * CLASSES  # bytes


@pytest.fixture(scope="module")
def answers():
    return torch.rand(NODES, CLASSES, generator=torch.Generator().manual_seed(1)).softmax(dim=1)


@pytest.fixture(scope="module")
def noisy():
    return torch.randint(-5, 40, (NODES, CLASSES), generator=torch.Generator().manual_seed(2))


def most(work, *inputs):
    """Bytes of tensors at their peak, in tables, beside the inputs and with the result."""
    with LiveTensors() as live:
        work()
    return (live.peak - sum(each.nbytes for each in inputs)) / TABLE


def test_believed_counts_need_their_result_and_blocks(answers, noisy, monkeypatch):
    assert NODES > sample.EXACT_NODES
    belief = CountBelief.fitted(noisy[:1000], 3.0, answers[:1000])
    monkeypatch.setattr(
        believed_counts, "_PIECE", 2**14
    )  # a piece is as long whatever the graph: small beside a table here
    assert most(lambda: belief.of(noisy, 3.0, answers), noisy, answers) < 2.5  # two tables, and a piece
    labels = (torch.arange(NODES) % (2 * CLASSES) - CLASSES).clamp_min(-1)
    assert most(lambda: owners(answers, noisy, labels), answers, noisy, labels) < 3


def owners(answers, noisy, labels):
    """What owners need, of answers that these counts made; the codes are nobody's."""
    belief = SimpleNamespace(proportions=None, crowding=None)
    found = SimpleNamespace(answers=answers, start=answers, belief=belief, model=None)
    return owner_counts(found, noisy, coded=labels, before=answers, labels=labels, homophily=0.5)


def test_blocks_change_last_bits_alone(answers, noisy, monkeypatch):
    labels = (torch.arange(NODES) % (2 * CLASSES) - CLASSES).clamp_min(-1)
    found = owners(answers, noisy, labels)
    monkeypatch.setattr(sample, "EXACT_NODES", NODES)
    again = owners(answers, noisy, labels)
    for name in ("edge_shares", "edge_messages"):
        torch.testing.assert_close(getattr(found, name), getattr(again, name), rtol=1e-9, atol=1e-12)


@pytest.fixture(scope="module")
def asking(answers):
    """The way of owners with counts, their rows, a graph and a few nodes that are asked."""
    generator = torch.Generator().manual_seed(3)
    model = CountModel(
        torch.tensor([0.5, 0.5], dtype=torch.float64),
        torch.randn(2, 5 * CLASSES + 1, CLASSES, generator=generator, dtype=torch.float64) / 10,
    )
    counts = OwnerCounts(
        start=answers,
        codes=torch.arange(NODES) % CLASSES,
        model=model,
        proportions=torch.full((CLASSES, CLASSES), 1 / CLASSES, dtype=torch.float64),
        crowding=torch.ones(CLASSES, dtype=torch.float64),
        edge_shares=torch.full((CLASSES,), 1 / CLASSES, dtype=torch.float64),
        edge_messages=torch.zeros(CLASSES, dtype=torch.float64),
        lean=0.5,
        voice=0.5,
    )
    labels = torch.full((NODES,), -1)
    labels[:100] = 3
    way, rows = owners_way(answers, labels, counts, 0.6)
    edges = public_edges(torch.randint(NODES, (2, 5 * NODES), generator=generator), NODES)
    asked = torch.zeros(NODES, dtype=torch.bool)
    asked[torch.randperm(NODES, generator=generator)[:500]] = True
    return way, rows, edges, asked


def test_owners_scores_do_not_hold_four_tables(asking, monkeypatch):
    way, rows, edges, asked = asking
    inputs = (rows.published, rows.counts.start, rows.counts.codes, rows.labels, edges.columns, edges.row_pointers)

    def work():
        return scores_with_own_edges(way, rows, edges, CLASSES, asked=asked)

    whole = most(work, *inputs)
    monkeypatch.setattr(evidence, "_SAID_BYTES", TABLE)
    assert most(work, *inputs) < whole - 2  # ten columns at a time, not forty


def test_columns_at_a_time_and_rows_on_demand_change_no_bit(asking, monkeypatch):
    way, rows, edges, asked = asking
    every = scores_with_own_edges(way, rows[:], edges, CLASSES)
    assert torch.equal(scores_with_own_edges(way, rows, edges, CLASSES, asked=asked), every[asked])
    monkeypatch.setattr(evidence, "_SAID_BYTES", TABLE)
    assert torch.equal(scores_with_own_edges(way, rows, edges, CLASSES), every)
    assert torch.equal(scores_with_own_edges(way, rows, edges, CLASSES, asked=asked), every[asked])
    nobody = torch.zeros_like(asked)
    assert scores_with_own_edges(way, rows, edges, CLASSES, asked=nobody).shape == (0, CLASSES)
