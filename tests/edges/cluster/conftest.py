"""One cluster of two processes for all tests, and a small graph that its workers read from disk."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
import torch

pytest.importorskip("distributed")

from gcon.edges.cluster.edges import connected, open_cluster
from gcon.edges.cluster.local import local_cluster
from gcon.edges.edge_list import public_edges
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.files.edge_store import write_edge_store
from gcon.privacy.boundary import Private


@pytest.fixture(scope="session")
def cluster():
    with local_cluster(2) as started:
        yield started


def lends(yes):
    """Have a process lend memory, as on Linux, or not, as where workers are on different machines."""
    from gcon.edges.cluster import nearby

    if not hasattr(nearby, "real"):
        nearby.real = os.memfd_create
    if yes:
        os.memfd_create = nearby.real
    elif hasattr(os, "memfd_create"):
        del os.memfd_create


@pytest.fixture(params=["near", "far", "mixed"])
def nearness(request, client):
    """Whether workers and client read each other's memory, send everything, or one worker is on another machine."""
    far = {"near": [], "far": sorted(client.nthreads()), "mixed": sorted(client.nthreads())[:1]}[request.param]
    if far:
        client.run(lends, False, workers=far)
    lends(request.param != "far")
    yield request.param
    client.run(lends, True)
    lends(True)


@pytest.fixture
def client(cluster):
    with connected(cluster.address, cluster.security) as connected_client:
        yield connected_client


@pytest.fixture(scope="session")
def parts():
    """Public nodes and bare edges; the last three nodes are isolated, node 0 is a hub."""
    nodes, edge_index = social_circles_parts(100, num_classes=3, mean_degree=18, num_features=6, per_class=8, seed=1)
    kept = edge_index[:, (edge_index < 97).all(dim=0)]
    hub = torch.stack([torch.zeros(96, dtype=torch.int64), torch.arange(1, 97)])
    return nodes, torch.cat([kept, hub], dim=1)


@pytest.fixture(scope="session")
def folder(parts, tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "edges.csr"
    write_edge_store([parts[1].numpy()], path, num_nodes=100)
    return path


@pytest.fixture
def both(cluster, parts, folder):
    """The same graph here and on the cluster, bare and private."""
    here, there = public_edges(parts[1], 100), open_cluster(cluster.address, folder, security=cluster.security)
    private_there = Private(there, "edges", run=there.run)
    return SimpleNamespace(here=here, there=there, private_here=Private(here, "edges"), private_there=private_there)
