"""Parts and other orders of the training table are recognised by digests of its rows; other tables are not."""

import time

import pytest
import torch

import gcon
from gcon import nodes as module
from gcon.errors import AccessRefusedError
from gcon.nodes import known_rows, recognises
from gcon.release.read import load_release
from gcon.release.store import save_release


def table(rows, columns=5, seed=0):
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


def test_parts_and_reorderings_are_recognised():
    trained = table(200)
    known, order = known_rows(trained), torch.randperm(200, generator=torch.Generator().manual_seed(1))
    for part in (trained, trained[order], trained[order][:3], trained[50:51], trained.double()):
        assert recognises(known, part)
    padded = torch.cat([trained[:20], table(150, seed=2)])
    assert recognises(known, padded)


def test_other_tables_are_not():
    known = known_rows(table(200))
    for other in (table(200, seed=3), table(200)[:, :4], table(200) + 1e-3, torch.cat([table(5), table(100, seed=4)])):
        assert not recognises(known, other)


def test_rows_that_many_share_say_nothing_but_the_whole_table_does():
    few = torch.eye(4).repeat(50, 1)
    known = known_rows(few)
    assert len(known) == 1
    assert recognises(known, few.flip(0))
    assert not recognises(known, torch.eye(4).repeat(10, 1))


def test_of_a_large_table_the_same_sample_is_kept_for_every_part(monkeypatch):
    monkeypatch.setattr(module, "MOST_DIGESTS", 64)
    trained = table(1000)
    known = known_rows(trained)
    assert len(known) == 65
    assert recognises(known, trained[300:600])
    assert not recognises(known, table(300, seed=5))


def test_digests_are_fast():
    wide = table(100_000, 16)
    start = time.process_time()
    known_rows(wide)
    assert time.process_time() - start < 2


@pytest.fixture(scope="module", params=[gcon.NodeClassifier, gcon.GCON])
def trained(request):
    graph = gcon.datasets.social_circles(100, seed=1)
    return graph, request.param().fit(graph)


@pytest.mark.parametrize("part", [torch.arange(99, -1, -1), torch.arange(20, 60)], ids=["reversed", "a part"])
def test_public_graph_refuses_them(trained, part, tmp_path):
    graph, model = trained
    declared = gcon.public_graph(graph.nodes.features[part], [(0, 1)])
    with pytest.raises(AccessRefusedError, match="in any order, and for parts of it"):
        model.predict(declared, access="public-graph")
    save_release(model.model_, tmp_path / "model")
    assert torch.equal(load_release(tmp_path / "model").training_rows, known_rows(graph.nodes.features))
    other = gcon.datasets.social_circles(100, seed=2).nodes.features
    model.predict(gcon.public_graph(other, [(0, 1)]), access="public-graph")
