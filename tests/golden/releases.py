"""Release folders of the default and of the paper's method, and what they answer under every access."""

import json
import math
from contextlib import contextmanager
from unittest.mock import patch

from common import DENSE, LABELLED, SPARSE, checksum, graph_of, ledger, named, other_graph, tensor_checksum

from gcon.edges.graph import LargeGraph
from gcon.edges.kernels import multiply
from gcon.edges.stored import StoredEdges
from gcon.estimators.gcon_classifier import GCON
from gcon.estimators.node_classifier import NodeClassifier
from gcon.files.edge_store import write_edge_store
from gcon.learn import sample
from gcon.learn.perceptron import EncoderSettings
from gcon.methods.moments import Moments
from gcon.methods.no_edges import predict_without_edges
from gcon.methods.objective import Objective
from gcon.methods.own_edges import predict_from_own_edges
from gcon.methods.public_graph import predict_on_public_graph
from gcon.privacy.boundary import Private
from gcon.privacy.randomness import SeededRandomness
from gcon.release.layout import canonical
from gcon.release.store import save_release

KERNELS = ("numba", "torch")
SHORT = {"epochs": 40, "random_state": 5}
PAPER = {
    "paper-soft-margin": {"epsilon": 2.0, "steps": 2, "loss": "soft-margin", **SHORT},
    "paper-pseudo-huber-all": {
        "epsilon": 4.0,
        "steps": (0, 1, 5, math.inf),
        "restart": 0.5,
        "loss": "pseudo-huber:0.2",
        "expand": "all",
        "clip": 0.2,
        **SHORT,
    },
    "paper-pseudo-huber-labelled": {
        "epsilon": 4.0,
        "steps": (math.inf,),
        "loss": "pseudo-huber:0.1",
        "expand": "labelled",
        "hidden": None,
        "centre": False,
        **SHORT,
    },
    "paper-without-noise": {"epsilon": math.inf, "steps": (1, 2), "influence": "simple", **SHORT},
}


def releases(place):
    """All of them, folders written below a place."""
    dense, sparse = graph_of(DENSE), graph_of(SPARSE)
    stored = stored_graph(place / "edges.csr")
    found = {}

    def add(name, model, graph):
        found.update(named(name, facts(model, graph, place / name)))

    for kernel in KERNELS:
        with kernel_chosen(kernel):
            for graph, kind in ((dense, "dense"), (sparse, "sparse")):
                model = default(graph, kind)
                assert (model.cached is None) == (kind == "sparse"), "the graph is to choose its second stage"
                add(f"moments-{kind}-{kernel}", model, graph)
            add(f"moments-stored-{kernel}", stored_default(stored), stored)
            add(f"paper-stored-{kernel}", stored_paper(stored), stored)
            for name, settings in PAPER.items():
                add(f"{name}-{kernel}", GCON(**settings, ledger=ledger()).fit(dense).model_, dense)
    for entry, nodes in (("moments-labelled", 1000), ("moments-large-labelled", 150)):
        with large_from(nodes):
            model = default(graph_of(LABELLED), "dense")
            assert [table.one_way for table in model.tables] == [True], "so many labels speak alone"
            add(entry, model, graph_of(LABELLED))
    with large_from(150):
        add("moments-large-dense", default(dense, "dense"), dense)
        add("moments-large-sparse", default(sparse, "sparse"), sparse)
    return found


def default(graph, kind):
    epsilon = {"dense": 4.0, "sparse": 1.0}[kind]  # neighbour counts are heard, and are not
    return NodeClassifier(epsilon=epsilon, random_state=5, ledger=ledger()).fit(graph).model_


def stored_default(graph):
    training = Moments(epsilon=4.0)
    return training.train(graph.nodes, graph.edges, ledger=ledger(), randomness=SeededRandomness(5))


def stored_paper(graph):
    method = Objective(epsilon=2.0, encoder=EncoderSettings(epochs=40))
    return method.train(graph.nodes, graph.edges, ledger=ledger(), randomness=SeededRandomness(5))


def stored_graph(target):
    """The dense graph on disk, read in many small blocks."""
    nodes, edge_index = DENSE
    write_edge_store([edge_index.numpy()], target, num_nodes=nodes.num_nodes)
    return LargeGraph(nodes, Private(StoredEdges(target, 1024), "stored edges"), "circles")


@contextmanager
def kernel_chosen(name):
    with patch.dict(multiply.KERNELS, cpu=f"gcon.edges.kernels.multiply_{name}"):
        yield


@contextmanager
def large_from(num_nodes):
    """A graph with more nodes than these is a large one: a sample teaches, and answers come in blocks."""
    limits = {"EXACT_NODES": num_nodes, "SAMPLE_NODES": num_nodes, "COMPARED_NODES": num_nodes, "BLOCK_NODES": 70}
    with patch.multiple(sample, **limits):
        yield


def facts(model, graph, folder):
    """Checksums of all files of the release, and of its probabilities under every access."""
    save_release(model, folder)
    files = {f"folder/{path.name}": checksum(_without_versions(path)) for path in sorted(folder.iterdir())}
    found = {f"predict/{access}": tensor_checksum(_probabilities(model, graph, access)) for access in model.accesses}
    return files | found


def _probabilities(model, graph, access):
    features = graph.nodes.features
    if access == "own-edges":
        return predict_from_own_edges(model, features, graph.edges, ledger=ledger()).probabilities
    if access == "public-graph":
        other = other_graph()
        return predict_on_public_graph(model, other.features, other.edges).probabilities
    return predict_without_edges(model, features, access=access).probabilities


def _without_versions(path):
    """A file's bytes; those of release.json without versions of libraries, and without its checksum over them."""
    content = path.read_bytes()
    if path.name != "release.json":
        return content
    document = json.loads(content)
    assert canonical(document) == content
    return canonical({name: value for name, value in document.items() if name not in ("libraries", "checksum")})
