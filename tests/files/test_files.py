"""Graphs in files: whatever the format, the order and the names of the nodes, the same graph comes back."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
import torch
from tests.opened import open_private

from gcon.edges.edge_list import public_edges
from gcon.errors import InputError
from gcon.files.node_ids import as_node_ids, row_finder
from gcon.files.tables import check_files, read_edges, read_nodes, write_edges, write_nodes
from gcon.privacy.boundary import Private

ENDINGS = ["csv", "tsv", "parquet"]
RNG = np.random.default_rng(4)
IDS = {
    "row numbers": np.arange(30),
    "shuffled": RNG.permutation(30),
    "shifted": RNG.permutation(30) + 1000,
    "far apart": RNG.permutation(30) * 10**15 - 7 * 10**15,
    "extremes": np.array([-(2**63), 2**63 - 1, *range(28)]),
    "strings": [f"user-{place}" for place in RNG.permutation(30)],
    "unicode": [f"{letter}{place}é 人" for place, letter in enumerate("äöüßñ" * 6)],
    "leading zeros": [f"{place:04}" for place in range(30)],
    "above 64 bits": [str(2**64 + place) for place in range(30)],
    "commas and quotes": [f'a,"{place}"\tb' for place in range(30)],
}


def opened(result):
    edges, hygiene = result
    assert isinstance(edges, Private)
    assert isinstance(hygiene, Private)
    return open_private(edges)


def assert_same(edges, expected):
    assert torch.equal(edges.row_pointers, expected.row_pointers)
    assert torch.equal(edges.columns, expected.columns)


@pytest.fixture
def expected(parts):
    return public_edges(parts[1], 30)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_round_trip(tmp_path, parts, expected, ending, ids):
    nodes, edge_index = parts
    write_nodes(tmp_path / f"nodes.{ending}", nodes, ids=ids)
    write_edges(tmp_path / f"edges.{ending}", edge_index, num_nodes=30, ids=ids)
    table = read_nodes(tmp_path / f"nodes.{ending}")
    assert table.ids.tolist() == list(np.asarray(ids).tolist())
    assert torch.equal(table.nodes.features, nodes.features)
    assert table.nodes.features.dtype == nodes.features.dtype
    used = nodes.train_mask | nodes.validation_mask | nodes.test_mask
    assert torch.equal(table.nodes.labels[used], nodes.labels[used])
    for mask in ("train_mask", "validation_mask", "test_mask"):
        assert torch.equal(getattr(table.nodes, mask), getattr(nodes, mask))
    assert table.nodes.class_names == nodes.class_names
    assert_same(opened(read_edges(tmp_path / f"edges.{ending}", ids=table.ids)), expected)
    assert check_files(tmp_path / f"nodes.{ending}", tmp_path / f"edges.{ending}") == []
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"edges.{ending}", f"nodes.{ending}"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_order_direction_and_repeats_do_not_matter(tmp_path, parts, expected, ending):
    edge_index = parts[1]
    mixed = torch.cat([edge_index, edge_index.flip(0), torch.arange(30).repeat(2, 1)], dim=1)
    mixed = mixed[:, torch.randperm(mixed.shape[1], generator=torch.Generator().manual_seed(1))]
    write_edges(tmp_path / f"e.{ending}", mixed, num_nodes=30)
    result = read_edges(tmp_path / f"e.{ending}", ids=range(30))
    assert_same(opened(result), expected)
    hygiene = open_private(result[1])
    assert (hygiene.given, hygiene.self_loops, hygiene.kept) == (mixed.shape[1], 30, edge_index.shape[1])


@pytest.mark.parametrize("ids", [range(30), [f"u{place}" for place in range(30)]], ids=["numbers", "strings"])
def test_many_small_batches(tmp_path, parts, expected, monkeypatch, ids):
    monkeypatch.setattr("gcon.files.table_files.BATCH", 7)
    write_edges(tmp_path / "e.parquet", parts[1], num_nodes=30, ids=list(ids))
    assert_same(opened(read_edges(tmp_path / "e.parquet", ids=list(ids))), expected)


TEXTS = {
    "crlf": (b"source,target\r\n0,1\r\n1,2\r\n", {}),
    "bom": (b"\xef\xbb\xbfsource,target\n0,1\n1,2\n", {}),
    "quotes": (b'"source","target"\n"0","1"\n"1","2"\n', {}),
    "old mac lines": (b"source,target\r0,1\r1,2\r", {}),
    "no last newline": (b"source,target\n0,1\n1,2", {}),
    "columns swapped": (b"target,source\n1,0\n2,1\n", {}),
    "other names": (b"from,to\n0,1\n1,2\n", {"source_column": "from", "target_column": "to"}),
    "ignored": (b"weight,source,target,when\n0.5,0,1,x\n,1,2,\n", {"ignore_columns": ["weight", "when"]}),
    "no header": (b"0,1\n1,2\n", {"header": False}),
    "leading zeros and signs": (b"source,target\n00,+1\n1,002\n", {}),
}


@pytest.mark.parametrize(("text", "options"), TEXTS.values(), ids=TEXTS)
def test_ways_to_write_a_text_file(tmp_path, text, options):
    expected = public_edges(torch.tensor([[0, 1], [1, 2]]), 4)
    (tmp_path / "e.csv").write_bytes(text)
    (tmp_path / "e.tsv").write_bytes(text.replace(b",", b"\t"))
    for name in ("e.csv", "e.tsv"):
        assert_same(opened(read_edges(tmp_path / name, ids=range(4), **options)), expected)


@pytest.mark.parametrize("ids", [["1", "2", "x"], ["x", "1", "2"]])
def test_numbers_in_the_edges_match_strings_in_the_nodes(tmp_path, ids):
    pl = pytest.importorskip("polars")
    pl.DataFrame({"source": [1], "target": [2]}).write_parquet(tmp_path / "e.parquet")
    edges = opened(read_edges(tmp_path / "e.parquet", ids=ids))
    assert edges.neighbours(ids.index("1")).tolist() == [ids.index("2")]


@pytest.mark.parametrize("dtype", ["String", "Categorical", "Int8", "UInt64", "Int32"])
def test_types_of_parquet_ids(tmp_path, dtype):
    pl = pytest.importorskip("polars")
    text = pl.DataFrame({"source": ["10", "20"], "target": ["20", "30"]})
    kind = getattr(pl, dtype)
    frame = text if dtype == "String" else text.cast(kind if dtype == "Categorical" else pl.Int64).cast(kind)
    frame.write_parquet(tmp_path / "e.parquet")
    edges = opened(read_edges(tmp_path / "e.parquet", ids=[30, 20, 10]))
    assert [edges.neighbours(node).tolist() for node in range(3)] == [[1], [0, 2], [1]]


def test_a_header_without_its_newline_is_an_empty_graph(tmp_path):
    (tmp_path / "e.csv").write_bytes(b"source,target")
    assert opened(read_edges(tmp_path / "e.csv", ids=range(5))).columns.numel() == 0


@pytest.mark.parametrize("name", ["e.csv", "e.tsv", "e.parquet"])
@pytest.mark.parametrize("ids", [range(5), list("abcde")], ids=["numbers", "strings"])
def test_a_header_without_rows_is_an_empty_graph(tmp_path, name, ids):
    write_edges(tmp_path / name, torch.empty(2, 0, dtype=torch.int64), num_nodes=5, ids=list(ids))
    edges = opened(read_edges(tmp_path / name, ids=list(ids)))
    assert edges.num_nodes == 5
    assert edges.columns.numel() == 0


ARRAYS = {
    "edge_index": lambda path, index: np.savez(path, edge_index=index),
    "32 bits, packed": lambda path, index: np.savez_compressed(path, edge_index=index.astype(np.int32)),
    **{
        form: lambda path, index, form=form: scipy.sparse.save_npz(
            path, scipy.sparse.coo_array((np.ones(index.shape[1]), tuple(index)), shape=(30, 30)).asformat(form)
        )
        for form in ("coo", "csr", "csc")
    },
}


@pytest.mark.parametrize("save", ARRAYS.values(), ids=ARRAYS)
@pytest.mark.parametrize("ids", [range(30), [f"u{place}" for place in range(30)]], ids=["numbers", "strings"])
def test_arrays(tmp_path, parts, expected, save, ids):
    save(tmp_path / "e.npz", parts[1].numpy())
    assert_same(opened(read_edges(tmp_path / "e.npz", ids=list(ids))), expected)


def test_a_sparse_matrix_goes_by_rows_whatever_the_ids(tmp_path, parts, expected):
    ARRAYS["csr"](tmp_path / "e.npz", parts[1].numpy())
    assert_same(opened(read_edges(tmp_path / "e.npz", ids=np.arange(30)[::-1].copy())), expected)


def nodes_of(tmp_path, text, **options):
    (tmp_path / "n.csv").write_text(text, encoding="utf-8")
    return read_nodes(tmp_path / "n.csv", **options).nodes


def test_a_label_outside_the_splits_is_never_read(tmp_path):
    rows = "id,label,split,x\n0,a,train,1\n1,b,train,2\n2,{},,3\n3,a,test,4\n"
    seen = [nodes_of(tmp_path, rows.format(label)) for label in ("a", "b", "", "unheard of", "17", "nan")]
    for nodes in seen:
        assert nodes.labels.tolist() == [0, 1, -1, 0]
        assert nodes.class_names == ("a", "b")
        assert not (nodes.train_mask | nodes.validation_mask | nodes.test_mask)[2]


def test_without_splits_every_label_is_for_training(tmp_path):
    nodes = nodes_of(tmp_path, "id,label,x\n0,a,1\n1,,2\n2,b,3\n")
    assert nodes.train_mask.tolist() == [True, False, True]
    assert not nodes.test_mask.any()


LABELS = {
    "numbers": ("2,10,2", (2, 10), [0, 1, 0]),
    "strings": ("b,a,b", ("a", "b"), [1, 0, 1]),
    "mixed": ("2,x,2", ("2", "x"), [0, 1, 0]),
    "leading zeros": ("01,02,01", ("01", "02"), [0, 1, 0]),
    "negative": ("-2,1,-2", (-2, 1), [0, 1, 0]),
    "none": ("-1,1,,0", (0, 1), [-1, 1, -1, 0]),
    "as pandas writes them": ("0.0,3.0,-1.0,,NaN", (0, 3), [0, 1, -1, -1, -1]),
    "fractions": ("0.5,1.5,-1.0", ("0.5", "1.5"), [0, 1, -1]),
    "unicode": ("ä,人,ä", ("ä", "人"), [0, 1, 0]),
}


@pytest.mark.parametrize(("labels", "names", "numbers"), LABELS.values(), ids=LABELS)
def test_kinds_of_labels(tmp_path, labels, names, numbers):
    rows = "".join(f"{row},{label},{row}.5\n" for row, label in enumerate(labels.split(",")))
    nodes = nodes_of(tmp_path, f"id,label,x\n{rows}")
    assert nodes.class_names == names
    assert nodes.labels.tolist() == numbers


def test_a_column_without_a_name_is_refused(tmp_path):
    """As pandas writes its index: it would be a feature that nobody finds again."""
    text = ",id,label,x\n0,a,0,1\n1,b,1,2\n"
    with pytest.raises(InputError, match="every column needs a name"):
        nodes_of(tmp_path, text)
    assert nodes_of(tmp_path, text, drop=[""]).features.shape == (2, 1)


def test_class_lists(tmp_path):
    text = "id,label,split,x\n0,0,train,1\n1,2,train,2\n2,1,test,3\n"
    assert nodes_of(tmp_path, text, num_classes=4).labels.tolist() == [0, 2, 1]
    assert nodes_of(tmp_path, text, num_classes=4).num_classes == 4
    assert nodes_of(tmp_path, text, classes=["2", "1", "0"]).labels.tolist() == [2, 0, 1]
    for wrong in ({"num_classes": 1}, {"num_classes": 3, "classes": [0, 1, 2]}, {"classes": [1, 1]}):
        with pytest.raises(InputError, match="num_classes, classes"):
            nodes_of(tmp_path, text, **wrong)


def test_labels_with_gaps_as_pandas_stores_them(tmp_path):
    pl = pytest.importorskip("polars")
    for gap in (None, float("nan")):
        frame = pl.DataFrame({"id": [5, 6, 7], "label": [0.0, gap, 3.0], "x": [1, 2, 3]}, strict=False)
        frame.write_parquet(tmp_path / "n.parquet")
        nodes = read_nodes(tmp_path / "n.parquet").nodes
        assert nodes.class_names == (0, 3)
        assert nodes.labels.tolist() == [0, -1, 1]


FEATURES = {
    "x.npy": np.save,
    "x.npz": lambda path, x: np.savez(path, features=x),
    "y.npz": lambda path, x: np.savez_compressed(path, x=x, other=np.ones(3)),
    "s.npz": lambda path, x: scipy.sparse.save_npz(path, scipy.sparse.csr_array(x)),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FEATURES)
def test_features_beside_the_nodes(tmp_path, name, dtype):
    features = RNG.standard_normal((3, 4)).astype(dtype)
    FEATURES[name](tmp_path / name, features)
    nodes = nodes_of(tmp_path, "id,label\n0,a\n1,b\n2,\n", features_path=tmp_path / name)
    assert np.array_equal(nodes.features.numpy(), features)
    assert nodes.features.numpy().dtype == dtype


def test_columns_of_wide_numbers_stay_wide(tmp_path):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"id": [1, 2], "label": ["a", "b"], "x": [0.1, 0.2], "n": [1, 2]})
    frame.write_parquet(tmp_path / "n.parquet")
    assert read_nodes(tmp_path / "n.parquet").nodes.features.tolist() == [[0.1, 1.0], [0.2, 2.0]]


def test_other_names_and_ignored_columns(tmp_path):
    text = "who,class,part,note,x\na,0,train,hello,1\nb,1,train,,2\nc,1,validation,,3\n"
    options = {"id_column": "who", "label_column": "class", "split_column": "part", "drop": ["note"]}
    nodes = nodes_of(tmp_path, text, **options)
    assert nodes.features.tolist() == [[1.0], [2.0], [3.0]]
    assert nodes.validation_mask.tolist() == [False, False, True]


def test_lookups_agree_with_a_dictionary():
    pl = pytest.importorskip("polars")
    for ids in (np.arange(9), RNG.permutation(9), RNG.permutation(9) - 4, RNG.permutation(9) * 10**17, np.arange(0)):
        rows = {int(name): row for row, name in enumerate(ids)}
        asked = np.concatenate([ids, [-(2**63), 2**63 - 1, -1, 9, 10**17 + 1]]).astype(np.int64)
        found, kinds = row_finder(as_node_ids(ids.astype(np.int64)))(pl.Series(asked))
        assert found.tolist() == [rows.get(int(name), -1) for name in asked]
        assert kinds == {"unknown"}


@pytest.mark.parametrize("ids", [[1, 1], ["a", "a"], ["a", ""], [0.5, 1.5], [[1, 2]], [True, False]])
def test_ids_that_are_refused(ids):
    with pytest.raises(InputError, match="ids"):
        as_node_ids(ids)


def test_a_failed_write_leaves_the_old_file(tmp_path, parts, monkeypatch):
    pl = pytest.importorskip("polars")
    write_edges(tmp_path / "e.csv", parts[1], num_nodes=30)
    before = (tmp_path / "e.csv").read_bytes()

    def fail(self, file, **_):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(pl.DataFrame, "write_csv", fail)
    with pytest.raises(OSError, match="disk full"):
        write_edges(tmp_path / "e.csv", parts[1][:, :3], num_nodes=30)
    assert (tmp_path / "e.csv").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["e.csv"]


@pytest.mark.parametrize("module", ["tables", "write_files"])
@pytest.mark.parametrize("package", ["polars", "pyarrow"])
def test_without_a_package_the_extra_is_named(module, package):
    program = f"import sys; sys.modules[{package!r}] = None; import gcon.files.{module}"
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert done.stderr.endswith(f"{package} is not installed. Install it with: pip install 'gcon[files]'\n")
