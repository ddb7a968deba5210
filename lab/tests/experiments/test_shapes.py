"""Made-up graphs of unusual shapes are what their names say."""

import numpy as np
import pytest
import torch

from gcon.privacy.gates import declassify
from gcon.privacy.ledger import MemoryLedger
from gcon_lab.experiments.sweep.graphs import SHAPES, SHARES, UnusualCircles, open_graph

UNEVEN = UnusualCircles(degree=40, homophily=0.5, signal=1.5, nodes=6000, features=8, shares=SHARES, labelled=80)


def test_uneven_classes_have_their_shares_and_keep_their_edges():
    graph = UNEVEN.draw("uneven", seed=3)
    nodes = graph.nodes
    found = np.bincount(nodes.labels.numpy(), minlength=4) / nodes.num_nodes
    assert found == pytest.approx(SHARES, abs=0.02)
    assert int(nodes.train_mask.sum()) == 80
    assert int(nodes.validation_mask.sum()) == 500
    edges = declassify(graph.edges, reason="a made-up graph", ledger=MemoryLedger("uneven"))
    ends = nodes.labels[edges.edge_index()]
    inside = float((ends[0] == ends[1]).double().mean())
    assert 0.5 < inside < 0.95  # more than among even classes, since the large one is most of the graph
    again = UNEVEN.draw("uneven", seed=3).nodes
    assert torch.equal(again.features, nodes.features)


def test_mixed_features_have_many_scales():
    shape = UnusualCircles(degree=5, homophily=0.8, signal=2.0, nodes=400, features=30, mixed=True)
    scales = shape.draw("mixed", seed=0).nodes.features.std(dim=0)
    assert float(scales.max() / scales.min()) > 20


def test_every_shape_is_sparse_and_dense():
    names = {name.rsplit("-", 1)[0] for name in SHAPES}
    assert {f"{name}-{kind}" for name in names for kind in ("sparse", "dense")} == set(SHAPES)
    assert sum(shape.classes == 100 for shape in SHAPES.values()) == 4


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_edges_by_chance_do_not_care_about_classes(kind):
    opened = open_graph(f"edges-by-chance-{kind}", 0)
    one, other = opened.graph.nodes.labels[opened.edges.edge_index()]
    assert float((one == other).double().mean()) == pytest.approx(0.25, abs=0.02)
