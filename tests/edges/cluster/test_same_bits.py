"""A cluster computes what one process does, to the last bit: whoever works, and whoever is lost."""

import math
import os
import signal
import threading
import time
from functools import partial

import numpy as np
import pytest
import torch

from gcon.edges.cluster.coordinator import CoordinatedEdges
from gcon.edges.cluster.placed import PlacedRows
from gcon.edges.schemes import Schemes, propagate
from gcon.errors import BoundaryError, PrivateComputationError
from gcon.learn.believed_counts import with_labels
from gcon.mechanisms.counts import NeighbourCounts
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.methods.evidence import Evidence, ExactCounts, scores_with_own_edges
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.mechanisms.bilinear_sums import BilinearSums
from gcon_lab.mechanisms.class_sums import ClassSums
from gcon_lab.mechanisms.walk_moments import WalkMoments

ROWS = torch.randn(100, 5, generator=torch.Generator().manual_seed(3))
TARGETS = torch.eye(4)[torch.arange(100) % 4]
SCHEMES = Schemes(restart=0.3, steps=(0, 1, 3))
STATISTICS = [
    EdgeMoments(ROWS),
    ClassSums(ROWS, TARGETS, SCHEMES),
    WalkMoments(ROWS, SCHEMES),
    BilinearSums(ROWS, TARGETS, 2.0),
]


def assert_same(found, expected):
    assert torch.equal(found.value, expected.value)
    assert torch.equal(found.rest, expected.rest)


@pytest.mark.usefixtures("nearness")
@pytest.mark.parametrize("statistic", STATISTICS, ids=lambda statistic: statistic.name)
def test_statistics(both, statistic):
    expected = statistic.precisely(both.here)
    assert expected.value.abs().sum() > 0
    assert_same(both.there.run(statistic.precisely), expected)


@pytest.mark.parametrize("rate", [0.5, math.inf])
def test_neighbour_counts(both, rate):
    counts = NeighbourCounts(codes=torch.arange(100) % 4, num_codes=4, rate=rate)
    here = counts.apply(both.here, SeededRandomness(1))
    assert here.value.abs().sum() > 0
    found = both.there.run(lambda edges: counts.apply(edges, SeededRandomness(1)))
    assert torch.equal(found.value, here.value)


@pytest.mark.parametrize("kind", ["evidence", "counts"])
def test_owners_answers(both, kind):
    answers, labels = torch.softmax(ROWS[:, :4].double(), dim=1), torch.arange(100) % 4
    labels = torch.where(torch.arange(100) < 20, labels, -1)
    if kind == "counts":
        tables = torch.randn(2, 21, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        model = {"table": torch.cat(tables.unbind(), dim=1).numpy(), "weights": np.full(2, 0.5)}
        model |= {"proportions": np.full((4, 4), 0.15) + 0.4 * np.eye(4), "crowding": np.full(4, 1.5)}
        shares, weights = torch.full((4,), 0.25).double(), {"homophily": 0.8, "lean": 1.0, "voice": 0.5}
        way = ExactCounts(**model, edge_shares=shares, edge_messages=0 * shares, shares=shares, **weights)
        heard = with_labels(answers, labels)
        rows = torch.cat([answers, heard.round(), heard.round(), heard], dim=1)
    else:
        way, rows = Evidence(homophily=0.8, shares=answers.mean(dim=0)), torch.cat([answers, answers], dim=1)
    expected = scores_with_own_edges(way, rows, both.here, 4)
    assert torch.equal(both.there.run(lambda edges: scores_with_own_edges(way, rows, edges, 4)), expected)
    some = torch.arange(100) % 7 == 2  # as for the count of right answers
    found = both.there.run(lambda edges: scores_with_own_edges(way, rows, edges, 4, asked=some))
    assert torch.equal(found, expected[some])


def test_walks_wider_than_a_pass(both):
    features = torch.randn(100, 40, generator=torch.Generator().manual_seed(1))
    for schemes in (Schemes(restart=0.99, steps=(2, math.inf)), Schemes(restart=0.5, steps=(2,), clip=0.1)):
        found = both.there.run(partial(propagate, features=features, schemes=schemes))
        assert torch.equal(found, propagate(both.here, features, schemes))


def test_all_workers_work(both):
    def work(block):
        time.sleep(0.05)
        return os.getpid()

    assert len(set(both.there.run(lambda edges: list(edges.map_blocks(work))))) == 2


def test_shared_matrices_of_any_kind_and_small_ones(both):
    def compute(edges):
        def work(block, numbers, flags, small):
            return numbers[block.nodes], flags[block.columns.long()].sum() + small

        return list(edges.map_blocks(work, torch.arange(100), torch.arange(100) % 3 == 0, torch.tensor([5])))

    numbers, sums = zip(*both.there.run(compute), strict=True)
    assert torch.equal(torch.cat(numbers), torch.arange(100))
    flagged = int((torch.arange(100) % 3 == 0)[both.here.columns.long()].sum())
    assert int(torch.stack(sums).sum()) == flagged + 5 * len(sums)


def armed(flag, *, coordinator):
    """For a worker: kill yourself at your second block, if you are (not) the coordinator and nobody else was faster."""

    def arm():
        from distributed import get_worker

        from gcon.edges.cluster import tasks

        real, calls = tasks.store_at, []

        def deadly(path):
            if not os.path.exists(flag):
                return real(path)
            calls.append(path)
            coordinates = any(task.state == "long-running" for task in get_worker().state.tasks.values())
            if len(calls) > 1 and coordinates == coordinator:
                try:
                    os.unlink(flag)
                except FileNotFoundError:
                    return real(path)
                os.kill(os.getpid(), signal.SIGKILL)
            return real(path)

        tasks.store_at = deadly

    return arm


@pytest.mark.slow
@pytest.mark.parametrize("coordinator", [False, True], ids=["a worker", "the coordinator"])
def test_a_lost_worker_changes_nothing(both, client, tmp_path, coordinator):
    statistic = ClassSums(ROWS, TARGETS, Schemes(restart=0.3, steps=(4,)))
    (tmp_path / "flag").touch()
    client.run(armed(str(tmp_path / "flag"), coordinator=coordinator))
    before = set(client.run(os.getpid).values())
    assert_same(both.there.run(statistic.precisely), statistic.precisely(both.here))
    assert not (tmp_path / "flag").exists()
    client.wait_for_workers(2, timeout=60)
    assert len(before - set(client.run(os.getpid).values())) == 1


def test_an_interrupted_client_stops_the_coordinator(both, tmp_path, interrupts):
    started, stopped = tmp_path / "started", tmp_path / "stopped"

    def compute(edges):
        try:
            while True:
                list(edges.map_blocks(lambda block: time.sleep(0.01)))
                started.touch()
        finally:
            stopped.touch()

    def interrupt():
        until = time.monotonic() + 60
        while not started.exists() and time.monotonic() < until:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        both.there.run(compute)
    thread.join()
    for _ in range(600):
        if stopped.exists():
            break
        time.sleep(0.1)
    assert stopped.exists()


def test_edges_do_not_come_to_the_client(both):
    for refused in (
        lambda: both.there.map_blocks(len),
        lambda: both.there.steps(torch.empty(100, 1), len, len, 1),
    ):
        with pytest.raises(BoundaryError):
            refused()
    with pytest.raises(PrivateComputationError):
        both.there.run(lambda edges: edges)


def _as_whole_numbers(rows):
    return rows.long()


def _as_it_is(block, rows, origin, *, out):
    out.copy_(rows[block.nodes])


def _around(block, _, rows):
    return rows[block.columns.long()].sum(dim=0)


def _read_twice(edges):
    """The origin of steps stands in the second place without the rows of others, and is then read there with them."""
    rows = torch.arange(200, dtype=torch.float64).reshape(100, 2)
    if isinstance(edges, CoordinatedEdges):
        rows = PlacedRows(edges._team, edges._placed(rows)._replace(columns=slice(0, 2)), (100, 2))
    for _ in edges.steps(rows, _as_whole_numbers, _as_it_is, 1):
        pass
    return torch.stack(list(edges.map_blocks(_around, torch.ones(100, 2, dtype=torch.float64), rows))).sum(dim=0)


def test_a_matrix_that_stood_there_without_the_rows_of_others_is_completed(both):
    assert torch.equal(both.there.run(_read_twice), _read_twice(both.here))
