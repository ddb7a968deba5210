"""The two releases that benchmarks/gpu.py measures, on any device, so that their memory is watched where there is no GPU too.

Beside the edges (4 bytes per entry and 8 per node) live the features once, in single precision, and two states of the walk:
4 n d + 2 * 8 n d bytes for n nodes and d columns.
"""

from __future__ import annotations

import time

import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList
from gcon.edges.schemes import Schemes
from gcon.mechanisms.aggregates import Aggregates
from gcon.mechanisms.gaussian_release import gaussian_plan
from gcon.mechanisms.losses import loss_by_name
from gcon.mechanisms.objective_perturbation import ObjectivePerturbation
from gcon.mechanisms.objective_plan import make_plan
from gcon.privacy.account import release_once, spend
from gcon.privacy.boundary import Private
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.mechanisms.class_sums import ClassSums

COLUMNS, CLASSES, STEPS, RESTART, LABELLED = 16, 8, 10, 0.2, 0.011


def unit_features(num_nodes: int, device: torch.device) -> Tensor:
    """Random rows of length 1, and a little less."""
    generator = torch.Generator(device).manual_seed(1)
    features = torch.randn(num_nodes, COLUMNS, device=device, generator=generator)
    for rows in features.split(2**22):
        rows /= torch.linalg.vector_norm(rows, dim=1, keepdim=True) * (1 + 2.0**-20)
    return features


def large_release(edges: EdgeList, device: torch.device) -> dict[str, float]:
    """Class sums after ten steps with their noise, then objective perturbation on the labelled nodes' aggregates."""
    num_nodes = edges.num_nodes
    generator = torch.Generator().manual_seed(1)
    labelled = torch.rand(num_nodes, generator=generator) < LABELLED
    labels = torch.randint(CLASSES, (int(labelled.sum()),), generator=generator)
    hot = torch.nn.functional.one_hot(labels, CLASSES).double()
    targets = torch.zeros(num_nodes, CLASSES)
    targets[labelled] = hot.float()
    schemes = Schemes(restart=RESTART, steps=(STEPS,))
    ledger, randomness, private = MemoryLedger(), SystemRandomness(), Private(edges, "edges")
    times: dict[str, float] = {}

    start = time.perf_counter()
    sums = ClassSums(unit_features(num_nodes, device), targets, schemes, device=str(device))
    spending = gaussian_plan(1.0, 1e-9, method="benchmark")
    times["public part of the class sums, s"] = time.perf_counter() - start
    start = time.perf_counter()
    with spend(private, spending, ledger=ledger, randomness=randomness, purpose="benchmark") as account:
        account.release(spending.noisy(sums, share=1.0))
    times["ten steps, class sums, noise, s"] = time.perf_counter() - start
    del sums, account

    start = time.perf_counter()
    # No name for the features here: the aggregates keep a copy of their own.
    aggregates = Aggregates(unit_features(num_nodes, device), schemes, device=str(device), rows=labelled)
    plan = make_plan(
        Budget(1.0, 1e-9),
        loss=loss_by_name("soft-margin", CLASSES),
        num_features=COLUMNS,
        num_labelled=len(labels),
        edge_influence=aggregates.edge_influence,
        ridge=1.0,
        noise_share=0.9,
        margin=None,
    )
    every = torch.ones(len(labels), dtype=torch.bool)
    mechanism = ObjectivePerturbation(aggregates=aggregates, plans=(plan,), mask=every, targets=hot)
    times["public part of the solve, s"] = time.perf_counter() - start
    start = time.perf_counter()
    release_once(mechanism, private, ledger=ledger, randomness=randomness, purpose="benchmark")
    times["ten steps again, perturb, solve, s"] = time.perf_counter() - start
    return times
