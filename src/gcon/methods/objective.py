"""The paper's method, whole: GCON's training algorithm in the order in which the paper writes it, its model and how it scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcon.edges.fixed_point import Walk, column_units, real_numbers, whole_numbers
from gcon.edges.kernels.multiply import walk_step
from gcon.edges.schemes import Schemes, propagate
from gcon.edges.source import Edges, RowBlock
from gcon.errors import AccessRefusedError, InputError, PlanMismatchError, check_number
from gcon.learn.encoder import Encoder
from gcon.learn.perceptron import MANY_ROWS, EncoderSettings, train_encoder
from gcon.learn.training_rows import Expansion, check_expansion, training_rows
from gcon.machine import chosen_device
from gcon.mechanisms.aggregates import Aggregates
from gcon.mechanisms.influence import InfluenceBound, check_bound
from gcon.mechanisms.losses import loss_by_name
from gcon.mechanisms.objective_perturbation import ObjectivePerturbation
from gcon.mechanisms.objective_plan import check_ridge, make_plan
from gcon.mechanisms.theorem import objective_by_edges
from gcon.methods.method import Progress, silent
from gcon.methods.model import Model, ReleasingMethod, Scorer
from gcon.methods.predictions import Access
from gcon.methods.record import Checksum, Common, Count, Layout, NotNegative, Record, UpToOne
from gcon.nodes import PublicNodes, known_rows
from gcon.privacy.account import check_charge, release_once
from gcon.privacy.boundary import Private
from gcon.privacy.budget import NOTHING, STATED_EDGES, Budget, checked_budget, protected_change
from gcon.privacy.ledger import Ledger
from gcon.privacy.randomness import Randomness

_LARGE = (
    2**20
)  # nodes from which encoded features are kept in single precision: half the memory, and no row longer than 1


@dataclass(frozen=True, kw_only=True)
class Objective(ReleasingMethod):
    """Everything that training can be told: public numbers, with the paper's symbol for each.

    Attributes:
        encoder: how the edge-free encoder is trained (d_1 is its hidden size).
        schemes: restart alpha and steps m_1..m_s.
        influence: which proven bound Psi(Z) to use.
        expand: n_1 = labelled nodes, or all nodes with pseudo-labels.
        loss: `soft-margin` or `pseudo-huber:WEIGHT`.
        ridge: Lambda.
        noise_share: omega.
        margin: xi; None for the recommended rule.
        protect_edges: how many edges, 1 to 10, may change together within epsilon and delta; more of them, more noise.
        inference_restart: alpha_I.
        device: where propagation and the solver run: `auto` (a GPU if there is one), `cpu`, `cuda` or `cuda:NUMBER`.
            The encoder does so from 65,536 labelled rows on. The noise and the certificate stay on the processor, and so
            does all that is released.
    """

    name = "paper"
    about = "Minimises a perturbed convex objective over propagated features, once; the paper's noise."

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
    protect_edges: int = 1

    def __post_init__(self) -> None:
        # Everything is checked here, long before anything is trained, opened or paid for.
        super().__post_init__()
        loss_by_name(self.loss, 2)
        check_expansion(self.expand)
        check_ridge(ridge=self.ridge, noise_share=self.noise_share, margin=self.margin)
        check_bound(self.influence, self.schemes)
        protected_change(self.protect_edges)
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

    def train(
        self,
        nodes: PublicNodes,
        edges: Private[Edges],
        *,
        ledger: Ledger,
        randomness: Randomness,
        progress: Progress = silent,
        purpose: str = "node classification",
        encoder: Encoder | None = None,
    ) -> ObjectiveModel:
        """Train on private edges and release the model.

        Args:
            nodes: public features, labels and splits.
            edges: private.
            ledger: pays before any edge is read.
            randomness: the source of the noise.
            progress: told the name of every stage.
            purpose: public words for the ledger.
            encoder: an edge-free encoder trained before, to share it between runs.

        Privacy:
            The model is (epsilon, delta)-DP for one undirected edge, or for any `protect_edges` of them together, by
            Theorem 1. Edges are read after the ledger is charged.
        """
        budget = checked_budget(self.epsilon, self.delta, nodes.num_nodes)
        check_charge(budget, ledger=ledger, randomness=randomness, purpose=purpose)
        device = chosen_device(self.device)

        progress("encode")
        if encoder is None:
            # A GPU pays from many labelled rows on; with few, all devices give the same encoder.
            many = int(nodes.train_mask.sum()) > MANY_ROWS
            encoder = train_encoder(nodes, self.encoder, device=device if many else "cpu")
        features = encoder.encode(nodes.features, dtype=torch.float32 if nodes.num_nodes > _LARGE else torch.float64)
        rows = training_rows(nodes, encoder, self.expand)

        progress("calibrate")
        aggregates = Aggregates(features, self.schemes, bound=self.influence, device=device, rows=rows.mask)
        del features  # the aggregates have a copy of their own
        plan = make_plan(
            budget,
            loss=loss_by_name(self.loss, nodes.num_classes),
            num_features=aggregates.num_columns,
            num_labelled=rows.count,
            edge_influence=aggregates.edge_influence,
            ridge=self.ridge,
            noise_share=self.noise_share,
            margin=self.margin,
            protect_edges=self.protect_edges,
        )

        progress("propagate, perturb, solve and release")
        released = release_once(
            ObjectivePerturbation(
                aggregates=aggregates,
                plans=(plan,),
                mask=torch.ones(rows.count, dtype=torch.bool),
                targets=rows.targets,
            ),
            edges,
            ledger=ledger,
            randomness=randomness,
            purpose=purpose,
        )
        return ObjectiveModel(
            weights=released.value[0].clone(),
            encoder=encoder,
            schemes=self.schemes,
            inference_restart=self.inference_restart,
            loss=self.loss,
            class_names=nodes.class_names,
            training_nodes=nodes.fingerprint,
            training_rows=known_rows(nodes.features),
            receipt=released.receipt,
        )


class ObjectiveRecord(Record, frozen=True, kw_only=True):
    """The settings in `release.json`."""

    restart: UpToOne
    steps: list[NotNegative | Literal["inf"]]
    clip: NotNegative
    inference_restart: UpToOne
    loss: str
    training_nodes: Checksum
    training_rows: Count


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ObjectiveModel(Model):
    """GCON's model. Everything here is public.

    Attributes:
        weights: d x c, the private minimiser.
        schemes: restart, steps and clip of training.
        inference_restart: alpha_I, the weight of a node's own features at inference from own edges.
        loss: name of the loss.
    """

    method = Objective.name
    accesses = ("none", "own-edges", "public-graph")
    record_type = ObjectiveRecord

    weights: Tensor
    schemes: Schemes
    inference_restart: float
    loss: str

    @property
    def choices(self) -> str:
        return (
            "the settings were given by the operator or are the defaults; the program chose nothing by looking at private "
            "edges. What gcon tune chooses for a price is a release of its own, in the ledger."
        )

    def by_edges(self, numbers: Sequence[int] = STATED_EDGES) -> Mapping[int, Budget | None]:
        """From Theorem 1 with the noise of its plan; nothing is said where that does not hold the theorem's numbers."""
        receipt = self.receipt
        if not receipt.keeps_promise or receipt.budget == NOTHING:
            return {}
        try:
            return objective_by_edges(receipt.plan, receipt.budget, numbers)
        except (PlanMismatchError, InputError, TypeError, ValueError, KeyError, ArithmeticError):
            return {}

    def tensors(self) -> dict[str, Tensor]:
        """The weights, and which rows they were trained on."""
        return {"weights": self.weights, "training_rows": self.training_rows}

    def description(self) -> str:
        """What it is, for the model card."""
        steps = ", ".join(f"{count:g}" for count in self.schemes.steps)
        return (
            "An encoder that was trained without edges turns features into vectors. These travelled over the edges of a\n"
            f"private graph (steps: {steps}; restart: {self.schemes.restart:g}), and a linear model with the loss\n"
            f"`{self.loss}` was trained on the result."
        )

    def scorer(self, *, restart: float | None = None, device: str = "cpu") -> Scorer:
        return WeightsScorer(self, restart, device)

    def record(self) -> ObjectiveRecord:
        return ObjectiveRecord(
            restart=self.schemes.restart,
            steps=list(self.schemes.steps),
            clip=self.schemes.clip,
            inference_restart=self.inference_restart,
            loss=self.loss,
            training_nodes=self.training_nodes,
            training_rows=len(self.training_rows),
        )

    @classmethod
    def layout(cls, record: ObjectiveRecord, *, width: int, num_classes: int) -> Layout:
        loss_by_name(record.loss, num_classes)
        return {
            "weights": ("F64", (_schemes(record).num_blocks * width, num_classes)),
            "training_rows": ("I64", (record.training_rows,)),
        }

    @classmethod
    def from_parts(cls, record: ObjectiveRecord, tensors: Mapping[str, Tensor], common: Common) -> ObjectiveModel:
        return cls(
            weights=tensors["weights"],
            schemes=_schemes(record),
            inference_restart=record.inference_restart,
            loss=record.loss,
            encoder=common.encoder,
            class_names=common.class_names,
            training_nodes=record.training_nodes,
            training_rows=tensors["training_rows"],
            receipt=common.receipt,
        )


def _schemes(record: ObjectiveRecord) -> Schemes:
    return Schemes(record.restart, tuple(math.inf if steps == "inf" else steps for steps in record.steps), record.clip)


class WeightsScorer(Scorer):
    """The start is the encoded features; the weights follow after propagation."""

    def __init__(self, model: ObjectiveModel, restart: float | None, device: str) -> None:
        weight = model.inference_restart if restart is None else restart
        if not 0 <= weight <= 1:
            raise InputError(
                "inference_restart", rule="must lie in [0, 1]", got=weight, fix="The paper uses 0.1 to 0.9."
            )
        self._encoder, self._weights = model.encoder.on(device), model.weights.to(device)
        self._schemes = model.schemes
        self._one_hop = Schemes(restart=weight, steps=(1,), clip=model.schemes.clip)
        self._loss = loss_by_name(model.loss, model.weights.shape[1])

    def start_of_rows(self, features: Tensor, access: Access) -> Callable[[slice], Tensor]:
        if access == "cached":
            raise AccessRefusedError("access='cached' is not there: the paper's method releases nothing node by node.")
        self._encoder.check(features[:0])  # the width alone: no row is read
        return lambda rows: self._encoder.encode(features[rows])

    def without_edges(self, start: Tensor) -> Tensor:
        return self._from_block(start, start)

    def own_edges_of_rows(self, start: Tensor, edges: Edges) -> Callable[[slice], Tensor]:
        block = propagate(edges, self._of_all(start, edges), self._one_hop)
        return lambda rows: self._from_block(block[rows], start[rows])

    def own_edges_of_one(self, start: Tensor) -> Callable[[int, NDArray[Any]], NDArray[np.float64]]:
        units, walk = column_units(start), Walk(restart=self._one_hop.restart, clip=self._one_hop.clip)
        numbers, scale = whole_numbers(start, units), 1 / units

        def shares(row: int, neighbours: NDArray[Any]) -> NDArray[np.float64]:
            columns, moved = torch.from_numpy(neighbours), numbers.new_empty(1, numbers.shape[1])
            block = RowBlock(slice(row, row + 1), torch.tensor([0, len(neighbours)]), columns, len(start))
            walk_step(block, numbers, start, scale, walk=walk, out=moved)
            found: NDArray[np.float64] = self.probabilities(
                self._from_block(real_numbers(moved, units), start[row : row + 1])
            )[0].numpy()
            return found

        return shares

    def public_graph(self, start: Tensor, edges: Edges) -> Tensor:
        return propagate(edges, self._of_all(start, edges), self._schemes) @ self._weights

    def probabilities(self, scores: Tensor) -> Tensor:
        return self._loss.probabilities(scores)

    def _from_block(self, block: Tensor, encoded: Tensor) -> Tensor:
        """Scores from one aggregated block: schemes without steps keep the node's own encoding.

        The factor 1/s of training is applied here too; the paper's inference formula leaves it out, which does not
        change the largest score but would distort the probabilities.
        """
        steps, device = self._schemes.steps, self._weights.device
        parts = [(block if count > 0 else encoded).to(device) for count in steps]
        return torch.cat(parts, dim=1) / len(steps) @ self._weights

    def _of_all(self, start: Tensor, edges: Edges) -> Tensor:
        if len(start) != edges.num_nodes:
            rule = f"must have one row per node ({edges.num_nodes})"
            raise InputError("features", rule=rule, got=len(start), fix="Pass all nodes.")
        return start.to(self._weights.device)
