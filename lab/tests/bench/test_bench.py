"""The benchmark measures what it says: the same walk by all, on graphs that are simple and symmetric, resumed and reported.

Whole trainings too: on every engine, beside a GCN that learns, with a cost that follows from prices.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gcon.cli import app as cli
from gcon.edges.stored import StoredEdges
from gcon.errors import InputError
from gcon_lab.bench import run
from gcon_lab.bench.contenders import CONTENDERS, features_of, ours
from gcon_lab.bench.graphs import MadeRows, load_edges, made_edges, save_edges
from gcon_lab.bench.page import Prices, growth, needs_text, prices, read_results, slope, table_text, write_page
from gcon_lab.bench.stores import write_rows
from gcon_lab.bench.training import CLASSES, GCNS, kept_features, made_features, nodes_of


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


def test_a_store_is_made_where_nothing_reads_tables(tmp_path):
    """A machine with a GPU may lack polars and pyarrow: a process of its own, which has imported nothing yet."""
    lines = "import sys; sys.modules['polars'] = sys.modules['pyarrow'] = None; import gcon.files.edge_store"
    lines += "; from gcon_lab.bench import stores; stores.main()"
    options = ["--nodes", "700", "--entries", "9000", str(tmp_path / "edges.csr")]
    subprocess.run([sys.executable, "-c", lines, *options], check=True)
    assert torch.equal(StoredEdges(tmp_path / "edges.csr").load().columns, made_edges(700, 9_000).columns)


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


def test_what_takes_too_long_is_stopped_and_reported(tmp_path, monkeypatch):
    waits = tmp_path / "waits"
    waits.write_text("#!/bin/sh\necho 'stage: waits' >&2\nexec sleep 60\n")
    waits.chmod(0o755)
    monkeypatch.setattr(run.sys, "executable", str(waits))
    monkeypatch.setattr(run, "_LIMIT", 0.5)
    told = []
    (found,) = run.run_tasks(
        run.tasks(["cpu"], [1_000], nodes=50, rivals=False),
        out=tmp_path / "out",
        scratch=tmp_path / "scratch",
        progress=told.append,
    )
    assert found["failed"] == "took more than 0.5 s"
    assert told[-1].endswith(": waits")


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


def trained(engine, contender, nodes, seconds, **more):
    result = {"work": "training", "engine": engine, "contender": contender, "nodes": nodes, "entries": 40 * nodes}
    result |= {"columns": 64, "workers": 2, "repeats": 1, "cores": 2, "gpus": 0, "machine": "2 cores"}
    result |= {"seconds": seconds, "processor_seconds": seconds, "load": 0.5}
    result |= {"peak_bytes": 2**30, "host_bytes": 2**31, "inputs_bytes": 2**20, "right": {"cached": 0.75}}
    return result | more


def test_cost_follows_from_hours_and_prices():
    result = trained("gpu", "gcon", 10**6, 1800.0, cores=16, gpus=1)
    assert Prices(core=0.1, gib=0.01, gpu=3.0).cost(result) == pytest.approx((1.6 + 0.02 + 3.0) / 2)
    assert Prices().cost({"failed": "out of memory"}) is None
    assert prices("core=0.1, gpu=2") == Prices(core=0.1, gpu=2.0)
    assert prices("") == Prices()
    for wrong in ("gpu", "gpu=-1", "gpu=nan", "gpu=inf", "disk=1", "gpu=many"):
        with pytest.raises(InputError):
            prices(wrong)


def test_the_table_of_needs_has_time_memory_money_and_the_line_to_beat(tmp_path):
    results = [
        trained("cpu", "PyG GCN", 10**6, 90.0),
        trained("cpu", "PyG GCN, CSR", 10**6, 30.0),
        trained("cpu", "gcon", 10**6, 3600.0),
        {**trained("gpu", "PyG GCN", 10**7, 1.0), "failed": "out of memory"},
        trained("gpu", "gcon", 10**7, 60.0, gpus=1, machine="16 cores, H200", load=2.0),
    ]
    del results[-2]["seconds"]
    text = needs_text(results, Prices(core=1.0, gib=0.5, gpu=10.0))
    assert "| 1,000,000 | 20,000,000 | 64 | 2 cores, all in memory | 60.0 minutes | 2.0 GiB | 3.0000 | 30 s |" in text
    assert "16 cores, H200 (busy), edges on the GPU | 60 s | 2.0 GiB, 1.0 GiB on the GPU | 0.2167 |  |" in text
    files = write_page(results, tmp_path, Prices())
    assert {path.name for path in files} == {
        *("scale.md", "scale.csv", "needs.md", "training-time.svg", "training-memory.svg", "training-cost.svg"),
    }
    again = read_results(tmp_path / "scale.csv")
    assert needs_text(again, Prices()) == (tmp_path / "needs.md").read_text()
    assert table_text(again, Prices()) == (tmp_path / "scale.md").read_text()
    (tmp_path / "scale.csv").write_text("nothing,of,this\n1,2,3\n")
    with pytest.raises(InputError):
        read_results(tmp_path / "scale.csv")


def test_the_page_of_large_graphs_has_the_table_that_its_numbers_make():
    """At the prices that nobody set: `gcon bench --kept docs/results/scale/training.csv --out FOLDER` writes it."""
    docs = Path(__file__).parents[3] / "docs"
    made = needs_text(read_results(docs / "results" / "scale" / "training.csv"), Prices())
    assert made in (docs / "large-graphs.md").read_text()


def test_made_features_are_the_same_in_memory_and_in_a_file(tmp_path):
    made = made_features(3000, 8)
    made_features(3000, 8, file=tmp_path / "features.npy")
    for mapped in (True, False):
        assert torch.equal(kept_features(tmp_path / "features.npy", mapped=mapped), made)
    nodes = nodes_of(made)
    masks = torch.stack([nodes.train_mask, nodes.validation_mask, nodes.test_mask])
    assert masks.sum(dim=1).tolist() == [200, 750, 2050]
    assert masks.sum(dim=0).max() == 1
    assert set(nodes.labels.tolist()) == set(range(CLASSES))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # PyG's own
@pytest.mark.parametrize("name", GCNS)
def test_the_line_to_beat_learns(name):
    edges = made_edges(2000, 40_000, alike=0.5)
    found = GCNS[name](nodes_of(made_features(2000, 16)), edges, "cpu", lambda words: None)
    assert found["exact edges"] > 0.9


@pytest.mark.slow
def test_trainings_are_measured_on_every_engine_of_this_machine(tmp_path):
    wanted = run.tasks(["cpu", "disk", "cluster"], [4_000], nodes=200, rivals=False, work="training", features=8)
    found = list(
        run.run_tasks(
            wanted, out=tmp_path / "out", scratch=tmp_path / "scratch", progress=lambda words: None, repeats=1
        )
    )
    assert [each.get("failed") for each in found] == [None] * 3
    assert all(0 < each["right"]["cached"] <= 1 and each["host_bytes"] > 0 and each["cores"] >= 1 for each in found)
    assert not list((tmp_path / "scratch").iterdir())


def test_results_of_different_trainings_are_kept_apart():
    few, many = (run.tasks(["cluster"], [10_000], nodes=500, rivals=True, work="training", workers=n) for n in (2, 8))
    wide = run.tasks(["cluster"], [10_000], nodes=500, rivals=True, work="training", features=8)
    walk = run.tasks(["cluster"], [10_000], nodes=500, rivals=True)
    assert len({task.name for task in (*few, *many, *wide, *walk)}) == 4
    assert [task.name for task in walk] == ["cluster-gcon-500-10000"]


@pytest.mark.parametrize("more", [{"work": "sleep"}, {"work": "training", "nodes": 99}])
def test_wrong_work_is_refused(more):
    with pytest.raises(InputError):
        run.tasks(["cpu"], [10_000], **{"nodes": None, "rivals": True, **more})


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


def test_the_verb_says_what_kept_trainings_cost_at_other_prices(tmp_path, capsys, monkeypatch):
    write_page([trained("cpu", "gcon", 10**6, 3600.0)], tmp_path / "before")
    kept = ["--kept", tmp_path / "before" / "scale.csv", "--prices", "core=5,gib=0", "--out", tmp_path / "out"]
    code, text = command(capsys, monkeypatch, *kept, "--json")
    assert code == 0
    assert json.loads(text)["results"][0]["dollars"] == 10.0
    assert "| 10.0000 |" in (tmp_path / "out" / "needs.md").read_text()
    assert command(capsys, monkeypatch, *kept, "--prices", "core=free")[0] == 2


def command(capsys, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["gcon", "bench", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code, capsys.readouterr().out
