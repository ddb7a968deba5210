"""Our own training algorithm, the default: one release of noisy statistics, and everything after it is free.

`gcon.methods.objective` is the paper's algorithm; `gcon.methods.moments_stages` explains the steps of this one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gcon.edges.source import Edges
from gcon.errors import check_number
from gcon.learn.edge_free import learn_without_edges
from gcon.learn.student import train_student
from gcon.machine import chosen_device
from gcon.mechanisms.gaussian_release import GaussianRelease, JointStage, gaussian_release_plan
from gcon.mechanisms.statistic import BoundedEdges
from gcon.methods.moments_model import MomentsModel, MomentsSettings
from gcon.methods.moments_stages import MomentsEstimate
from gcon.nodes import PublicNodes
from gcon.privacy.boundary import Private
from gcon.privacy.budget import checked_budget, public_delta
from gcon.privacy.gates import release_statistic
from gcon.privacy.ledger import Ledger
from gcon.privacy.randomness import Randomness

Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class MomentsTraining:
    """Everything that training can be told: one set of settings serves all graphs, so that is little.

    Attributes:
        epsilon, delta: the budget; delta None means min(1e-5, 1/(10 n)) with n nodes.
        seed: of the edge-free networks; it has nothing to do with the noise and may be public.
        device: where sums over edges run: `auto`, `cpu`, `cuda` or `cuda:NUMBER`.
    """

    epsilon: float
    delta: float | None = None
    seed: int = 0
    device: str = "auto"

    def __post_init__(self) -> None:
        chosen_device(self.device)
        checked_budget(self.epsilon, 0.5 if self.delta is None else self.delta)
        check_number(
            "encoder_seed",
            self.seed,
            allowed=lambda number: 0 <= number < 2**62,
            rule="must be a whole number from 0",
            fix="Any will do; it may be public.",
            whole=True,
        )


def train_moments(
    nodes: PublicNodes,
    edges: Private[Edges],
    training: MomentsTraining,
    *,
    ledger: Ledger,
    randomness: Randomness,
    progress: Progress = lambda stage: None,
    purpose: str = "node classification",
) -> MomentsModel:
    """Train on private edges and release the model.

    Args:
        nodes: public features, labels and splits.
        edges: private.
        training: public numbers.
        ledger: pays before any edge is read.
        randomness: the source of the noise.
        progress: told the name of every stage.
        purpose: public words for the ledger.

    Privacy:
        The model is (epsilon, delta)-DP for one undirected edge: the statistics are released once, with noise, and all
        else is computed from them and from public data.
    """
    delta = public_delta(nodes.num_nodes) if training.delta is None else training.delta
    progress("train without edges")
    free = learn_without_edges(nodes, seed=training.seed)
    estimate = MomentsEstimate(nodes, free, device=chosen_device(training.device))

    progress("release noisy statistics")
    released = release_statistic(
        GaussianRelease(
            plan=gaussian_release_plan(training.epsilon, delta),
            stages=(JointStage(estimate.first_portions()), estimate.second_portions),
            method=MomentsModel.method,
        ),
        BoundedEdges(edges),
        ledger=ledger,
        randomness=randomness,
        purpose=purpose,
    )

    progress("estimate")
    found = estimate.finish(released.value)
    best = found.none if found.cached is None else found.cached
    return MomentsModel(
        answers=found.none.float(),
        cached=None if found.cached is None else found.cached.float(),
        encoder=train_student(nodes.features, best),
        settings=MomentsSettings(
            homophily=found.homophily, class_names=nodes.class_names, training_nodes=nodes.fingerprint
        ),
        statistics=released.value,
        receipt=released.receipt,
    )
