"""GCON's training algorithm, in the order in which the paper writes it. The only place where the stages meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from gcon.edges.graph import TrainableGraph
from gcon.edges.schemes import Schemes
from gcon.errors import check_number
from gcon.learn.encoder import Encoder
from gcon.learn.perceptron import MANY_ROWS, EncoderSettings, train_encoder
from gcon.learn.pseudo_labels import Expansion, check_expansion, training_rows
from gcon.machine import chosen_device
from gcon.mechanisms.aggregates import aggregate_privately
from gcon.mechanisms.influence import InfluenceBound, check_bound
from gcon.mechanisms.losses import loss_by_name
from gcon.mechanisms.objective_perturbation import ObjectivePerturbation
from gcon.mechanisms.objective_plan import check_ridge, make_plan
from gcon.methods.objective_model import ModelSettings, ReleasedModel, release_model
from gcon.nodes import PublicNodes
from gcon.privacy.budget import checked_budget, public_delta
from gcon.privacy.ledger import Ledger
from gcon.privacy.randomness import Randomness

Progress = Callable[[str], None]
_LARGE = (
    2**20
)  # nodes from which encoded features are kept in single precision: half the memory, and no row longer than 1


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that training can be told: public numbers, with the paper's symbol for each.

    Attributes:
        epsilon, delta: the budget; delta None means min(1e-5, 1/(10 n)) with n nodes.
        encoder: how the edge-free encoder is trained (d_1 is its hidden size).
        schemes: restart alpha and steps m_1..m_s.
        influence: which proven bound Psi(Z) to use.
        expand: n_1 = labelled nodes, or all nodes with pseudo-labels.
        loss: `soft-margin` or `pseudo-huber:WEIGHT`.
        ridge: Lambda.
        noise_share: omega.
        margin: xi; None for the recommended rule.
        inference_restart: alpha_I.
        device: where propagation and the solver run: `auto` (a GPU if there is one), `cpu`, `cuda` or `cuda:NUMBER`.
            The encoder does so from 65,536 labelled rows on. The noise and the certificate stay on the processor, and so
            does all that is released.
    """

    epsilon: float
    delta: float | None = None
    encoder: EncoderSettings = field(default_factory=EncoderSettings)
    schemes: Schemes = field(default_factory=lambda: Schemes(restart=0.8, steps=(2,)))
    influence: InfluenceBound = "auto"
    expand: Expansion = "all"
    loss: str = "soft-margin"
    ridge: float = 1.0
    noise_share: float = 0.9
    margin: float | None = None
    inference_restart: float = 0.3
    device: str = "auto"

    def __post_init__(self) -> None:
        # Everything is checked here, long before anything is trained, opened or paid for.
        checked_budget(self.epsilon, 0.5 if self.delta is None else self.delta)
        loss_by_name(self.loss, 2)
        check_expansion(self.expand)
        check_ridge(ridge=self.ridge, noise_share=self.noise_share, margin=self.margin)
        check_bound(self.influence, self.schemes)
        chosen_device(self.device)
        check_number(
            "inference_restart",
            self.inference_restart,
            allowed=lambda number: 0 <= number <= 1,
            rule="must lie in [0, 1]",
            fix="Low where neighbours agree (0.1), high where they do not (0.9).",
        )
        for name in ("epsilon", "ridge", "noise_share", "inference_restart"):
            object.__setattr__(self, name, float(getattr(self, name)))


def _many_labels(nodes: PublicNodes) -> bool:
    return int(nodes.train_mask.sum()) > MANY_ROWS


def train(
    graph: TrainableGraph,
    settings: Settings,
    *,
    ledger: Ledger,
    randomness: Randomness,
    encoder: Encoder | None = None,
    progress: Progress = lambda stage: None,
    purpose: str = "node classification",
) -> ReleasedModel:
    """Train on private edges and release the model.

    Args:
        graph: public nodes and private edges.
        settings: public numbers.
        ledger: pays before any edge is read.
        randomness: the source of the noise.
        encoder: an edge-free encoder trained before, to share it between runs.
        progress: told the name of every stage.
        purpose: public words for the ledger.

    Privacy:
        The model is (epsilon, delta)-DP for one undirected edge. Edges are read after the ledger is charged, inside
        the release.
    """
    nodes = graph.nodes
    delta = public_delta(nodes.num_nodes) if settings.delta is None else settings.delta
    budget = checked_budget(settings.epsilon, delta)
    loss = loss_by_name(settings.loss, nodes.num_classes)

    progress("encode")
    device = chosen_device(settings.device)
    if encoder is None:
        # A GPU pays from many labelled rows on; with few, all devices give the same encoder.
        encoder = train_encoder(nodes, settings.encoder, device=device if _many_labels(nodes) else "cpu")
    features = encoder.encode(nodes.features, dtype=torch.float32 if nodes.num_nodes > _LARGE else torch.float64)
    rows = training_rows(nodes, encoder, settings.expand)

    progress("propagate")
    aggregates = aggregate_privately(
        graph.edges,
        features,
        settings.schemes,
        bound=settings.influence,
        device=device,
        rows=rows.mask,
    )
    del features  # the aggregates have a copy of their own

    progress("calibrate")
    plan = make_plan(
        budget,
        loss=loss,
        num_features=aggregates.num_columns,
        num_labelled=rows.count,
        edge_influence=aggregates.edge_influence,
        ridge=settings.ridge,
        noise_share=settings.noise_share,
        margin=settings.margin,
    )

    progress("perturb, solve and release")
    return release_model(
        ObjectivePerturbation(plans=(plan,), mask=torch.ones(rows.count, dtype=torch.bool), targets=rows.targets),
        aggregates,
        encoder=encoder,
        settings=ModelSettings(
            schemes=settings.schemes,
            inference_restart=settings.inference_restart,
            loss=settings.loss,
            class_names=nodes.class_names,
            training_nodes=nodes.fingerprint,
        ),
        ledger=ledger,
        randomness=randomness,
        purpose=purpose,
    )
