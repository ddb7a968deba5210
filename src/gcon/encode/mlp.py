"""Training of the encoder: the paper's two-layer perceptron, on features and labels only."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from gcon.encode.encoder import Encoder, scaled_input
from gcon.errors import check_number
from gcon.graphs.nodes import PublicNodes

_PRIOR = 0.6


@dataclass(frozen=True, kw_only=True)
class EncoderSettings:
    """How the encoder is trained: public numbers.

    Attributes:
        hidden: width of the hidden layer (the paper tries 8, 16, 64); None uses the features as embeddings.
        dropout: share of inputs and hidden values that are dropped in training.
        drop_input: whether inputs are dropped too.
        weight_decay: quadratic penalty on the first layer; None means 0.6 over the number of labelled nodes, a prior
            of fixed strength (few labels need a strong one, many labels a weak one).
        learning_rate: of Adam.
        epochs: at most.
        patience: stop after so many epochs without a better validation loss.
        unit_input: scale feature rows to length 1 first.
        centre: centre hidden rows before scaling them to length 1. Hidden values are not negative; without centring
            all of them point the same way, and strong regularisation cannot tell the classes apart.
        seed: of the initial weights and dropout. It has nothing to do with the noise and may be public.
    """

    hidden: int | None = 16
    dropout: float = 0.5
    drop_input: bool = True
    weight_decay: float | None = None
    learning_rate: float = 0.01
    epochs: int = 300
    patience: int = 60
    unit_input: bool = True
    centre: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        usual = "The default works for few and for many labels."
        if self.hidden is not None:
            _whole("hidden", self.hidden, 1, 4096, fix="The paper uses 8, 16, 64.")
        if self.weight_decay is not None:
            _number(
                "weight_decay", self.weight_decay, lambda value: 0 <= value < math.inf, "at least 0, or None", usual
            )
        _number("dropout", self.dropout, lambda value: 0 <= value < 1, "in [0, 1)", usual)
        _number("learning_rate", self.learning_rate, lambda value: 0 < value < math.inf, "positive", usual)
        _whole("epochs", self.epochs, 1, 10**6, fix=usual)
        _whole("patience", self.patience, 1, 10**6, fix=usual)
        _whole("encoder_seed", self.seed, 0, 2**63 - 1, fix="Any whole number; it may be public.")


def _whole(parameter: str, value: object, low: int, high: int, *, fix: str) -> None:
    rule = f"must be a whole number from {low} to {high}"
    check_number(parameter, value, allowed=lambda number: low <= number <= high, rule=rule, fix=fix, whole=True)


def _number(parameter: str, value: object, allowed: Callable[[float], bool], rule: str, fix: str) -> None:
    check_number(parameter, value, allowed=allowed, rule=f"must be a number {rule}", fix=fix)


def train_encoder(nodes: PublicNodes, settings: EncoderSettings) -> Encoder:
    """Fit the encoder by cross entropy on the labelled nodes; keep the state with the best validation loss.

    Without validation nodes it trains for all epochs.

    Privacy:
        Reads features, labels and masks; this module cannot import edges.
    """
    generator = torch.Generator().manual_seed(settings.seed)
    train, validation = nodes.train_mask, nodes.validation_mask
    inputs = _Inputs(scaled_input(nodes.features[train], unit=settings.unit_input))
    checks = _Inputs(scaled_input(nodes.features[validation], unit=settings.unit_input))
    labels, check_labels = nodes.labels[train], nodes.labels[validation]
    width = inputs.width if settings.hidden is None else settings.hidden
    first = () if settings.hidden is None else (_glorot(inputs.width, width, generator), torch.zeros(width))
    parameters = [*first, _glorot(width, nodes.num_classes, generator), torch.zeros(nodes.num_classes)]
    for parameter in parameters:
        parameter.requires_grad_(True)
    weight_decay = _PRIOR / len(labels) if settings.weight_decay is None else settings.weight_decay
    optimizer = torch.optim.Adam(
        [
            {"params": parameters[:1], "weight_decay": weight_decay},
            {"params": parameters[1:], "weight_decay": 0.0},
        ],
        lr=settings.learning_rate,
    )
    dropped = _Dropped(inputs=settings.dropout if settings.drop_input else 0.0, hidden=settings.dropout)
    best, best_loss, waited = [], math.inf, 0
    for _ in range(settings.epochs):
        optimizer.zero_grad()
        cross_entropy(_scores(inputs, parameters, dropped, generator), labels).backward()
        optimizer.step()
        if len(check_labels):
            with torch.no_grad():
                loss = float(cross_entropy(_scores(checks, parameters, _KEEP_ALL, generator), check_labels))
            waited += 1
            if loss < best_loss:
                best, best_loss, waited = [parameter.detach().clone() for parameter in parameters], loss, 0
            if waited >= settings.patience:
                break
    kept = best or [parameter.detach().clone() for parameter in parameters]
    encoder = Encoder(
        hidden_weight=None if settings.hidden is None else kept[0],
        hidden_bias=None if settings.hidden is None else kept[1],
        head_weight=kept[-2],
        head_bias=kept[-1],
        unit_input=settings.unit_input,
        centre=None,
    )
    if not settings.centre:
        return encoder
    return replace(encoder, centre=encoder.hidden(nodes.features).to(torch.float64).mean(dim=0))


def _glorot(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    limit = math.sqrt(6 / (rows + columns))
    return torch.empty(rows, columns).uniform_(-limit, limit, generator=generator)


class _Inputs:
    """Feature rows for the first layer. Bags of words are mostly zeros: those are kept sparse, which is far faster."""

    def __init__(self, rows: Tensor) -> None:
        self.width = int(rows.shape[1])
        sparse = rows.numel() > 0 and int(rows.count_nonzero()) < 0.2 * rows.numel()
        self._rows = rows.to_sparse_coo().coalesce() if sparse else rows

    def times(self, weight: Tensor, dropout: float, generator: torch.Generator) -> Tensor:
        if not self._rows.is_sparse:
            return _drop(self._rows, dropout, generator) @ weight
        values = _drop(self._rows.values(), dropout, generator)
        dropped = torch.sparse_coo_tensor(
            self._rows.indices(), values, self._rows.shape, is_coalesced=True, check_invariants=False
        )
        product: Tensor = torch.sparse.mm(dropped, weight)
        return product


@dataclass(frozen=True, kw_only=True)
class _Dropped:
    """Shares that are dropped in training."""

    inputs: float
    hidden: float


_KEEP_ALL = _Dropped(inputs=0.0, hidden=0.0)


def _scores(inputs: _Inputs, parameters: list[Tensor], dropped: _Dropped, generator: torch.Generator) -> Tensor:
    first = inputs.times(parameters[0], dropped.inputs, generator) + parameters[1]
    if len(parameters) == 2:
        return first
    return _drop(torch.relu(first), dropped.hidden, generator) @ parameters[2] + parameters[3]


def _drop(values: Tensor, share: float, generator: torch.Generator) -> Tensor:
    if share == 0:
        return values
    kept = torch.empty_like(values).bernoulli_(1 - share, generator=generator)
    return values * kept / (1 - share)
