"""Neighbour counts: one edge changes two entries by 1, on every small graph and on searched ones; the same table everywhere."""

import itertools
import math

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.edges.kernels import multiply_plain
from tests.mechanisms.counting import Counting

from gcon.edges.edge_list import private_edges, public_edges
from gcon.edges.kernels import multiply, multiply_numba, multiply_torch
from gcon.edges.source import LocalEdges, RowBlock, block_slices
from gcon.edges.stored import StoredEdges
from gcon.errors import InputError, PlanMismatchError
from gcon.files.edge_store import write_edge_store
from gcon.mechanisms.counts import CHANGED_ENTRIES, NeighbourCounts, counted_rate, geometric_deviation
from gcon.mechanisms.gaussian_release import gaussian_plan
from gcon.privacy.account import spend
from gcon.privacy.budget import NOTHING
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.plan import PROOF_PAGES
from gcon.privacy.randomness import SystemRandomness


def edges_of(pairs, size):
    return public_edges(torch.tensor(list(pairs), dtype=torch.int64).reshape(-1, 2).T, size)


def counted(edges, codes, num_codes, **kind):
    """The table without noise."""
    mechanism = NeighbourCounts(codes=torch.as_tensor(codes), num_codes=num_codes, rate=math.inf, **kind)
    return mechanism.apply(edges, SystemRandomness()).value


def check_change(pairs, dropped, codes, num_codes):
    size = len(codes)
    change = counted(edges_of(pairs, size), codes, num_codes) - counted(
        edges_of([pair for pair in pairs if pair != dropped], size), codes, num_codes
    )
    u, v = dropped
    places = change.nonzero().tolist()
    assert sorted(places) == sorted([[u, int(codes[v])], [v, int(codes[u])]])
    assert len({row for row, _ in places}) == len(places) == CHANGED_ENTRIES
    assert [int(change[row, column]) for row, column in places] == [1, 1]


# --- sensitivity ------------------------------------------------------------------------------------------------------


def test_every_edge_of_every_small_graph():
    """All graphs with up to five nodes, all their edges, all codes of two classes."""
    tried = 0
    for atlas in networkx.graph_atlas_g()[1:53]:
        size, pairs = atlas.number_of_nodes(), list(atlas.edges)
        for codes in itertools.product(range(2), repeat=size):
            full = counted(edges_of(pairs, size), list(codes), 2)
            for u, v in pairs:
                less = counted(edges_of([pair for pair in pairs if pair != (u, v)], size), list(codes), 2)
                change = full - less
                assert int((change != 0).sum()) == CHANGED_ENTRIES
                assert int(change[u, codes[v]]) == int(change[v, codes[u]]) == 1
                tried += 1
    assert tried > 5000


@pytest.mark.parametrize("num_codes", [1, 3, 40])
def test_random_codes_of_any_number(num_codes):
    random = np.random.default_rng(num_codes)
    for seed in range(10):
        pairs = list(networkx.gnp_random_graph(12, 0.4, seed=seed).edges)
        codes = random.integers(0, num_codes, 12)
        check_change(pairs, pairs[seed % len(pairs)], codes, num_codes)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(data=st.data())
def test_searched_graphs(data):
    size = data.draw(st.integers(2, 12))
    every = list(itertools.combinations(range(size), 2))
    pairs = data.draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    num_codes = data.draw(st.integers(1, 6))
    codes = data.draw(st.lists(st.integers(0, num_codes - 1), min_size=size, max_size=size))
    check_change(pairs, data.draw(st.sampled_from(pairs)), codes, num_codes)


def one_way_cost(pairs, dropped, codes, num_codes):
    """What an edge changes in a one-way table, each entry in units of the rate of its row: the epsilon over the rate."""
    size = len(codes)
    full = counted(edges_of(pairs, size), codes, num_codes, one_way=True)
    less = counted(edges_of([pair for pair in pairs if pair not in dropped], size), codes, num_codes, one_way=True)
    assert torch.equal(full, one_way_by_hand(pairs, codes, num_codes))
    return sum(
        abs(change) * (counted_rate(1.0) if codes[row] >= 0 else 1.0)
        for row, changes in enumerate((full - less).tolist())
        for change in changes
    )


def one_way_by_hand(pairs, codes, num_codes):
    table = torch.zeros(len(codes), num_codes, dtype=torch.int64)
    for one, other in (*pairs, *((other, one) for one, other in pairs)):
        if codes[other] >= 0:
            table[one, codes[other]] += 1
    return table


def test_one_way_every_edge_of_every_small_graph():
    """Up to four nodes, everybody with one of two codes or without: an edge costs the rate, or nothing between two without."""
    costs = set()
    for atlas in networkx.graph_atlas_g()[1:19]:
        size, pairs = atlas.number_of_nodes(), list(atlas.edges)
        for codes in itertools.product((-1, 0, 1), repeat=size):
            for u, v in pairs:
                cost = one_way_cost(pairs, [(u, v)], list(codes), 2)
                assert cost == (0 if codes[u] < 0 and codes[v] < 0 else 1)
                costs.add((cost, (codes[u] < 0) + (codes[v] < 0)))
    assert costs == {(0, 2), (1, 1), (1, 0)}


@settings(max_examples=120, deadline=None, derandomize=True)
@given(data=st.data())
def test_one_way_searched_graphs_and_several_edges(data):
    size = data.draw(st.integers(2, 12))
    every = list(itertools.combinations(range(size), 2))
    pairs = data.draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    num_codes = data.draw(st.integers(1, 6))
    codes = data.draw(st.lists(st.integers(-1, num_codes - 1), min_size=size, max_size=size))
    dropped = data.draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=10, unique=True))
    assert one_way_cost(pairs, dropped, codes, num_codes) <= len(dropped)


def test_hygiene_comes_first():
    """Both directions, an edge twice, a loop: one edge is one edge, or it would change entries by 2."""
    codes = [0, 1, 1]
    clean = counted(edges_of([(0, 1), (1, 2)], 3), codes, 2)
    assert torch.equal(counted(edges_of([(0, 1), (1, 0), (0, 1), (2, 1), (2, 2)], 3), codes, 2), clean)
    assert clean.tolist() == [[0, 1], [1, 1], [0, 1]]
    assert counted(edges_of([], 3), codes, 2).sum() == 0


# --- the same whole numbers everywhere --------------------------------------------------------------------------------

SIZE, CODES = 90, torch.randint(4, (90,), generator=torch.Generator().manual_seed(3))
GRAPH = networkx.gnp_random_graph(SIZE, 0.2, seed=5)
EDGES = edges_of(GRAPH.edges, SIZE)
DENSE = torch.from_numpy(networkx.to_numpy_array(GRAPH)).long() @ torch.nn.functional.one_hot(CODES, 4)


class Blocks(LocalEdges):
    """Edges that come in blocks of so many neighbours, as from a file."""

    def __init__(self, most_entries):
        self.num_nodes, self.most_entries = SIZE, most_entries

    def blocks(self, device):
        pointers = EDGES.row_pointers
        for nodes in block_slices(pointers, self.most_entries):
            first, last = int(pointers[nodes.start]), int(pointers[nodes.stop])
            rows = pointers[nodes.start : nodes.stop + 1] - first
            yield RowBlock(nodes, rows, EDGES.columns[first:last], SIZE).to(device)


@pytest.mark.parametrize("kernel", [multiply_numba, multiply_torch, multiply_plain], ids=["numba", "torch", "plain"])
def test_every_kernel_counts_the_same(kernel, monkeypatch):
    monkeypatch.setitem(multiply.KERNELS, "cpu", kernel.__name__)
    for dtype in (torch.int64, torch.int32, torch.uint8):
        found = counted(EDGES, CODES.to(dtype), 4)
        assert found.dtype == torch.int64
        assert torch.equal(found, DENSE)


def test_memory_blocks_and_a_file_count_the_same(tmp_path):
    write_edge_store([np.array(list(GRAPH.edges)).T], tmp_path / "edges.csr", num_nodes=SIZE)
    sources = [EDGES, StoredEdges(tmp_path / "edges.csr", 64), *(Blocks(entries) for entries in (1, 17, 10**6))]
    for edges in sources:
        assert torch.equal(counted(edges, CODES, 4), DENSE)


def test_noise_is_added_to_the_table_as_it_is(monkeypatch):
    mechanism = NeighbourCounts(codes=CODES, num_codes=4, rate=0.3)
    asked = []
    monkeypatch.setattr(
        "gcon.mechanisms.counts.two_sided_geometric_numbers",
        lambda randomness, rate, *shape: asked.append((rate, shape)) or torch.full(shape, 7),
    )
    found = mechanism.apply(EDGES, SystemRandomness())
    assert torch.equal(found.value, DENSE + 7)
    assert asked == [(0.3, (SIZE, 4))]
    assert found.standard_deviation == mechanism.record["standard_deviation"] == geometric_deviation(0.3)


def test_one_way_tables_have_twice_the_noise_in_the_rows_of_those_who_are_counted(monkeypatch):
    codes = torch.where(CODES == 3, -1, CODES)
    mechanism = NeighbourCounts(codes=codes, num_codes=3, rate=0.3, one_way=True)
    monkeypatch.setattr(
        "gcon.mechanisms.counts.two_sided_geometric_numbers",
        lambda randomness, rate, *shape: torch.full(shape, round(100 * rate)),
    )
    found = mechanism.apply(EDGES, SystemRandomness())
    rows = torch.where(codes < 0, 30, 15)[:, None]
    assert torch.equal(found.value, DENSE[:, :3] + rows)
    assert found.one_way
    assert found.standard_deviation == mechanism.record["standard_deviation"] == geometric_deviation(0.3)
    assert mechanism.record["counted_deviation"] == geometric_deviation(0.15)
    assert mechanism.deviations.tolist() == [geometric_deviation(0.3 if code < 0 else 0.15) for code in codes.tolist()]


@pytest.mark.parametrize("nobody", [True, False])
def test_one_way_where_nobody_or_everybody_is_counted(nobody):
    codes = torch.full((SIZE,), -1) if nobody else CODES
    mechanism = NeighbourCounts(codes=codes, num_codes=4, rate=20.0, one_way=True)  # noise that is mostly 0
    noise = mechanism.apply(EDGES, SystemRandomness()).value - (0 if nobody else DENSE)
    assert int(noise.abs().max()) < 4
    assert mechanism.deviations.tolist() == [geometric_deviation(20.0 if nobody else 10.0)] * SIZE


def test_one_way_tables_are_the_same_in_blocks_and_on_disk(tmp_path):
    codes = torch.where(CODES == 3, -1, CODES)
    write_edge_store([np.array(list(GRAPH.edges)).T], tmp_path / "edges.csr", num_nodes=SIZE)
    for edges in (EDGES, StoredEdges(tmp_path / "edges.csr", 64), Blocks(17)):
        assert torch.equal(counted(edges, codes, 3, one_way=True), DENSE[:, :3])


def test_every_entry_gets_noise_of_its_own():
    """Also the empty ones: which entries are zero is private."""
    found = NeighbourCounts(codes=CODES, num_codes=4, rate=0.01).apply(EDGES, SystemRandomness()).value
    noise = found - DENSE
    assert (noise == 0).float().mean() < 0.1  # 0.005 expected
    assert len(torch.unique(noise, dim=0)) == SIZE
    assert found.shape == DENSE.shape


def test_a_single_node_has_no_edge_and_gets_no_noise():
    counting = Counting()
    alone = NeighbourCounts(codes=torch.tensor([0]), num_codes=2, rate=0.5)
    assert alone.apply(edges_of([], 1), counting).value.tolist() == [[0, 0]]
    assert not alone.reads_edges
    assert not counting.taken
    two = NeighbourCounts(codes=torch.tensor([0, 0]), num_codes=1, rate=0.5)
    two.apply(edges_of([], 2), counting)
    assert two.reads_edges
    assert counting.taken


def test_the_deviation_is_that_of_the_noise():
    for rate in (1e-6, 0.1, 0.367734736468, 3.0, 100.0):
        decay = math.exp(-rate)
        assert geometric_deviation(rate) == pytest.approx(math.sqrt(2 * decay) / (1 - decay), rel=1e-9)
    assert geometric_deviation(math.inf) == 0
    assert geometric_deviation(1e-9) == pytest.approx(math.sqrt(2) * 1e9)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codes", "num_codes"),
    [
        (torch.tensor([0.0, 1.0]), 2),
        (torch.tensor([[0, 1]]), 2),
        (torch.tensor(1), 2),
        (torch.tensor([0, 2]), 2),
        (torch.tensor([-1, 1]), 2),
        (torch.tensor([0, 0]), 0),
        (torch.tensor([], dtype=torch.int64), 2),
    ],
)
def test_what_is_no_code_is_refused(codes, num_codes):
    with pytest.raises(InputError, match="codes"):
        NeighbourCounts(codes=codes, num_codes=num_codes, rate=1.0)


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, -math.inf, 1e-10, 1e4])
def test_what_is_no_rate_is_refused_before_edges_are_opened(rate):
    with pytest.raises(PlanMismatchError, match="rate"):
        NeighbourCounts(codes=torch.tensor([0, 1]), num_codes=2, rate=rate)
    changed = NeighbourCounts(codes=torch.tensor([0, 1]), num_codes=2, rate=1.0)
    object.__setattr__(changed, "rate", rate)
    with pytest.raises(PlanMismatchError, match="rate"):
        changed.check()


@pytest.mark.parametrize(
    "change", [{"one_way": 1}, {"one_way": torch.tensor(True)}, {"rounds": 1.0}, {"rounds": True}], ids=str
)
def test_kinds_are_what_they_say(change):
    with pytest.raises(PlanMismatchError, match="one-way or not"):
        NeighbourCounts(codes=torch.tensor([0, 0]), num_codes=1, rate=1.0, **change)


def test_one_way_codes_that_change_while_neighbours_are_counted_change_nothing():
    codes = torch.where(CODES == 3, -1, CODES)
    kept, counting = codes.clone(), NeighbourCounts(codes=codes, num_codes=3, rate=1000.0, one_way=True)

    class Changing(Blocks):
        def blocks(self, device):
            yield from super().blocks(device)
            codes.fill_(-1)

    found = counting.apply(Changing(17), SystemRandomness()).value
    assert bool((codes == -1).all())
    assert torch.equal(found, counted(EDGES, kept, 3, one_way=True))


def test_one_way_rates_leave_room_for_the_halves():
    with pytest.raises(PlanMismatchError, match="rate"):
        NeighbourCounts(codes=torch.tensor([0, -1]), num_codes=1, rate=1.5e-9, one_way=True)
    NeighbourCounts(codes=torch.tensor([0, -1]), num_codes=1, rate=2.5e-9, one_way=True)
    with pytest.raises(InputError, match="from -1 to 0"):
        NeighbourCounts(codes=torch.tensor([0, -2]), num_codes=1, rate=1.0, one_way=True)


def test_codes_of_another_graph_are_refused():
    with pytest.raises(InputError, match="one per node"):
        NeighbourCounts(codes=torch.tensor([0, 1]), num_codes=2, rate=1.0).apply(EDGES, SystemRandomness())


def test_codes_are_checked_again_before_a_release():
    mechanism = NeighbourCounts(codes=torch.tensor([0, 1]), num_codes=2, rate=1.0)
    mechanism.codes[0] = 5
    with pytest.raises(InputError, match="codes"):
        mechanism.check()


def test_no_other_plan_pays_for_it():
    private, _ = private_edges(torch.tensor([[0], [1]]), 2)
    mechanism, ledger = NeighbourCounts(codes=torch.tensor([0, 1]), num_codes=2, rate=1.0), MemoryLedger("pair")
    plan = gaussian_plan(1.0, 1e-5, method="test")
    with (
        spend(private, plan, ledger=ledger, randomness=SystemRandomness(), purpose="test") as account,
        pytest.raises(PlanMismatchError),
    ):
        account.release(mechanism)
    assert ledger.total() == NOTHING
    assert not hasattr(mechanism, "budget")  # so that nothing releases it alone, at a price of its own
    assert PROOF_PAGES[type(mechanism)] == "neighbour-counts"


def test_the_record_is_public_numbers():
    record = NeighbourCounts(codes=CODES, num_codes=4, rate=0.3, rounds=2).record
    assert record["statistic"] == "neighbour counts"
    assert (record["columns"], record["rate"], record["rounds"]) == (4, 0.3, 2)
    assert record["standard_deviation"] == pytest.approx(4.7, abs=0.1)
