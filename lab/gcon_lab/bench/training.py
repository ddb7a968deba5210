"""Whole trainings on made-up graphs: the default method, features and labels to release, and PyG's GCN as the line to beat."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, dropout

from gcon.edges.edge_list import EdgeList
from gcon.edges.source import Edges
from gcon.learn.edge_free import forget_learned
from gcon.methods.moments import Moments
from gcon.nodes import PublicNodes, row_slices
from gcon.privacy.boundary import Private
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.bench.graphs import KINDS

ALIKE = 0.5  # of the edges join nodes of one kind
CLASSES, FEATURES, EPSILON = 10, 64, 1.0
_SIGNAL = 2.0  # length of a class mean; the noise of a feature is 1
_LABELLED, _A_CLASS, _VALIDATION, _SCORED = 0.01, 20, 1000, 50_000
_HIDDEN, _EPOCHS, _PATIENCE, _LEARNING_RATE, _WEIGHT_DECAY = 16, 200, 10, 0.01, 5e-4

Answers = dict[str, float]
"""The share of test nodes answered rightly, by the way of answering."""


def made_features(size: int, width: int, *, device: str = "cpu", file: Path | None = None) -> Tensor:
    """A class mean and noise make the features of a node; in memory, or in a file that is mapped."""
    generator = torch.Generator(device).manual_seed(1)
    means = torch.randn(CLASSES, width, device=device, generator=generator)
    means *= _SIGNAL / torch.linalg.vector_norm(means, dim=1, keepdim=True)
    features, labels = torch.empty(0) if file else torch.empty(size, width), _labels(size)
    if file:
        mapped = np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=(size, width))
        features = torch.from_numpy(mapped)
    for rows in row_slices(size, 2**18):
        noise = torch.randn(rows.stop - rows.start, width, device=device, generator=generator)
        features[rows] = (means[labels[rows].to(device)] + noise).cpu()
    return features


def kept_features(file: Path, *, mapped: bool) -> Tensor:
    """The same from a file: read whole, or mapped."""
    return torch.from_numpy(np.load(file, mmap_mode="r+" if mapped else None))


def nodes_of(features: Tensor) -> PublicNodes:
    """Ten classes, by the number of a node modulo 16; 1 % of the nodes are labelled, at least 20 per class."""
    size = len(features)
    order = torch.randperm(size, generator=torch.Generator().manual_seed(2))
    labelled = max(int(_LABELLED * size), min(_A_CLASS * CLASSES, size // 4))
    validation = min(_VALIDATION, size // 4)
    scored = min(_SCORED, size - labelled - validation)
    masks = torch.zeros(3, size, dtype=torch.bool)
    for mask, part in zip(masks, order.split([labelled, validation, size - labelled - validation]), strict=True):
        mask[part[: max(scored, labelled, validation)]] = True
    return PublicNodes(
        features=features,
        labels=_labels(size),
        num_classes=CLASSES,
        train_mask=masks[0],
        validation_mask=masks[1],
        test_mask=masks[2],
    )


def train_default(nodes: PublicNodes, edges: Private[Edges], device: str, progress: Callable[[str], None]) -> Answers:
    """Everything from features and labels to the release; nothing is remembered from the last time."""
    forget_learned()
    model = Moments(epsilon=EPSILON, device=device).train(
        nodes, edges, ledger=MemoryLedger("made up"), randomness=SystemRandomness(), progress=progress
    )
    return {"none": _right(model.answers, nodes), "cached": _right(model.best_answers, nodes)}


def train_gcn(
    layout: str, nodes: PublicNodes, edges: EdgeList, device: str, progress: Callable[[str], None]
) -> Answers:
    """PyG's GCN (Kipf and Welling): 16 hidden units, Adam, at most 200 epochs, stops after 10 without a better validation loss.

    Args:
        layout: `edges` for an edge_index, a message per entry; `rows` for torch's sparse rows, as PyG advises for large graphs.
        nodes: features, labels, masks.
        edges: not private here.
        device: where they are.
        progress: told every tenth epoch.
    """
    from torch_geometric.nn import GCNConv

    torch.manual_seed(0)
    graph, weights = (_symmetric_rows(edges), None) if layout == "rows" else _symmetric_entries(edges)
    features, labels = nodes.features.to(device), nodes.labels.to(device)
    layers = [
        GCNConv(*shape, normalize=False).to(device) for shape in ((features.shape[1], _HIDDEN), (_HIDDEN, CLASSES))
    ]
    groups: list[dict[str, Any]] = [
        {"params": layers[0].parameters(), "weight_decay": _WEIGHT_DECAY},
        {"params": layers[1].parameters()},
    ]
    optimizer = torch.optim.Adam(groups, lr=_LEARNING_RATE)
    train, validation = nodes.train_mask.to(device), nodes.validation_mask.to(device)

    def scores(training: bool) -> Tensor:
        hidden = torch.relu(layers[0](dropout(features, training=training), graph, weights))
        found: Tensor = layers[1](dropout(hidden, training=training), graph, weights)
        return found

    best, answers, worse = math.inf, torch.empty(0), 0
    for epoch in range(_EPOCHS):
        if epoch % 10 == 0:
            progress(f"epoch {epoch}")
        optimizer.zero_grad()
        cross_entropy(scores(True)[train], labels[train]).backward()
        optimizer.step()
        with torch.no_grad():
            found = scores(False)
            loss = float(cross_entropy(found[validation], labels[validation]))
        worse += 1
        if loss < best:
            best, answers, worse = loss, found, 0
        if worse == _PATIENCE:
            break
    return {"exact edges": _right(answers.cpu(), nodes)}


GCNS: dict[str, Callable[..., Answers]] = {
    "PyG GCN": partial(train_gcn, "edges"),
    "PyG GCN, CSR": partial(train_gcn, "rows"),
}


def _symmetric_entries(edges: EdgeList) -> tuple[Tensor, Tensor]:
    """The edge_index with self-loops, and the weights of the symmetric normalisation, by PyG's own code."""
    from torch_geometric.nn.conv.gcn_conv import gcn_norm

    rows = torch.repeat_interleave(
        torch.arange(edges.num_nodes, device=edges.columns.device), edges.row_pointers.diff()
    )
    found = gcn_norm(torch.stack([edges.columns.long(), rows]), None, edges.num_nodes, dtype=torch.float32)
    return found[0], found[1]


def _symmetric_rows(edges: EdgeList) -> Tensor:
    """The same as torch's sparse rows."""
    index, weights = _symmetric_entries(edges)
    size = (edges.num_nodes, edges.num_nodes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.sparse_coo_tensor(index.flip(0), weights, size, check_invariants=False).to_sparse_csr()


def _labels(size: int) -> Tensor:
    return torch.arange(size) % KINDS % CLASSES


def _right(answers: Tensor, nodes: PublicNodes) -> float:
    return float((answers.argmax(dim=1) == nodes.labels)[nodes.test_mask].double().mean())
