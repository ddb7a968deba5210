"""The paper's table, recounted from the raw files."""

import os
import socket
import subprocess
import sys

import numpy as np
import pytest
import torch
from tests.opened import open_private

from gcon.files.datasets import FACTS, load, names

pytestmark = [pytest.mark.data, pytest.mark.usefixtures("data_folder")]

# Undirected simple edges, isolated nodes, largest degree.
SIMPLE = {
    "cora-ml": (8_158, 0, 246),
    "citeseer": (4_552, 48, 99),
    "pubmed": (44_324, 0, 171),
    "actor": (26_659, 0, 1_303),
    "cora": (5_278, 0, 168),
}


def node_homophily(edges, labels, *, isolated_count):
    rows, columns = edges.edge_index()
    same = torch.bincount(rows, weights=(labels[rows] == labels[columns]).double(), minlength=edges.num_nodes)
    share = same / edges.degrees.clamp(min=1)
    return float((share if isolated_count else share[edges.degrees > 0]).mean())


@pytest.mark.parametrize("name", names())
def test_the_published_table(name):
    facts, graph = FACTS[name], load(name)
    nodes, edges, hygiene = graph.nodes, open_private(graph.edges), open_private(graph.hygiene)
    assert graph.name == name
    assert nodes.num_nodes == facts.num_nodes
    assert hygiene.given == facts.num_edges
    assert nodes.features.shape[1] == facts.num_features
    assert nodes.num_classes == facts.num_classes == int(nodes.labels.max()) + 1
    assert round(node_homophily(edges, nodes.labels, isolated_count=True), 2) == facts.homophily


@pytest.mark.parametrize("name", names())
def test_undirected_simple_edges(name):
    edges = open_private(load(name).edges)
    kept, isolated, largest = SIMPLE[name]
    assert edges.columns.numel() == 2 * kept
    assert int((edges.degrees == 0).sum()) == isolated
    assert int(edges.degrees.max()) == largest


def test_only_actor_has_loops_and_single_directions():
    loops = {name: open_private(load(name).hygiene).self_loops for name in names()}
    assert loops == {"cora-ml": 0, "citeseer": 0, "pubmed": 0, "actor": 93, "cora": 0}


def test_homophily_conventions_of_citeseer():
    graph = load("citeseer")
    edges, labels = open_private(graph.edges), graph.nodes.labels.clamp(min=0)  # PyG puts 0 where we put -1
    assert node_homophily(edges, labels, isolated_count=True) == pytest.approx(0.7062, abs=5e-5)
    assert node_homophily(edges, labels, isolated_count=False) == pytest.approx(0.7166, abs=5e-5)


@pytest.mark.parametrize("name", ["citeseer", "pubmed", "cora", "cora-ml"])
@pytest.mark.parametrize("split", [0, 1, 2])
def test_per_class_splits(name, split):
    nodes = load(name, split=split).nodes
    counts = torch.bincount(nodes.labels[nodes.train_mask], minlength=nodes.num_classes)
    assert counts.tolist() == [20] * nodes.num_classes
    assert (int(nodes.validation_mask.sum()), int(nodes.test_mask.sum())) == (500, 1000)


def test_split_zero_of_citeseer_is_the_public_one():
    nodes = load("citeseer").nodes
    assert nodes.train_mask.nonzero().flatten().tolist() == list(range(120))
    assert nodes.validation_mask.nonzero().flatten().tolist() == list(range(120, 620))
    assert not torch.equal(nodes.train_mask, load("citeseer", split=1).nodes.train_mask)


@pytest.mark.parametrize("split", range(5))
def test_actor_splits(split):
    nodes = load("actor", split=split).nodes
    sizes = [int(mask.sum()) for mask in (nodes.train_mask, nodes.validation_mask, nodes.test_mask)]
    assert sizes == [4_560, 1_520, 1_520]


def test_the_five_actor_splits_differ():
    masks = torch.stack([load("actor", split=split).nodes.train_mask for split in range(5)])
    assert masks.unique(dim=0).shape[0] == FACTS["actor"].num_splits == 5


def test_the_reference_split_of_cora_ml():
    nodes = load("cora-ml").nodes
    labels = nodes.labels.numpy()
    rng = np.random.default_rng(0)
    train = np.concatenate([rng.permutation(np.where(labels == c)[0])[:20] for c in range(7)])
    rest = rng.permutation(np.setdiff1d(np.arange(labels.size), train))
    assert set(nodes.train_mask.nonzero().flatten().tolist()) == set(train.tolist())
    assert set(nodes.validation_mask.nonzero().flatten().tolist()) == set(rest[:500].tolist())
    assert set(nodes.test_mask.nonzero().flatten().tolist()) == set(rest[500:1500].tolist())


def test_the_unlabelled_nodes_of_citeseer_are_never_drawn(data_folder):
    unlabelled = load("citeseer").nodes.labels < 0
    assert int(unlabelled.sum()) == 15
    index_file = data_folder / "CiteSeer" / "raw" / "ind.citeseer.test.index"
    listed = {int(line) for line in index_file.read_text().split()}
    missing = set(range(min(listed), max(listed) + 1)) - listed
    assert set(unlabelled.nonzero().flatten().tolist()) == missing
    for split in range(6):
        nodes = load("citeseer", split=split).nodes
        assert not bool(nodes.features[unlabelled].any())
        assert not bool((unlabelled & (nodes.train_mask | nodes.validation_mask | nodes.test_mask)).any())


@pytest.mark.parametrize("name", ["pubmed", "cora", "cora-ml", "actor"])
def test_all_other_nodes_are_labelled(name):
    assert int(load(name).nodes.labels.min()) == 0


def test_features_as_documented():
    for name in ("cora-ml", "citeseer", "cora", "actor"):
        assert set(load(name).nodes.features.unique().tolist()) == {0.0, 1.0}
    assert float(load("pubmed").nodes.features.max()) == pytest.approx(1.263, abs=1e-3)


def test_loading_neither_writes_to_the_data_nor_uses_the_network(data_folder, tmp_path, monkeypatch):
    def state():
        paths = [data_folder, *data_folder.rglob("*")]
        return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in paths}

    def refuse(*_):
        raise AssertionError("the network was used")

    monkeypatch.setenv("GCON_CACHE", str(tmp_path))
    monkeypatch.setattr(socket.socket, "connect", refuse)
    before = state()
    for name in names():
        load(name)
    assert state() == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_two_processes_at_once_and_without_a_word(data_folder, tmp_path):
    script = "from gcon.files.datasets import load; print(load('Cora', split=3).nodes.fingerprint)"
    environment = {key: value for key, value in os.environ.items() if key != "PYTEST_CURRENT_TEST"}
    environment |= {
        "GCON_CACHE": str(tmp_path),
        "GCON_DATA": str(data_folder),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    started = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", script],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    answers = [process.communicate(timeout=120) for process in started]
    assert [errors for _, errors in answers] == ["", ""]
    assert [printed.strip() for printed, _ in answers] == [load("cora").nodes.fingerprint] * 2
    assert list(tmp_path.iterdir()) == []
