"""Broken files: the message says what is wrong; about the edges file it holds no id, row or count."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from tests.opened import open_private

from gcon.errors import InputError
from gcon.files.tables import check_files, read_edges, read_nodes

pl = pytest.importorskip("polars")

# Ids that no message may hold: 7001.. as numbers, and these words. None occurs in the fixed words of the messages.
IDS = [7001, 7002, 7003, 7004]
NAMES = ["zebra", "quokka", "wombat", "numbat"]
SECRETS = re.compile(r"700|zebra|quokka|wombat|numbat|stranger|0\.25|\b\d+\b")


def parquet(**columns):
    def write(path):
        pl.DataFrame(columns, strict=False).write_parquet(path, compression="uncompressed")

    return write


def cut(start, stop, **columns):
    def write(path):
        parquet(**columns)(path)
        path.write_bytes(path.read_bytes()[start:stop])

    return write


def torn_pages(path):
    parquet(source=IDS, target=IDS[::-1])(path)
    data = bytearray(path.read_bytes())
    data[8:40] = b"\xff" * 32
    path.write_bytes(bytes(data))


def foreign_bytes(where):
    """Text that is not UTF-8 in a name or a value: handed on unchecked, it would make polars panic."""

    def write(path):
        parquet(source=["zebra", "wombat"], target=["quokka", "numbat"])(path)
        data = path.read_bytes()
        assert where in data
        path.write_bytes(data.replace(where, b"\xff" * len(where)))

    return write


TWO = {"source": IDS[:2], "target": IDS[2:]}
EDGES = {
    "zero bytes": ("e.csv", b"", {}, "zero bytes"),
    "zero bytes, parquet": ("e.parquet", b"", {}, "zero bytes"),
    "zero bytes, npz": ("e.npz", b"", {}, "zero bytes"),
    "unknown ending": ("e.txt", b"source,target\n7001,7002\n", {}, "must end in"),
    "unknown id": ("e.csv", b"source,target\n7001,7009\n", {}, "not there"),
    "far too large an id": ("e.csv", b"source,target\n7001,700200000000000000000\n", {}, "whole numbers"),
    "string among numbers": ("e.csv", b"source,target\n7001,stranger\n", {}, "whole numbers"),
    "fraction": ("e.csv", b"source,target\n7001,7002.5\n", {}, "whole numbers"),
    "blank behind": ("e.csv", b"source,target\n7001 ,7002\n", {}, "whole numbers"),
    "missing id": ("e.csv", b"source,target\n7001,\n", {}, "missing id"),
    "quoted nothing": ("e.csv", b'source,target\n7001,""\n', {}, "missing id"),
    "short line": ("e.csv", b"source,target\n7001,7002\n7003\n", {}, "another number of fields"),
    "blank line": ("e.csv", b"source,target\n7001,7002\n\n7003,7004\n", {}, "blank line"),
    "long line": ("e.csv", b"source,target\n7001,7002\n7001,7003,7004\n", {}, "another number of fields"),
    "open quote": ("e.csv", b'source,target\n7001,"7002\n7003,7004\n', {}, "whole numbers"),
    "not utf-8": ("e.csv", b"source,target\n7001,\xff\xfe\n", {}, "UTF-8"),
    "no header": ("e.csv", b"7001,7002\n7003,7004\n", {}, "no usable column 'source', 'target'"),
    "no header, strings": ("e.csv", b"zebra,quokka\nwombat,numbat\n", {"ids": NAMES}, "header=False"),
    "one name wrong": ("e.csv", b"source,stranger\n7001,7002\n", {}, "no usable column 'target'"),
    "semicolons": ("e.csv", b"source;target\n7001;7002\n", {}, "no usable column"),
    "tabs in csv": ("e.csv", b"source\ttarget\n7001\t7002\n", {}, "no usable column"),
    "commas in tsv": ("e.tsv", b"source,target\n7001,7002\n", {}, "no usable column"),
    "utf-16": ("e.csv", "source,target\n7001,7002\n".encode("utf-16"), {}, "UTF-8"),
    "weight": ("e.csv", b"source,target,weight\n7001,7002,0.25\n", {}, "further column 'weight'"),
    "repeated column": ("e.csv", b"source,target,target\n7001,7002,7003\n", {}, "'target' more than once"),
    "nothing to ignore": ("e.csv", b"source,target\n7001,7002\n", {"ignore_columns": ["w"]}, "no column 'w'"),
    "three columns, no header": ("e.csv", b"7001,7002,0.25\n", {"header": False}, "exactly two columns"),
    "one column, no header": ("e.csv", b"7001\n7002\n", {"header": False}, "exactly two columns"),
    "one column twice": (
        "e.csv",
        b"source,target\n7001,7002\n",
        {"target_column": "source", "ignore_columns": ["target"]},
        "no usable column 'source'",
    ),
    "unknown string": ("e.csv", b"source,target\nzebra,stranger\n", {"ids": NAMES}, "not there"),
    "missing string": ("e.csv", b"source,target\nzebra,\n", {"ids": NAMES}, "missing id"),
    "long line of strings": (
        "e.csv",
        b"source,target\nzebra,quokka,wombat\n",
        {"ids": NAMES},
        "another number of fields",
    ),
    "numbers for strings": ("e.parquet", parquet(**TWO), {"ids": NAMES}, "not there"),
    "unknown in parquet": ("e.parquet", parquet(source=[7001], target=[7009]), {}, "not there"),
    "strings in parquet": ("e.parquet", parquet(source=["zebra"], target=["7001"]), {}, "whole numbers"),
    "gap in parquet": ("e.parquet", parquet(source=[7001, None], target=IDS[:2]), {}, "missing id"),
    "fractions in parquet": ("e.parquet", parquet(source=[7001.0], target=[7002.0]), {}, "another type"),
    "lists in parquet": ("e.parquet", parquet(source=[[7001]], target=[[7002]]), {}, "another type"),
    "names in parquet": ("e.parquet", parquet(a=[7001], b=[7002]), {}, "no usable column"),
    "weights in parquet": ("e.parquet", parquet(**TWO, w=[0.25, 0.25]), {}, "further column 'w'"),
    "truncated parquet": ("e.parquet", cut(0, -20, **TWO), {}, "truncated"),
    "headless parquet": ("e.parquet", cut(30, None, **TWO), {}, "truncated"),
    "half a parquet": ("e.parquet", cut(0, 100, **TWO), {}, "truncated"),
    "torn pages": ("e.parquet", torn_pages, {}, "damaged"),
    "foreign bytes in a name": ("e.parquet", foreign_bytes(b"target"), {"ids": NAMES}, "damaged"),
    "foreign bytes in an id": ("e.parquet", foreign_bytes(b"quokka"), {"ids": NAMES}, "damaged"),
    "text as parquet": ("e.parquet", b"source,target\n7001,7002\n", {}, "damaged"),
    "text as npz": ("e.npz", b"source,target\n7001,7002\n", {}, "damaged"),
    "truncated npz": ("e.npz", b"PK\x03\x04" + b"\0" * 50, {}, "truncated"),
    "pickle": ("e.npz", lambda path: np.savez(path, edge_index=np.array([{}])), {}, "damaged"),
    "other arrays": ("e.npz", lambda path: np.savez(path, pairs=np.ones((2, 3), int)), {}, "the arrays 'pairs'"),
    "pairs in npz": (
        "e.npz",
        lambda path: np.savez(path, edge_index=np.ones((7, 2), int)),
        {"ids": range(4)},
        "two rows",
    ),
    "fractions in npz": (
        "e.npz",
        lambda path: np.savez(path, edge_index=np.ones((2, 3))),
        {"ids": range(4)},
        "two rows",
    ),
    "further array": (
        "e.npz",
        lambda path: np.savez(path, edge_index=np.ones((2, 3), int), w=np.ones(3)),
        {"ids": range(4)},
        "further column 'w'",
    ),
    "outside": ("e.npz", lambda path: np.savez(path, edge_index=np.full((2, 3), 7009)), {"ids": range(4)}, "not there"),
    "ids or rows": ("e.npz", lambda path: np.savez(path, edge_index=np.full((2, 3), 7001)), {}, "counts the rows"),
    "matrix of another size": (
        "e.npz",
        lambda path: scipy.sparse.save_npz(path, scipy.sparse.eye_array(77, format="csr")),
        {},
        "adjacency",
    ),
}


@pytest.mark.parametrize(("name", "content", "options", "words"), EDGES.values(), ids=EDGES)
def test_broken_edges(tmp_path, capfd, name, content, options, words):
    path = tmp_path / name
    content(path) if callable(content) else path.write_bytes(content)
    options = {"ids": IDS, **options}
    with pytest.raises(InputError) as caught:
        read_edges(path, **options)
    message = str(caught.value)
    assert words in message
    # The numbers that fixed words hold: two rows, 0 1 2, 8 of UTF-8.
    hidden = re.sub(r"from 0|0, 1, 2|UTF-8", "", message)
    assert not SECRETS.search(hidden), hidden
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    told = capfd.readouterr()
    assert not SECRETS.search(told.out + told.err), told

    nodes = tmp_path / "nodes.csv"
    ids = options.pop("ids")
    nodes.write_text("id,label,x\n" + "".join(f"{one},{row % 2},1\n" for row, one in enumerate(ids)))
    problems = check_files(nodes, path, **options)
    assert problems
    for problem in problems:
        assert problem.file == "edges"
        assert (problem.rows, problem.num_rows) == ((), 0)
        assert str(problem).count(problem.got) == 1
        assert not SECRETS.search(re.sub(r"from 0|0, 1, 2|UTF-8", "", str(problem)))
    assert words in " ".join(str(problem) for problem in problems)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_parquet_tells_nothing(tmp_path, capfd, seed):
    rng, path = np.random.default_rng(seed), tmp_path / "e.parquet"
    ends = np.arange(7000, 7300)
    pl.DataFrame({"source": ends, "target": ends[::-1]}).write_parquet(path, row_group_size=50)
    whole, told = path.read_bytes(), []
    for _ in range(25):
        start = int(rng.integers(1, len(whole)))
        path.write_bytes(whole[:start] + whole[start + int(rng.integers(1, 30)) :])
        try:
            kept = open_private(read_edges(path, ids=ends)[1]).given
        except InputError as error:
            kept, told = ends.size, [*told, error]
        assert kept == ends.size  # refused, or read to the end: never quietly shorter
    assert len(told) > 15
    for error in told:
        assert not SECRETS.search(str(error).replace("UTF-8", ""))
        assert error.__context__ is None
    assert capfd.readouterr() == ("", "")


def test_metadata_that_is_not_utf_8_does_not_reach_polars(tmp_path, capfd):
    """It would panic, past the exceptions and with text on standard error."""
    fields = [pa.field(name, pa.int64(), metadata={b"note": b"\xff\xfe"}) for name in ("source", "target")]
    pq.write_table(pa.table([IDS[:2], IDS[2:]], schema=pa.schema(fields)), tmp_path / "e.parquet")
    assert open_private(read_edges(tmp_path / "e.parquet", ids=IDS)[1]).given == 2
    assert capfd.readouterr() == ("", "")


def test_all_kinds_at_once(tmp_path):
    (tmp_path / "n.csv").write_text("id,label,x\n7001,0,1\n7002,1,2\n")
    (tmp_path / "e.csv").write_text("source,target\n7001,7002\n7001,\n7009,7001\nstranger,7001\n7002,7001\n")
    told = [problem.got for problem in check_files(tmp_path / "n.csv", tmp_path / "e.csv")]
    assert told == ["a missing id or a blank line", "an id that is something else", "an id that is not there"]


def test_the_message_is_the_same_for_one_wrong_edge_and_for_many(tmp_path):
    messages = set()
    for count in (1, 50, 3000):
        (tmp_path / "e.csv").write_text("source,target\n7001,7002\n" + "7001,9\n" * count)
        with pytest.raises(InputError) as caught:
            read_edges(tmp_path / "e.csv", ids=IDS)
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_a_missing_file(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="no such file"):
        read_edges(tmp_path / "folder.csv", ids=IDS)
    with pytest.raises(InputError, match="no such file"):
        read_edges(tmp_path / "nowhere.csv", ids=IDS)
    with pytest.raises(InputError, match="no such file"):
        read_nodes(tmp_path / "nowhere.csv")


HEAD = "id,label,split,x\n"
GOOD = "1,a,train,1\n2,b,train,2\n"
NODES = {
    "zero bytes": ("", ["zero bytes"]),
    "no rows": (HEAD, ["no rows"]),
    "no id column": (
        "name,label,x\n1,a,1\n",
        ["needs the columns 'id'; got none of that name among 'name', 'label', 'x'. Rename"],
    ),
    "no label column": ("id,x\n1,1\n", ["needs the columns 'label'"]),
    "edges": ("source,target\n1,2\n", ["These are edges: pass the two files the other way round"]),
    "semicolons": ("id;label;x\n1;a;1\n", ["Separate the fields by commas"]),
    "a spreadsheet": ("PK\x03\x04\x14", ["a spreadsheet or an archive. Save it as CSV (UTF-8)"]),
    "label twice": ("id,label,label\n1,a,b\n", ["'label' more than once"]),
    "missing id": (HEAD + GOOD + ",a,,3\n", ["needs an id; got none in row 3"]),
    "repeated id": (HEAD + GOOD + "1,a,,3\n", ["may occur once; got repeated ids in rows 1, 3"]),
    "unknown split": (HEAD + GOOD + "3,a,Train,3\n", ["got 'Train' in row 3"]),
    "split without label": (HEAD + GOOD + "3,,val,3\n", ["needs a label; got none in row 3"]),
    "label only in test": (
        HEAD + GOOD + "3,c,test,3\n",
        ["class list ['a', 'b']; got 'c' in row 3. Mark a node of that class 'train'"],
    ),
    "nobody to train on": (HEAD + "1,a,test,1\n2,b,,2\n", ["needs a labelled node for training"]),
    "one class": (HEAD + "1,a,train,1\n2,a,train,2\n", ["at least two classes; got ['a']"]),
    "no features": ("id,label\n1,a\n2,b\n", ["needs features", "--features FILE"]),
    "text feature": (HEAD + GOOD + "3,,,blue\n", ["column 'x': features must be finite numbers", "in row 3"]),
    "gaps only": (HEAD + "1,a,train,\n2,b,train,nan\n", ["column 'x': must hold a number somewhere"]),
    "infinite feature": (HEAD + GOOD + "3,,,inf\n", ["column 'x'", "in row 3"]),
    "too large for 32 bits": (HEAD + GOOD + "3,,,1e300\n", ["column 'x'", "in row 3"]),
    "many rows": (HEAD + GOOD + ",,,\n" * 9, ["in rows 3, 4, 5, 6, 7 and 4 more"]),
    "long line": (HEAD + GOOD + "3,,,1,5\n", ["must be readable"]),
    "everything at once": (
        HEAD + "1,a,train,1\n1,b,learn,x\n,b,train,2\n4,,test,3\n",
        ["in rows 1, 2", "'learn' in row 2", "'x'", "needs an id; got none in row 3", "a label; got none in row 4"],
    ),
}


@pytest.mark.parametrize(("text", "words"), NODES.values(), ids=NODES)
def test_broken_nodes(tmp_path, text, words):
    (tmp_path / "n.csv").write_text(text)
    with pytest.raises(InputError) as caught:
        read_nodes(tmp_path / "n.csv")
    told = " ".join(str(problem) for problem in check_files(tmp_path / "n.csv"))
    for word in words:
        assert word in str(caught.value)
        assert word in told


PARQUET_NODES = {
    "fractions as ids": ({"id": [1.5, 2.5], "label": ["a", "b"], "x": [1, 2]}, "ids must be whole numbers or strings"),
    "uneven lists": ({"id": [1, 2], "label": ["a", "b"], "features": [[1.0], [1.0, 2.0]]}, "same length"),
    "lists of text": ({"id": [1, 2], "label": ["a", "b"], "features": [["p"], ["q"]]}, "lists of numbers"),
    "lists and columns": ({"id": [1, 2], "label": ["a", "b"], "features": [[1.0], [2.0]], "x": [1, 2]}, "not both"),
    "NaN in a list": ({"id": [1, 2], "label": ["a", "b"], "features": [[1.0], [float("nan")]]}, "infinity in row 2"),
    "gap in a list": ({"id": [1, 2], "label": ["a", "b"], "features": [[None], [1.0]]}, "infinity in row 1"),
}


@pytest.mark.parametrize(("columns", "words"), PARQUET_NODES.values(), ids=PARQUET_NODES)
def test_broken_parquet_nodes(tmp_path, columns, words):
    pl.DataFrame(columns).write_parquet(tmp_path / "n.parquet")
    with pytest.raises(InputError, match=words):
        read_nodes(tmp_path / "n.parquet")


FEATURES = {
    "rows": (lambda path: np.save(path, np.ones((3, 2))), "x.npy", "one row for each of the 2 nodes"),
    "vector": (lambda path: np.save(path, np.ones(2)), "x.npy", "shape (2,)"),
    "pickle": (lambda path: np.save(path, np.array([[{}], [{}]])), "x.npy", "without pickle"),
    "text": (lambda path: path.write_text("hello"), "x.npy", "damaged"),
    "NaN": (lambda path: np.save(path, np.array([[1.0], [np.nan]])), "x.npy", "NaN or infinity in row 2"),
    "names": (lambda path: np.savez(path, y=np.ones((2, 2))), "x.npz", "['y']"),
    "ending": (lambda path: path.write_text("1"), "x.txt", "must end in"),
    "nowhere": (lambda path: None, "x.npy", "no such file"),
}


@pytest.mark.parametrize(("write", "name", "words"), FEATURES.values(), ids=FEATURES)
def test_broken_features(tmp_path, write, name, words):
    write(tmp_path / name)
    (tmp_path / "n.csv").write_text("id,label\n1,a\n2,b\n")
    with pytest.raises(InputError) as caught:
        read_nodes(tmp_path / "n.csv", features_path=tmp_path / name)
    assert words in str(caught.value)
    assert "features" in str(caught.value)


def test_features_in_both_places(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 2)))
    (tmp_path / "n.csv").write_text("id,label,age\n1,a,30\n2,b,40\n")
    with pytest.raises(InputError, match="'age'"):
        read_nodes(tmp_path / "n.csv", features_path=tmp_path / "x.npy")
    assert read_nodes(tmp_path / "n.csv", features_path=tmp_path / "x.npy", drop=["age"]).ids.tolist() == [
        1,
        2,
    ]


def test_edges_are_checked_even_if_the_nodes_are_broken(tmp_path):
    (tmp_path / "n.csv").write_text("name,label,x\n1,a,1\n")
    (tmp_path / "e.csv").write_text("source,target\n7001,\n")
    problems = check_files(tmp_path / "n.csv", tmp_path / "e.csv")
    assert [problem.file for problem in problems] == ["nodes", "edges"]
    assert "missing id" in str(problems[1])


@pytest.mark.parametrize("ids", [["a", ""], ["a", None]])
def test_categories_are_ids_like_words(tmp_path, ids):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"id": pl.Series(ids, dtype=pl.Categorical), "label": ["x", "y"], "f": [1.0, 2.0]})
    frame.write_parquet(tmp_path / "n.parquet")
    with pytest.raises(InputError, match="every row needs an id; got none in row 2"):
        read_nodes(tmp_path / "n.parquet")
