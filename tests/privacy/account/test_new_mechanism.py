"""The account takes a mechanism that the package has never heard of, once it is registered: a noisy vector."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
import torch

from gcon.errors import UnprovenBoundError
from gcon.mechanisms.gaussian_curve import gaussian_multiplier
from gcon.privacy.account import release_once
from gcon.privacy.budget import Budget
from gcon.privacy.gates import diagnose
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.plan import PROOF_PAGES, proven
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.mechanisms.samplers import standard_normals


@dataclass(frozen=True, eq=False)
class DegreeSums:
    """Edge ends by class, with Gaussian noise: one edge moves the vector by at most 2."""

    budget: Budget
    labels: torch.Tensor
    name = "degree sums"
    gaussian_distance = None
    reads_edges = True

    @property
    def noise(self) -> float:
        return 2.0 * gaussian_multiplier(self.budget.epsilon, self.budget.delta)

    def check(self):
        assert self.noise > 0

    @property
    def record(self) -> Mapping[str, object]:
        return {"standard_deviation": self.noise}

    def exact(self, edges):
        return torch.zeros(3, dtype=torch.float64).index_add_(0, self.labels, edges.degrees.double())

    def apply(self, edges, randomness):
        return self.exact(edges) + self.noise * standard_normals(randomness, 3)


def test_a_registered_mechanism_is_released(kit):
    mechanism, ledger = DegreeSums(Budget(1.0, 1e-5), kit.graph.nodes.labels), kit.ledger()
    paid = {"ledger": ledger, "randomness": SystemRandomness(), "purpose": "degrees"}
    with pytest.raises(UnprovenBoundError, match="DegreeSums has no proof page"):
        release_once(mechanism, kit.graph.edges, **paid)
    proven("a page")(DegreeSums)
    assert PROOF_PAGES[DegreeSums] == "a page"
    released = release_once(mechanism, kit.graph.edges, **paid)
    exact = diagnose(mechanism.exact, kit.graph.edges, ledger=MemoryLedger(), purpose="a test")
    assert released.value.shape == (3,)
    assert not torch.equal(released.value, exact)
    assert float((released.value - exact).abs().max()) < 10 * mechanism.noise  # one in 10^22 by chance
    assert released.receipt.plan == {"standard_deviation": mechanism.noise}
    assert released.receipt.keeps_promise
    assert ledger.total() == Budget(1.0, 1e-5)
