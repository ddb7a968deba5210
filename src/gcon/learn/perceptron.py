"""Training of the encoder: the paper's two-layer perceptron, on features and labels only."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from gcon.errors import check_number
from gcon.learn.encoder import Encoder, scaled_input
from gcon.learn.sizes import sampled
from gcon.nodes import BATCH_ROWS, PublicNodes

MANY_ROWS = BATCH_ROWS  # with more labelled nodes an epoch is as many of them, in steps
_STEP_ROWS = 4096
_RUN_ROWS = 256  # labelled nodes that follow each other are read together: a disk gives neighbouring rows at once
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


def train_encoder(nodes: PublicNodes, settings: EncoderSettings, *, device: str = "cpu") -> Encoder:
    """Fit the encoder by cross entropy on the labelled nodes; keep the state with the best validation loss.

    Without validation nodes it trains for all epochs. With more than 65,536 labelled nodes an epoch is 65,536 of them, in
    steps of 4,096, and all take their turn; of more validation nodes than that, the seed decides which are looked at. So
    memory and the time of an epoch stay bounded, and features may lie on disk.

    Args:
        nodes: features, labels and masks.
        settings: public numbers.
        device: where to compute; the encoder is handed back on the processor.

    Privacy:
        Reads features, labels and masks; this module cannot import edges.
    """
    generator = torch.Generator().manual_seed(settings.seed)
    chance = generator if device == "cpu" else torch.Generator(device).manual_seed(settings.seed)
    width, hidden = int(nodes.features.shape[1]), settings.hidden
    between = width if hidden is None else hidden
    first = () if hidden is None else (_glorot(width, between, generator), torch.zeros(between))
    drawn = [*first, _glorot(between, nodes.num_classes, generator), torch.zeros(nodes.num_classes)]
    parameters = [parameter.to(device).requires_grad_(True) for parameter in drawn]
    count = int(nodes.train_mask.sum())
    weight_decay = _PRIOR / count if settings.weight_decay is None else settings.weight_decay
    optimizer = torch.optim.Adam(
        [
            {"params": parameters[:1], "weight_decay": weight_decay},
            {"params": parameters[1:], "weight_decay": 0.0},
        ],
        lr=settings.learning_rate,
    )
    dropout = (settings.dropout if settings.drop_input else 0.0, settings.dropout)
    checks = _checks(nodes, settings, device)
    best, best_loss, waited = [], math.inf, 0
    for epoch, steps in enumerate(itertools.islice(_epochs(nodes, settings, device, generator), settings.epochs)):
        if count > MANY_ROWS:  # every step sees other rows: shorter and shorter steps average over them
            for group in optimizer.param_groups:
                group["lr"] = settings.learning_rate * (1 - epoch / settings.epochs)
        for inputs, labels in steps:
            optimizer.zero_grad()
            cross_entropy(_scores(inputs, parameters, dropout, chance), labels).backward()
            optimizer.step()
        if checks is not None:
            with torch.no_grad():
                loss = float(cross_entropy(_scores(checks[0], parameters, (0.0, 0.0), chance), checks[1]))
            waited += 1
            if loss < best_loss:
                best, best_loss, waited = [parameter.detach().clone() for parameter in parameters], loss, 0
            if waited >= settings.patience:
                break
    kept = best or [parameter.detach().clone() for parameter in parameters]
    encoder = Encoder(
        hidden_weight=None if hidden is None else kept[0],
        hidden_bias=None if hidden is None else kept[1],
        head_weight=kept[-2],
        head_bias=kept[-1],
        unit_input=settings.unit_input,
        centre=None,
    )
    if settings.centre:
        encoder = replace(encoder, centre=encoder.mean_hidden(nodes.features))
    return encoder.on("cpu")


_Step = tuple["_Inputs", Tensor]


def _epochs(
    nodes: PublicNodes, settings: EncoderSettings, device: str, generator: torch.Generator
) -> Iterator[Iterable[_Step]]:
    """The steps of every epoch: one over all labelled rows, or several over a part of them where there are many."""
    labelled = nodes.train_mask.nonzero()[:, 0]
    labels = nodes.labels[labelled]
    if len(labelled) <= MANY_ROWS:
        rows = scaled_input(nodes.features[labelled], unit=settings.unit_input)
        everything = [(_Inputs(rows.to(device)), labels.to(device))]
        yield from itertools.repeat(everything)
    else:
        for steps in _rounds(nodes.features, labelled, unit=settings.unit_input, generator=generator):
            yield ((_Inputs(rows.to(device)), labels[places].to(device)) for rows, places in steps)


def _rounds(
    features: Tensor, labelled: Tensor, *, unit: bool, generator: torch.Generator
) -> Iterator[list[tuple[Tensor, Tensor]]]:
    """Endless rounds of about `MANY_ROWS` labelled rows, in steps: for each its rows, and their places in `labelled`.

    Short runs of rows are drawn at random until all had their turn, and the rows of all runs of a round are mixed. Only
    those are in memory.
    """
    runs = torch.arange(len(labelled)).split(_RUN_ROWS)
    order = itertools.chain.from_iterable(
        torch.randperm(len(runs), generator=generator).tolist() for _ in itertools.count()
    )
    while True:
        drawn = sorted(itertools.islice(order, MANY_ROWS // _RUN_ROWS))
        places = torch.cat([runs[number] for number in drawn])
        rows = scaled_input(features[labelled[places]], unit=unit)
        mixed = torch.randperm(len(places), generator=generator)
        yield [(rows[part], places[part]) for part in mixed.tensor_split(math.ceil(len(mixed) / _STEP_ROWS))]


def _checks(nodes: PublicNodes, settings: EncoderSettings, device: str) -> _Step | None:
    """The rows of the validation loss; None if there are none."""
    looked_at = sampled(nodes.validation_mask.nonzero()[:, 0], MANY_ROWS, seed=settings.seed)
    if not len(looked_at):
        return None
    rows = scaled_input(nodes.features[looked_at], unit=settings.unit_input)
    return _Inputs(rows.to(device)), nodes.labels[looked_at].to(device)


def _glorot(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    limit = math.sqrt(6 / (rows + columns))
    return torch.empty(rows, columns).uniform_(-limit, limit, generator=generator)


class _Inputs:
    """Feature rows for the first layer. Bags of words are mostly zeros: those are kept sparse, which is far faster."""

    def __init__(self, rows: Tensor) -> None:
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


def _scores(
    inputs: _Inputs, parameters: list[Tensor], dropout: tuple[float, float], generator: torch.Generator
) -> Tensor:
    """Class scores, with shares of the inputs and of the hidden values dropped."""
    first = inputs.times(parameters[0], dropout[0], generator) + parameters[1]
    if len(parameters) == 2:
        return first
    return _drop(torch.relu(first), dropout[1], generator) @ parameters[2] + parameters[3]


def _drop(values: Tensor, share: float, generator: torch.Generator) -> Tensor:
    if share == 0:
        return values
    kept = torch.empty_like(values).bernoulli_(1 - share, generator=generator)
    return values * kept / (1 - share)
