"""Small networks and their training, shared by the competitors. Nothing here can see private edges."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import scipy.sparse
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout

from gcon.nodes import PublicNodes

_ROWS_AT_ONCE = 65_536


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a network is trained: Adam, full batch.

    Attributes:
        learning_rate: of Adam.
        epochs: at most.
        patience: stop after so many epochs without a better validation loss; None never stops early.
        window: stop when the validation loss exceeds its mean over so many epochs before; None never stops early.
        falling: let the learning rate fall linearly to 0.
        select: keep the state with the best validation `loss` or `accuracy`.
    """

    learning_rate: float = 0.01
    epochs: int = 500
    patience: int | None = None
    window: int | None = None
    falling: bool = False
    select: Literal["loss", "accuracy"] = "loss"


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Initial weights and dropout from a seed, leaving the global generator as it was. Never used for noise."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def fit_network(
    network: nn.Module,
    *,
    training: Training,
    train: tuple[Callable[[], Tensor], Tensor],
    validation: tuple[Callable[[], Tensor], Tensor],
    groups: list[dict[str, object]] | None = None,
) -> None:
    """Train by cross entropy and keep the state that is best on the validation nodes (the last one without any).

    Args:
        network: changed in place.
        training: how.
        train: a function that gives the logits of the training nodes, and the labels of these nodes.
        validation: the same for the validation nodes.
        groups: parameter groups of the optimiser (weight decay); by default all parameters without decay.
    """
    parameters = [{"params": list(network.parameters())}] if groups is None else groups
    optimizer = torch.optim.Adam(parameters, lr=training.learning_rate)
    best, best_value, waited = None, -math.inf, 0
    losses: list[float] = []
    for epoch in range(training.epochs):
        if training.falling:
            for group in optimizer.param_groups:
                group["lr"] = training.learning_rate * (1 - epoch / training.epochs)
        network.train()
        optimizer.zero_grad()
        cross_entropy(train[0](), train[1]).backward()
        optimizer.step()
        if not len(validation[1]):
            continue
        network.eval()
        with torch.no_grad():
            logits = validation[0]()
        accurate = training.select == "accuracy"
        losses.append(float(cross_entropy(logits, validation[1])))
        value = _accuracy(logits, validation[1]) if accurate else -losses[-1]
        waited += 1
        if value > best_value:
            best_value, waited = value, 0
            best = {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}
        if training.patience is not None and waited >= training.patience:
            break
        if training.window is not None and len(losses) > training.window:
            before = losses[-training.window - 1 : -1]
            if losses[-1] > sum(before) / len(before):
                break
    if best is not None:
        network.load_state_dict(best)
    network.eval()


def fit_on_rows(
    network: nn.Module, rows: Tensor, nodes: PublicNodes, training: Training, *, weight_decay: float = 0.0
) -> None:
    """Train a network that scores every row by itself: only training and validation rows are computed."""
    masks = nodes.train_mask, nodes.validation_mask
    given = [sparse_if_worth_it(rows[mask]) for mask in masks]
    fit_network(
        network,
        training=training,
        train=(lambda: network(given[0]), nodes.labels[masks[0]]),
        validation=(lambda: network(given[1]), nodes.labels[masks[1]]),
        groups=[{"params": list(network.parameters()), "weight_decay": weight_decay}],
    )


def logits_of(network: nn.Module, rows: Tensor, *, each_by_itself: bool = False) -> Tensor:
    """Scores of all rows, in evaluation mode.

    Args:
        network: scores every row by itself.
        rows: one per node.
        each_by_itself: for rows that hold private counts: the choice between sparse and dense arithmetic, which looks at
            all rows together, could move the last bits of a row; then it is always dense.
    """
    network.eval()
    parts = rows.split(_ROWS_AT_ONCE)
    with torch.no_grad():
        return torch.cat([network(part if each_by_itself else sparse_if_worth_it(part)) for part in parts])


class SparseLinear(nn.Module):
    """A linear layer (with or without bias) whose input may be sparse: bags of words are mostly zeros."""

    def __init__(self, inputs: int, outputs: int, *, bias: bool = True) -> None:
        super().__init__()
        limit = math.sqrt(6 / (inputs + outputs))
        self.weight = nn.Parameter(torch.empty(inputs, outputs).uniform_(-limit, limit))
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None

    def forward(self, rows: Tensor) -> Tensor:
        product = sparse_product(rows, self.weight) if is_sparse(rows) else rows @ self.weight
        return product if self.bias is None else product + self.bias


class Perceptron(nn.Module):
    """Linear layers with ReLU and dropout between them; dropout on the input too, unless told otherwise."""

    def __init__(
        self,
        inputs: int,
        hidden: int,
        outputs: int,
        *,
        layers: int,
        share: float,
        bias: bool = True,
        drop_input: bool = True,
    ) -> None:
        super().__init__()
        widths = [inputs, *[hidden] * (layers - 1), outputs]
        self.layers = nn.ModuleList(SparseLinear(a, b, bias=bias) for a, b in pairwise(widths))
        self.share, self.drop_input = share, drop_input

    def forward(self, rows: Tensor) -> Tensor:
        for place, layer in enumerate(self.layers):
            share = self.share if place > 0 or self.drop_input else 0.0
            rows = layer(drop(rows, share, self.training))
            if place < len(self.layers) - 1:
                rows = torch.relu(rows)
        return rows


def drop(rows: Tensor, share: float, training: bool) -> Tensor:
    """Dropout, also for sparse rows (only stored entries can be dropped)."""
    if not training or share == 0:
        return rows
    if not is_sparse(rows):
        return dropout(rows, share, training=True)
    return _sparse_rows(rows.crow_indices(), rows.col_indices(), dropout(rows.values(), share), rows.shape)


def sparse_if_worth_it(rows: Tensor) -> Tensor:
    """The same rows, as compressed sparse rows if most entries are zero."""
    found = int(rows.count_nonzero())
    if rows.numel() == 0 or found >= 0.2 * rows.numel():
        return rows
    matrix = scipy.sparse.csr_matrix(rows.detach().numpy())
    return _sparse_rows(
        torch.from_numpy(matrix.indptr), torch.from_numpy(matrix.indices), torch.from_numpy(matrix.data), rows.shape
    )


def is_sparse(rows: Tensor) -> bool:
    return rows.layout == torch.sparse_csr


def sparse_product(matrix: Tensor | scipy.sparse.csr_matrix, rows: Tensor) -> Tensor:
    """A sparse matrix times dense rows, with the gradient for the rows; many times faster than torch.sparse.mm."""
    if isinstance(matrix, Tensor):
        parts = (matrix.values().numpy(), matrix.col_indices().numpy(), matrix.crow_indices().numpy())
        matrix = scipy.sparse.csr_matrix(parts, shape=(matrix.shape[0], matrix.shape[1]))
    product: Tensor = _SparseProduct.apply(matrix, rows)  # type: ignore[no-untyped-call]
    return product


class _SparseProduct(torch.autograd.Function):
    """M x; the gradient for x is the transpose of M times the gradient."""

    @staticmethod
    def forward(context: Any, matrix: scipy.sparse.csr_matrix, rows: Tensor) -> Tensor:
        context.matrix = matrix
        return torch.from_numpy(matrix @ rows.detach().numpy())

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        return None, torch.from_numpy(context.matrix.T @ gradients[0].numpy())


def _sparse_rows(pointers: Tensor, columns: Tensor, values: Tensor, shape: Sequence[int]) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch announces that sparse CSR is in beta
        return torch.sparse_csr_tensor(pointers, columns, values, size=tuple(shape), check_invariants=False)


def _accuracy(logits: Tensor, labels: Tensor) -> float:
    return float((logits.argmax(dim=1) == labels).double().mean())
