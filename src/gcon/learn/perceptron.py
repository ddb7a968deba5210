"""Training of encoders: the paper's two-layer perceptron, on features and labels only, and the student of released answers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from gcon.errors import check_number
from gcon.learn import sample
from gcon.learn.encoder import Encoder, Scale, scaled_rows
from gcon.learn.softmax_regression import softmax_regressions
from gcon.learn.sparse_rows import SparseRows, compact, with_rows_divided
from gcon.machine import leave_gpus_alone
from gcon.nodes import BATCH_ROWS, PublicNodes

MANY_ROWS = BATCH_ROWS  # with more labelled nodes an epoch is as many of them, in steps
_STEP_ROWS = 4096
_RUN_ROWS = 256  # labelled nodes that follow each other are read together: a disk gives neighbouring rows at once
_PRIOR = 0.6
_STUDENT_PENALTY = 1e-4  # per node: half of it times the squared weights; rows have length 1
_STUDENT_SEED = 3  # of the nodes that teach, where there are many


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
        for parameter, value, low, high, fix in (
            ("hidden", 1 if self.hidden is None else self.hidden, 1, 4096, "The paper uses 8, 16, 64."),
            ("epochs", self.epochs, 1, 10**6, usual),
            ("patience", self.patience, 1, 10**6, usual),
            ("encoder_seed", self.seed, 0, 2**63 - 1, "Any whole number; it may be public."),
        ):
            rule, whole = f"must be a whole number from {low} to {high}", range(low, high + 1)
            check_number(parameter, value, allowed=whole.__contains__, rule=rule, fix=fix, whole=True)
        decay = 0.0 if self.weight_decay is None else self.weight_decay
        numbers: tuple[tuple[str, float, Callable[[float], bool], str], ...] = (
            ("weight_decay", decay, lambda value: 0 <= value < math.inf, "at least 0, or None"),
            ("dropout", self.dropout, lambda value: 0 <= value < 1, "in [0, 1)"),
            ("learning_rate", self.learning_rate, lambda value: 0 < value < math.inf, "positive"),
        )
        for parameter, number, allowed, rule in numbers:
            check_number(parameter, number, allowed=allowed, rule=f"must be a number {rule}", fix=usual)


def train_encoder(
    nodes: PublicNodes, settings: EncoderSettings, *, seed: int | None = None, device: str = "cpu"
) -> Encoder:
    """Fit the encoder by cross entropy on the labelled nodes; keep the state with the best validation loss.

    Without validation nodes it trains for all epochs. With more than 65,536 labelled nodes an epoch is 65,536 of them, in
    steps of 4,096, and all take their turn; of more validation nodes than that, the seed decides which are looked at. So
    memory and the time of an epoch stay bounded, and features may lie on disk.

    Args:
        nodes: features, labels and masks.
        settings: public numbers.
        seed: instead of the one in the settings.
        device: where to compute; the encoder is handed back on the processor.

    Privacy:
        Reads features, labels and masks; this module cannot import edges.
    """
    seed = settings.seed if seed is None else seed
    generator = torch.Generator().manual_seed(seed)
    chance = generator if device == "cpu" else torch.Generator(device).manual_seed(seed)
    widths = [
        width for width in (int(nodes.features.shape[1]), settings.hidden, nodes.num_classes) if width is not None
    ]
    parameters = []
    for rows, columns in itertools.pairwise(widths):
        limit = math.sqrt(6 / (rows + columns))  # Glorot's
        drawn = torch.empty(rows, columns).uniform_(-limit, limit, generator=generator), torch.zeros(columns)
        parameters += [parameter.to(device) for parameter in drawn]
    count = int(nodes.train_mask.sum())
    weight_decay = _PRIOR / count if settings.weight_decay is None else settings.weight_decay
    optimizer = torch.optim.Adam(
        [{"params": parameters[:1], "weight_decay": weight_decay}, {"params": parameters[1:], "weight_decay": 0.0}],
        lr=settings.learning_rate,
        fused=True,
    )
    leave_gpus_alone(optimizer, device)
    dropout = (settings.dropout if settings.drop_input else 0.0, settings.dropout)
    by: Scale = "length" if settings.unit_input else "nothing"
    looked_at = nodes.validation_mask.nonzero()[:, 0]
    if len(looked_at) > MANY_ROWS:
        looked_at = looked_at[sample.sampled(len(looked_at), MANY_ROWS, seed=seed)]
    checked = scaled_rows(nodes.features[looked_at].to(device), by=by, sparse=True)
    truth = nodes.labels[looked_at].to(device)
    if count > MANY_ROWS:
        rounds = _rounds(nodes, by, device, generator)
    else:
        known = nodes.train_mask
        inputs = scaled_rows(nodes.features[known].to(device), by=by, sparse=True)
        rounds = itertools.repeat([(inputs, one_hot(nodes.labels[known], nodes.num_classes).float().to(device))])
    best, best_loss, waited = [], math.inf, 0
    for epoch, steps in enumerate(itertools.islice(rounds, settings.epochs)):
        if count > MANY_ROWS:  # every step sees other rows: shorter and shorter steps average over them
            for group in optimizer.param_groups:
                group["lr"] = settings.learning_rate * (1 - epoch / settings.epochs)
        for inputs, wanted in steps:
            *given, scores = _scores(inputs, parameters, dropout, chance)
            # Slopes of the mean cross entropy, written out: to keep a graph of so small sums takes longer than they do.
            slope = torch.softmax(scores, dim=1).sub_(wanted).div_(len(wanted))
            for layer, rows in reversed([*enumerate(given)]):
                weight, bias = parameters[2 * layer : 2 * layer + 2]
                weight.grad = rows.T @ slope if isinstance(rows, Tensor) else rows.turned_times(slope)
                bias.grad = slope.sum(dim=0)
                if isinstance(rows, Tensor) and layer > 0:  # what was dropped, or not positive, had no part in it
                    slope = (slope @ weight.T).mul_(rows > 0).div_(1 - dropout[layer])
            optimizer.step()
        if len(truth):
            loss = float(cross_entropy(_scores(checked, parameters, (0.0, 0.0), chance)[-1], truth))
            waited += 1
            if loss < best_loss:
                best, best_loss, waited = [parameter.detach().clone() for parameter in parameters], loss, 0
            if waited >= settings.patience:
                break
    kept = best or [parameter.detach().clone() for parameter in parameters]
    *first, head_weight, head_bias = (parameter.cpu() for parameter in kept)
    encoder = Encoder(
        hidden_weight=first[0] if first else None,
        hidden_bias=first[1] if first else None,
        head_weight=head_weight,
        head_bias=head_bias,
        unit_input=settings.unit_input,
        centre=None,
    )
    if settings.centre:
        encoder = replace(encoder, centre=encoder.on(device).mean_hidden(nodes.features))
    return encoder


def _rounds(
    nodes: PublicNodes, by: Scale, device: str, generator: torch.Generator
) -> Iterator[Iterable[tuple[Tensor | SparseRows, Tensor]]]:
    """Endless rounds of about `MANY_ROWS` labelled rows with their classes (a one for the label), in steps.

    Short runs of rows are drawn at random until all had their turn, and the rows of all runs of a round are mixed. Only
    those are in memory.
    """
    labelled = nodes.train_mask.nonzero()[:, 0]
    runs = torch.arange(len(labelled)).split(_RUN_ROWS)
    order = itertools.chain.from_iterable(
        torch.randperm(len(runs), generator=generator).tolist() for _ in itertools.count()
    )
    while True:
        drawn = sorted(itertools.islice(order, MANY_ROWS // _RUN_ROWS))
        places = labelled[torch.cat([runs[number] for number in drawn])]
        rows, wanted = nodes.features[places], one_hot(nodes.labels[places], nodes.num_classes).float()
        steps = torch.randperm(len(places), generator=generator).tensor_split(math.ceil(len(places) / _STEP_ROWS))
        yield [(scaled_rows(rows[step].to(device), by=by, sparse=True), wanted[step].to(device)) for step in steps]


def _scores(
    inputs: Tensor | SparseRows, parameters: list[Tensor], dropout: tuple[float, float], generator: torch.Generator
) -> list[Any]:
    """What each layer is given, with shares of the inputs and of the hidden values dropped; and class scores."""
    found: list[Any] = [inputs]
    for layer, (weight, bias) in enumerate(zip(parameters[::2], parameters[1::2], strict=True)):
        rows = found[-1] if layer == 0 else found[-1].relu_()
        if dropout[layer] > 0:
            values, kept = rows.values if isinstance(rows, SparseRows) else rows, 1 - dropout[layer]
            chance = torch.rand(
                values.shape, generator=generator, device=values.device
            )  # far faster than Bernoulli's numbers
            values = values * (chance < kept) / kept
            rows = replace(rows, values=values) if isinstance(rows, SparseRows) else values
        found[-1:] = [rows, rows @ weight + bias]
    return found


def train_student(features: Tensor, answers: Tensor) -> Encoder:
    """A linear model taught by released answers, so that nodes never seen can be answered too: free post-processing.

    Softmax regression from unit feature rows to class probabilities: least cross entropy. Of a large graph a fixed sample of
    the nodes teaches.

    Args:
        features: public, n x d0.
        answers: n x c, class probabilities that everybody may know.

    Privacy:
        Reads public features and released answers: there is no argument that could hold an edge.
    """
    if len(features) > sample.EXACT_NODES:
        some = sample.sampled(len(features), sample.EXACT_NODES, seed=_STUDENT_SEED)
        features, answers = features[some], answers[some]
    entries = compact(features)
    rows = scaled_rows(features, by="length") if entries is None else with_rows_divided(entries, "length")
    (table,) = softmax_regressions(rows, answers, [_STUDENT_PENALTY * max(len(features), 1)], exactly=True)
    table = table.float()
    return Encoder(
        hidden_weight=None,
        hidden_bias=None,
        head_weight=table[:-1].clone(),
        head_bias=table[-1].clone(),
        unit_input=True,
        centre=None,
    )
