"""`gcon data make`: where it writes, and a graph on which the method shows its worth."""

import pytest

import gcon
from gcon.files.datasets.synthetic import social_circles
from gcon.files.tables import read_edges, read_nodes
from gcon.methods.controls import MomentsWithoutEdges
from gcon.methods.moments import Moments
from gcon_lab.methods.fitted import fit


def test_a_missing_folder_is_made(run, tmp_path):
    folder = tmp_path / "new" / "er"
    assert run("data", "make", "--out", folder, "--nodes", 60, "--classes", 2)[0] == 0
    assert sorted(path.name for path in folder.iterdir()) == ["edges.csv", "nodes.csv"]


@pytest.mark.parametrize("wrong", [("--nodes", 0), ("--mean-degree", 1000), ("--format", "txt")])
def test_a_refused_graph_leaves_no_folder(run, tmp_path, wrong):
    assert run("data", "make", "--out", tmp_path / "new", *wrong)[0] == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("classes", "first"), [(3, "chess"), (11, "circle 01")])
def test_classes_have_names_in_the_order_of_their_numbers(run, tmp_path, classes, first):
    assert run("data", "make", "--out", tmp_path, "--nodes", 300, "--classes", classes, "--seed", 3)[0] == 0
    found = read_nodes(tmp_path / "nodes.csv").nodes
    assert found.class_names[0] == first
    drawn = social_circles(300, num_classes=classes, mean_degree=1.0, seed=3).nodes
    labelled = drawn.train_mask
    assert found.labels[labelled].tolist() == drawn.labels[labelled].tolist()


def test_a_file_in_the_way_is_refused(run, tmp_path):
    (tmp_path / "file").write_text("mine")
    code, _, said = run("data", "make", "--out", tmp_path / "file", "--nodes", 60, "--classes", 2)
    assert code == 2
    assert "must exist" in said
    assert (tmp_path / "file").read_text() == "mine"


def test_edges_are_worth_their_budget_on_it(run, tmp_path):
    """What a newcomer sees first: one training at epsilon 1, from the files."""
    assert run("data", "make", "--out", tmp_path)[0] == 0
    table = read_nodes(tmp_path / "nodes.csv")
    edges, hygiene = read_edges(tmp_path / "edges.csv", ids=table.ids)
    graph, ledger = gcon.PrivateGraph(table.nodes, edges, hygiene, "made up"), gcon.MemoryLedger("made up")
    ours, control = (fit(method, graph, ledger=ledger) for method in (Moments(epsilon=1.0), MomentsWithoutEdges()))

    def right(fitted, access):
        return fitted.score(graph, graph.nodes.test_mask, access=access)

    assert right(ours, "cached") > 0.8
    assert right(ours, "cached") > right(control, "none") + 0.05
    assert right(ours, "own-edges") > 0.95
