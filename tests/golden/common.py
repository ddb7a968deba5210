"""Made-up graphs, a clock that stands still, and checksums."""

import hashlib
from dataclasses import asdict
from datetime import UTC, datetime

import numpy as np
import torch

from gcon.edges.edge_list import public_edges
from gcon.edges.graph import PublicGraph, private_graph
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.privacy.ledger import MemoryLedger
from gcon.release.layout import canonical


def exact_roots(tensor):
    """Torch's come from MKL's vector library: inexact, and another on Intel's processors than on AMD's, whatever is pinned."""
    assert not (tensor.requires_grad and torch.is_grad_enabled())
    return torch.from_numpy(np.asarray(np.sqrt(tensor.detach().numpy())))


torch.Tensor.sqrt = torch.sqrt = exact_roots
# Seeds with which every kind of member of the default's ensemble, its perceptron too, has a weight in some answers.
SIZES = {"num_nodes": 240, "num_classes": 3, "num_features": 12, "per_class": 12, "feature_signal": 1.5}
DENSE = social_circles_parts(**SIZES, mean_degree=24, seed=2)
LABELLED = social_circles_parts(
    **SIZES | {"per_class": 36, "num_validation": 30, "num_test": 40, "feature_signal": 0.5}, mean_degree=24, seed=2
)
SPARSE = social_circles_parts(**SIZES, mean_degree=3, seed=5)
OTHER = social_circles_parts(**SIZES | {"num_nodes": 90}, mean_degree=6, seed=3)


def graph_of(parts):
    return private_graph(*parts, name="circles")


def other_graph():
    """Nodes never seen, with edges that everybody may know."""
    nodes, edge_index = OTHER
    return PublicGraph(nodes.features, public_edges(edge_index, nodes.num_nodes))


def ledger():
    return MemoryLedger("circles", clock=lambda: datetime(2030, 1, 2, tzinfo=UTC))


def checksum(content):
    return hashlib.sha256(content).hexdigest()


def tensor_checksum(tensor):
    """Of shape, type and numbers."""
    head = f"{tensor.dtype} {tuple(tensor.shape)}\n".encode()
    return checksum(head + tensor.detach().contiguous().numpy().tobytes())


def receipt_facts(receipt):
    """Checksums of the plan, and of all else that a receipt says."""
    said = asdict(receipt)
    plan, counted = said.pop("plan"), said.pop("counted")
    assert counted
    return {"receipt/plan": checksum(canonical(plan)), "receipt/words": checksum(canonical(said))}


def named(name, facts):
    return {f"{name}/{key}": value for key, value in facts.items()}
