"""Releases from a cluster: paid first, the noise drawn there, and nothing else comes back or is written down."""

import logging
import re
import traceback

import pytest
import torch

from gcon.edges.graph import PrivateGraph
from gcon.edges.schemes import Schemes
from gcon.errors import BudgetExceededError, NoCertificateError, PrivateComputationError
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_release import NoisyStatistic, gaussian_plan
from gcon.methods.moments import Moments
from gcon.methods.objective import Objective
from gcon.privacy.account import Released, spend
from gcon.privacy.boundary import Private
from gcon.privacy.budget import Budget
from gcon.privacy.gates import declassify, diagnose
from gcon.privacy.ledger import MemoryLedger, Outcome
from gcon.privacy.randomness import SeededRandomness, SystemRandomness
from gcon_lab.mechanisms.class_sums import ClassSums

pytestmark = pytest.mark.slow

ROWS = torch.randn(100, 4, generator=torch.Generator().manual_seed(5))
SECRET = "there are 977 edges"


def release(private, *, randomness=None, ledger=None):
    """Two releases, the second of something that is made of the first."""
    plan = gaussian_plan(1.0, 1e-5, method="a test")
    with spend(
        private,
        plan,
        ledger=ledger or MemoryLedger("friendships"),
        randomness=randomness or SystemRandomness(),
        purpose="a test",
    ) as account:
        first = account.release(plan.noisy(EdgeMoments(ROWS), share=0.5))
        sums = ClassSums(ROWS, first.value[torch.arange(100) % 4].abs(), Schemes(0.3, (2,)))
        second = account.release(plan.noisy(sums, share=0.5))
    return Released((first, second), account.receipt)


def test_a_seeded_release_is_the_same_and_the_seed_goes_on(both):
    here, there = SeededRandomness(7), SeededRandomness(7)
    expected, found = release(both.private_here, randomness=here), release(both.private_there, randomness=there)
    assert [each.name for each in found.value] == ["edge moments", "class sums"]
    for one, other in zip(found.value, expected.value, strict=True):
        assert type(one) is NoisyStatistic
        assert torch.equal(one.value, other.value)
    assert here.take(16) == there.take(16)


def test_noise_of_the_system_is_drawn_on_the_cluster(both, monkeypatch):
    def refuse(self, count):
        raise AssertionError("drawn here")

    monkeypatch.setattr(SystemRandomness, "take", refuse)
    with pytest.raises(PrivateComputationError):
        release(both.private_here)
    first, second = release(both.private_there), release(both.private_there)
    assert not torch.equal(first.value[0].value, second.value[0].value)
    assert first.receipt.keeps_promise


def test_the_papers_training_is_the_same(both, parts):
    settings, models = Objective(epsilon=4.0, device="cpu", expand="labelled"), []
    for private in (both.private_here, both.private_there):
        graph = PrivateGraph(parts[0], private, Private(None, "nothing"))
        models.append(settings.train(graph.nodes, graph.edges, ledger=MemoryLedger(), randomness=SeededRandomness(1)))
    assert models[0].weights.abs().sum() > 0
    assert torch.equal(models[0].weights, models[1].weights)


@pytest.mark.slow
def test_our_own_training_is_the_same(both, parts):
    models = [
        Moments(epsilon=4.0).train(parts[0], private, ledger=MemoryLedger(), randomness=SeededRandomness(1))
        for private in (both.private_here, both.private_there)
    ]
    tensors = [model.tensors() for model in models]
    assert tensors[0].keys() == tensors[1].keys()
    assert all(torch.equal(tensor, tensors[1][name]) for name, tensor in tensors[0].items())


def tasks_run(client):
    """The keys of all that the cluster was ever asked to do."""
    return client.run_on_scheduler(
        lambda dask_scheduler: {str(each[0]) for each in dask_scheduler.transition_log if "gcon-" in str(each[0])}
    )


def test_paid_before_any_worker_reads(both, client):
    seen = []

    class Watched(MemoryLedger):
        def reserve(self, request):
            seen.append(tasks_run(client))
            return super().reserve(request)

    before = tasks_run(client)
    release(both.private_there, ledger=Watched("friendships"))
    assert seen == [before]
    after = tasks_run(client)
    assert after - before  # the log of a scheduler is bounded: old keys may have left it
    with pytest.raises(BudgetExceededError):
        release(both.private_there, ledger=MemoryLedger("friendships", ceiling=Budget(0.5, 1e-5)))
    assert tasks_run(client) == after


def test_names_of_tasks_tell_nothing(both, client):
    names = [tasks_run(client)]
    for _ in range(2):
        both.there.run(EdgeMoments(ROWS).precisely)
        names.append(tasks_run(client))
    first, second = names[1] - names[0], names[2] - names[1]
    assert len(first) == len(second) > 3
    assert all(re.fullmatch(r"gcon-[0-9a-f]{32}(-\d+)?", name) for name in first | second)


def failures(secret=SECRET):
    """Computations that fail with a secret. Functions inside a function: workers cannot import this file."""

    def failing_block(edges):
        def work(block):
            raise ValueError(secret)

        return list(edges.map_blocks(work))

    def failing_coordinator(edges):
        raise ValueError(secret)

    def uncertified(edges):
        raise NoCertificateError(secret)

    return {function.__name__: function for function in (failing_block, failing_coordinator, uncertified)}


@pytest.fixture
def chatty(client):
    """All that the cluster logs, at the lowest level."""

    def listen():
        logging.getLogger("distributed").setLevel(logging.DEBUG)

    def hush():
        logging.getLogger("distributed").setLevel(logging.CRITICAL)

    client.run(listen)
    client.run_on_scheduler(listen)
    yield lambda: str(client.get_worker_logs()) + str(client.get_scheduler_logs())
    client.run(hush)
    client.run_on_scheduler(hush)


@pytest.mark.parametrize("name", failures())
def test_failures_tell_nothing(both, chatty, name):
    fixed = NoCertificateError if name == "uncertified" else PrivateComputationError
    ledger = MemoryLedger("friendships")
    with pytest.raises(fixed) as raised:
        diagnose(failures()[name], both.private_there, ledger=ledger, purpose="a test")
    assert SECRET not in "".join(traceback.format_exception(raised.value)) + repr(vars(raised.value))
    assert raised.value.__cause__ is raised.value.__context__ is None
    assert ledger.entries()[-1].outcome is Outcome.WITHHELD
    assert SECRET not in chatty()


def test_dask_by_itself_would_tell(client, chatty):
    """So the test above could see a leak."""
    future = client.submit(failures("there are 978 edges")["failing_coordinator"], None)
    with pytest.raises(ValueError, match="978"):
        future.result()
    assert "there are 978 edges" in chatty()


def test_a_release_leaves_nothing_in_the_logs(both, client, chatty):
    release(both.private_there)
    logs = chatty()
    for word in ("Tensor", "tensor", "array", "StoredEdges", "edges.csr", "EdgeMoments", "slice", "Matrix", "Desk"):
        assert word not in logs


def test_the_bare_edges_cannot_be_had(both):
    with pytest.raises(PrivateComputationError):
        declassify(both.private_there, reason="a test", ledger=MemoryLedger())
