"""Nodes never seen: a quarter of the test nodes is kept out of training, with their edges, and answered afterwards.

    python -m gcon_lab.experiments.unseen --out DIR

Three answers for them: a perceptron taught by labels, the student of the edge-free model (zero budget), and the student of
the private one at epsilon 1. Under `own-edges` the last two also use the nodes' own edges.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from gcon.edges.edge_list import EdgeList
from gcon.edges.graph import PrivateGraph, private_graph
from gcon.methods.moments import Moments
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.experiments.command import command, write_all
from gcon_lab.experiments.sweep.graphs import open_graph
from gcon_lab.experiments.sweep.models import seed_of
from gcon_lab.experiments.units import Call, finished
from gcon_lab.methods import MLP, MomentsWithoutEdges
from gcon_lab.methods.fitted import fit
from gcon_lab.tables import markdown, mean_and_error

GRAPHS = ("cora-ml", "citeseer", "pubmed", "actor")
EPSILON, DELTA = 1.0, 1e-5
_KEPT_OUT = 0.25


def without_some(graph: PrivateGraph, edges: EdgeList, run: int) -> tuple[PrivateGraph, torch.Tensor]:
    """The graph without a quarter of its test nodes and without their edges, and a mask of those nodes."""
    nodes = graph.nodes
    draws = torch.rand(nodes.num_nodes, generator=torch.Generator().manual_seed(run))
    unseen = nodes.test_mask & (draws < _KEPT_OUT)
    seen = ~unseen
    places = torch.cumsum(seen.long(), dim=0) - 1
    pairs = edges.edge_index()
    kept = pairs[:, seen[pairs[0]] & seen[pairs[1]]]
    masks = {name: getattr(nodes, name)[seen] for name in ("train_mask", "validation_mask", "test_mask")}
    rest = replace(nodes, features=nodes.features[seen], labels=nodes.labels[seen], **masks)
    return private_graph(rest, places[kept], name=f"{graph.name}, a part"), unseen


def scores(name: str, run: int) -> dict[str, float]:
    """The share of right answers on the nodes never seen, by model and access."""
    opened = open_graph(name, run)
    nodes = opened.graph.nodes
    part, unseen = without_some(opened.graph, opened.edges, run)
    noise = SeededRandomness(seed_of(f"unseen|{name}|{run}"))
    methods = (MLP(seed=run), MomentsWithoutEdges(seed=run), Moments(epsilon=EPSILON, delta=DELTA, seed=run))
    found = {}
    for method in methods:
        fitted = fit(method, part, randomness=noise)
        for access in ("none", "own-edges"):
            if (scorer := fitted.trained.score_functions.get(access)) is not None:
                classes = scorer(nodes.features, opened.edges).argmax(dim=1)
                found[f"{method.name}, {access}"] = float((classes == nodes.labels)[unseen].double().mean())
    return found


def main() -> None:
    given = command(__doc__, "runs", "workers", runs=5, workers=1).parse_args()
    rows = []
    for name in GRAPHS:
        units = [Call(f"{name}-run{run}", scores, (name, run)) for run in range(given.runs)]
        found = finished(units, given.out / "store", workers=given.workers)
        rows.append([name, *(mean_and_error([each[column] for each in found]) for column in found[0])])
    head = [
        "# Nodes never seen",
        "",
        f"Made by `python -m gcon_lab.experiments.unseen --runs {given.runs} --out DIR`: mean and standard error of the share of",
        "right answers on a quarter of the test nodes, kept out of training with their edges. Epsilon",
        f"{EPSILON:g}, delta {DELTA:g}, seeded noise. The students answer for all nodes here, also for the neighbours that",
        "were in training.",
        "",
    ]
    write_all(given.out, {"unseen.md": "\n".join([*head, markdown(["graph", *found[0]], rows)])})


if __name__ == "__main__":
    main()
