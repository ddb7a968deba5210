"""Threads: a small table is trained on one, whatever the machine has, and the pools are as before afterwards."""

import importlib

import pytest
import torch
from threadpoolctl import threadpool_info

import gcon
from gcon.cli import demo
from gcon.errors import InputError
from gcon.learn.believed_counts import CountBelief
from gcon.machine import side_by_side, threads_for
from gcon.methods.controls import MomentsWithoutEdges
from gcon.methods.moments import Moments
from gcon_lab.methods.fitted import fit


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    assert torch.get_num_threads() == 2  # restored
    torch.set_num_threads(before)


@pytest.mark.parametrize(("size", "threads"), [((20_000, 200), 1), ((20_001, 1), 2), ((1000, 4001), 2), ((0, 0), 1)])
def test_size_decides(size, threads, two_threads):
    with threads_for(*size):
        assert torch.get_num_threads() == threads


def test_all_pools_are_restored_after_a_failure(two_threads):
    before = [pool["num_threads"] for pool in threadpool_info()]
    with pytest.raises(ZeroDivisionError), threads_for(10, 10):
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}
        raise ZeroDivisionError
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_a_small_fit_has_one_thread_and_the_same_bits(two_threads):
    graph, seen = gcon.datasets.social_circles(120, num_classes=2, seed=1), []

    def look(stage, share):
        if share < 1:  # not yet done
            seen.append(torch.get_num_threads())

    def fit():
        return gcon.NodeClassifier(random_state=1, callback=look).fit(graph).model_.answers

    first = fit()
    assert set(seen) == {1}
    torch.set_num_threads(1)
    assert torch.equal(first, fit())
    torch.set_num_threads(2)


def test_side_by_side_every_part_has_one_thread(two_threads):
    done = {}
    side_by_side(lambda part: done.update({part: torch.get_num_threads()}), range(20))
    assert done == dict.fromkeys(range(20), 1)
    pools = [pool["num_threads"] for pool in threadpool_info()]
    with pytest.raises(ZeroDivisionError):
        side_by_side(lambda part: 1 / part, [1, 0])
    assert [pool["num_threads"] for pool in threadpool_info()] == pools


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_what_counts_say_of_many_nodes_has_the_same_bits_on_any_threads(threads, two_threads):
    """Sums over classes and codes of 2,000 nodes at a time are large enough for torch to split them between threads."""
    generator = torch.Generator().manual_seed(3)
    noisy = torch.randint(-5, 20, (6_000, 10), generator=generator)
    answers = torch.softmax(torch.randn(6_000, 10, generator=generator), dim=1)
    belief, parts = CountBelief.fitted(noisy, 3.0, answers), torch.arange(6_000).split(2_000)
    evidence = torch.empty(6_000, 10, dtype=torch.float64)

    def hear(part):
        evidence[part] = belief.of(noisy[part], 3.0, answers[part]).evidence

    torch.set_num_threads(1)
    expected = torch.cat([belief.of(noisy[part], 3.0, answers[part]).evidence for part in parts])
    torch.set_num_threads(threads)
    side_by_side(hear, parts)
    torch.set_num_threads(2)
    assert torch.equal(evidence, expected)


@pytest.mark.parametrize("way", ["train", "demo", "method", "advise"])
def test_other_ways_to_train_have_one_thread_too(way, two_threads, run, tmp_path, monkeypatch):
    seen = []
    monkeypatch.delenv("GCON_DATA", raising=False)  # the demo would take a larger graph from there

    def train(*_, **__):
        seen.append(torch.get_num_threads())
        raise InputError("this", rule="is far enough", got="it", fix="None.")

    assert run("data", "make", "--out", tmp_path, "--nodes", 60, "--classes", 2)[0] == 0
    files = ("--nodes", tmp_path / "nodes.csv", "--edges", tmp_path / "edges.csv")
    monkeypatch.setattr(Moments, "train", train)
    monkeypatch.setattr(MomentsWithoutEdges, "learn", train)
    facts = importlib.import_module("gcon.choose.public_facts")  # the package has a function of this name
    monkeypatch.setattr(facts, "learn_without_edges", train)
    monkeypatch.setattr(demo, "NUM_NODES", 300)
    if way == "method":
        with pytest.raises(InputError):
            fit(Moments(epsilon=1.0), gcon.datasets.social_circles(120, num_classes=2))
    else:
        options = {
            "train": ("train", *files, "--epsilon", 1, "--out", tmp_path / "model"),
            "demo": ("demo", "--out", tmp_path / "demo"),
            "advise": ("advise", "--nodes", tmp_path / "nodes.csv"),
        }[way]
        assert run(*options)[0] == 2
    assert seen == [1]
