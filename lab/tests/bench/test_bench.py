"""The benchmark measures what it says: the same walk by all, on graphs that are simple and symmetric, resumed and reported."""

import json
import sys

import pytest
import torch

from gcon.cli import app as cli
from gcon.edges.stored import StoredEdges
from gcon.errors import InputError
from gcon_lab.bench import run
from gcon_lab.bench.contenders import CONTENDERS, features_of, ours
from gcon_lab.bench.graphs import MadeRows, load_edges, made_edges, save_edges
from gcon_lab.bench.page import growth, read_results, slope, table_text
from gcon_lab.bench.stores import write_rows


@pytest.mark.parametrize(("nodes", "entries"), [(2, 4), (1009, 20_000), (1024, 3_000), (1500, 20_000)])
def test_made_graphs_are_simple_symmetric_and_of_the_size_that_was_asked_for(nodes, entries):
    edges = made_edges(nodes, entries)
    sources, targets = edges.edge_index()
    matrix = torch.zeros(nodes, nodes)
    matrix.index_put_((sources, targets), torch.ones(len(sources)), accumulate=True)
    assert torch.equal(matrix, matrix.T)
    assert matrix.max() <= 1
    assert not matrix.diagonal().any()
    assert nodes == 2 or 0.9 * entries < len(sources) < 1.1 * entries
    rows = [edges.columns[start:stop] for start, stop in edges.row_pointers.unfold(0, 2, 1).tolist()]
    assert all((row.diff() > 0).all() for row in rows)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # PyG's own
def test_all_contenders_walk_the_same_walk():
    edges, features = made_edges(501, 6_000), features_of(501)
    expected = ours(edges, features)()
    for name, prepare in CONTENDERS.items():
        found = torch.as_tensor(prepare(edges, features)())
        assert (found - expected).abs().max() < 1e-13, name


def test_memory_file_and_store_hold_the_same_graph(tmp_path):
    edges = made_edges(700, 9_000)
    save_edges(edges, tmp_path / "kept")
    write_rows(MadeRows(700, 9_000), tmp_path / "edges.csr")
    stored = StoredEdges(tmp_path / "edges.csr")
    stored.verify()
    for other in (load_edges(tmp_path / "kept"), stored.load()):
        assert torch.equal(other.columns, edges.columns)
        assert torch.equal(other.row_pointers, edges.row_pointers)


@pytest.mark.slow
def test_a_run_is_measured_kept_and_not_measured_again(tmp_path, monkeypatch):
    wanted = run.tasks(["cpu", "disk"], [1_000], nodes=50, rivals=False)
    options = {"out": tmp_path / "out", "scratch": tmp_path / "scratch", "progress": lambda words: None, "repeats": 1}
    found = list(run.run_tasks(wanted, **options))
    assert [each["engine"] for each in found] == ["cpu", "disk"]
    assert all(each["seconds"] > 0 and each["peak_bytes"] >= 0 for each in found)
    assert not list((tmp_path / "scratch").iterdir())
    monkeypatch.setattr(run, "_measured", lambda *_: pytest.fail("measured again"))
    assert list(run.run_tasks(wanted, **options)) == found
    assert read_results(tmp_path / "out") == found


def test_what_fails_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(run.sys, "executable", "/bin/false")
    (found,) = run.run_tasks(
        run.tasks(["cpu"], [1_000], nodes=50, rivals=False),
        out=tmp_path / "out",
        scratch=tmp_path / "scratch",
        progress=lambda words: None,
    )
    assert "failed" in found
    assert "seconds" not in found
    assert "| cpu | gcon | 50 | 1,000 |" in table_text([{**found, "failed": "out of memory"}])


def test_growth_is_fitted_from_large_sizes_alone():
    results = [
        {
            "engine": "cpu",
            "contender": "gcon",
            "nodes": size // 40,
            "entries": size,
            "seconds": time,
            "peak_bytes": size,
        }
        for size, time in ((10**5, 50.0), (10**7, 1.0), (10**8, 10.0), (10**9, 100.0))
    ]
    ((_, _, time, memory),) = growth(results)
    assert time == pytest.approx(1.0)
    assert memory == pytest.approx(1.0)
    assert slope([(1e7, 1.0), (1e9, 10_000.0)]) == pytest.approx(2.0)
    assert slope([(1e7, 1.0), (1e7, 2.0)]) is None


@pytest.mark.parametrize(("engines", "entries"), [(["tpu"], [10**5]), (["cpu"], [10]), (["cpu"], [10**12])])
def test_wrong_requests_are_refused(engines, entries):
    with pytest.raises(InputError):
        run.tasks(engines, entries, nodes=None, rivals=True)


@pytest.mark.slow
def test_the_verb_writes_table_numbers_and_pictures(tmp_path, capsys, monkeypatch):
    out = tmp_path / "out"
    found = command(
        capsys, monkeypatch, "--engines", "disk", "--entries", "1e3", "--out", out, "--repeats", 1, "--json"
    )
    assert found[0] == 0
    assert json.loads(found[1])["results"][0]["entries"] == 1_000
    assert {path.name for path in out.iterdir()} >= {"scale.md", "scale.csv", "time.svg", "memory.svg"}
    assert command(capsys, monkeypatch, "--entries", "many", "--out", out)[0] == 2


def command(capsys, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["gcon", "bench", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code, capsys.readouterr().out
