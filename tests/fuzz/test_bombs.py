"""Bombs and oddities: every file ends in our error or in the right answer, in bounded time and memory."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import safetensors.torch
import torch
from tests.once import once
from tests.release.forging import forge

import gcon
from gcon.edges.edge_list import EdgeList
from gcon.errors import GconError, InputError, LedgerError, ReleaseFormatError
from gcon.files.edge_files import read_edges, read_public_edges
from gcon.files.node_files import read_nodes
from gcon.privacy.budget import Budget
from gcon.privacy.ledger_file import FileLedger
from gcon.release.read import load_release
from gcon.release.store import save_release

HERE = Path(__file__).parent
UNPACKED = ("may unpack to 2 GiB or 100 times", "Save it")
DAMAGED = ("must be readable", "Write")
HEAVY = {  # what must be said; a number or a word: what must be read
    "a member of 10 GB": UNPACKED,
    "features of 10 GB": UNPACKED,
    "a shape of 10^18": DAMAGED,
    "an array of 10^18": DAMAGED,
    "an archive in an archive": DAMAGED,
    "a sparse matrix with 10^12 columns": UNPACKED,
    "a word of 1 MB in every row": UNPACKED,
    "a word of 60 kB in every row": UNPACKED,
    "300 million rows": UNPACKED,
    "3000 row groups": "tuple",
    "10^6 columns of edges": DAMAGED,
    "10^6 fields in a row of edges": DAMAGED,
    "10^6 columns of nodes": ("1000002 columns", "keep features in an .npy"),
    "10^6 fields in a row of nodes": ("Expected 4 columns, got 1000001", "Give every row as many fields as the header"),
    "a field of 100 MB in the header": DAMAGED,
    "a field of 100 MB": DAMAGED,
    "a field of 100 MB in nodes": DAMAGED,
    "a quote that never ends": DAMAGED,
    "10 MB of brackets": ("more than 16384 bytes", "defaults of one verb"),
    "16 kB of brackets": ("cannot be read as TOML", "for example"),
    "16 kB of dots": ("keys that this verb does not know: a",),
    "16 kB of tables": ("keys that this verb does not know: a0, a1, a10",),
    "16 MiB of nested lists": ("more than 250000 values", "Get the folder again"),
    "200 kB of nested lists": ("is not the JSON of a release", "Get the folder again"),
    "16 MiB of empty lists": ("more than 250000 values", "Get the folder again"),
    "1 MiB of lists with a checksum": ("'method' is none of", "Install a newer gcon"),
    "10^5 entries": 100.0,
}


@pytest.fixture(scope="module")
def heavy(tmp_path_factory):
    """What became of every heavy case, in one process with 3 GiB to spare: once, also where several workers share the tests."""
    folder = tmp_path_factory.mktemp("heavy")
    return json.loads(once(tmp_path_factory, "heavy.json", lambda: json.dumps(heavy_cases(folder))))


def heavy_cases(folder):
    threads = dict.fromkeys(("OMP_NUM_THREADS", "POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, str(HERE / "heavy_cases.py"), str(folder)],
        env={**os.environ, **threads},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = [json.loads(line) for line in done.stdout.splitlines()]
    return {each["case"]: each for each in told}


@pytest.mark.slow
@pytest.mark.parametrize("case", HEAVY)
def test_no_small_file_fills_the_memory(heavy, case):
    told, expected = heavy[case], HEAVY[case]
    assert "crash" not in told
    assert told["seconds"] < (60 if case == "10^5 entries" else 5)
    if isinstance(expected, tuple):
        for words in expected:
            assert words in told["refused"]
        assert len(told["refused"]) < 1500
    else:
        assert told["value"] == expected


@pytest.mark.slow
def test_all_heavy_cases_are_known(heavy):
    assert set(heavy) == set(HEAVY)


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release") / "model"
    graph = gcon.datasets.social_circles(60, num_classes=3, per_class=5, num_validation=10, num_test=20, seed=1)
    save_release(gcon.GCON(epochs=2, hidden=4).fit(graph).model_, folder)
    return folder


def with_header(header, content=b"", length=None):
    text = json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + content


def overlapping(content):
    """Every tensor starts at the first byte; the file is as long as it should be."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    for entry in header.values():
        if isinstance(entry, dict) and "data_offsets" in entry:
            start, end = entry["data_offsets"]
            entry["data_offsets"] = [0, end - start]
    text = json.dumps(header).encode().ljust(length)
    return len(text).to_bytes(8, "little") + text + content[8 + length :]


ENTRY = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
TENSORS = {
    "a header of 10^12 bytes": lambda _: with_header({}, length=10**12),
    "a header of 2^64 - 1 bytes": lambda _: with_header({}, length=2**64 - 1),
    "10^6 tensors": lambda _: (10**7).to_bytes(8, "little") + b",".join(b'{"%x":0' % n for n in range(10**6)),
    "10^4 tensors": lambda _: with_header({f"{n:x}": ENTRY for n in range(10**4)}, bytes(4)),
    "overlapping tensors": overlapping,
    "a shape of 10^18": lambda _: with_header({"weights": {**ENTRY, "shape": [10**9, 10**9]}}),
    "a number without end": lambda _: b"\x00\x20" + bytes(6) + b'{"a":' + b"9" * 8186 + b"}",
    "nothing": lambda _: b"",
    "other tensors": lambda _: safetensors.torch.save({"a": torch.ones(1)}),
}


@pytest.mark.parametrize("kind", TENSORS)
def test_tensors_that_lie(release, kind, tmp_path):
    """The checksums are right."""
    folder = shutil.copytree(release, tmp_path / "model")
    tensors = folder / "model.safetensors"
    tensors.write_bytes(TENSORS[kind](tensors.read_bytes()))
    forge(folder)
    with pytest.raises(ReleaseFormatError, match=r"model\.safetensors.*Get the folder again"):
        load_release(folder)


def parquet(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


def damaged_parquet(path, change):
    parquet(path, source=["a", "b"], target=["b", "c"])
    path.write_bytes(change(path.read_bytes()))
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-4] + b"PAR2",
        lambda data: data[: len(data) // 2],
        lambda data: data[:-20],
        lambda data: data[:-8] + b"\xff\xff\xff\x7f" + data[-4:],
        lambda data: data[:-8] + bytes(4) + data[-4:],
        lambda data: b"PAR1" + data[-8:],
    ],
)
def test_damaged_parquet(change, tmp_path):
    path = damaged_parquet(tmp_path / "edges.parquet", change)
    with pytest.raises(InputError, match=r"readable to its end.*Write the file again"):
        read_edges(path, ids=["a", "b", "c"])


ODD = {
    "lists": pa.array([["a"], ["b"]]),
    "structs": pa.array([{"a": 1}, {"a": 2}]),
    "maps": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int8())),
    "lists of lists": pa.array([[[1]], [[2]]]),
    "wide decimals": pa.array([1, 2], pa.decimal256(60, 2)),
    "durations": pa.array([1, 2], pa.duration("s")),
    "bytes": pa.array([b"\xff", b"a"]),
}


@pytest.mark.parametrize("kind", ODD)
def test_columns_that_are_no_columns(kind, tmp_path):
    good = {"id": ["a", "b"], "label": ["0", "1"]}
    path = tmp_path / "table.parquet"
    parquet(path, source=ODD[kind], target=["a", "b"])
    with pytest.raises(InputError, match=r"whole numbers or strings.*Convert the ids"):
        read_edges(path, ids=["a", "b"])
    for name in ("id", "label", "split"):
        parquet(path, **{"x": [1.0, 2.0], **good, name: ODD[kind]})
        with pytest.raises(InputError, match=f"column '{name}'"):
            read_nodes(path)
    parquet(path, **good, x=ODD[kind])
    with pytest.raises(InputError, match=r"nodes file"):
        read_nodes(path)
    parquet(path, **good, x=[1.0, 2.0], y=ODD[kind])
    assert read_nodes(path, drop=["y"]).ids.tolist() == ["a", "b"]


def test_words_that_repeat_and_words_written_as_differences_are_read(tmp_path):
    path, words = tmp_path / "edges.parquet", ["a", "b", "c"] * 2000
    for options in (
        {"use_dictionary": True},
        {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"},
        {"use_dictionary": False, "column_encoding": "DELTA_LENGTH_BYTE_ARRAY"},
        {"row_group_size": 7, "compression": "zstd"},
    ):
        pq.write_table(pa.table({"source": words, "target": words[1:] + words[:1]}), path, **options)
        found = read_public_edges(path, ids=["a", "b", "c"])
        assert isinstance(found, EdgeList)
        assert found.degrees.tolist() == [2, 2, 2]


def csv(tmp_path, content, name="edges.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


STRANGE = ["é", "e\u0301", "a", "a\u200b", "\u202ea", "\ufeffa", "ﬁ", "fi", "Å", "\u212b", "а", "\u2067b", "c d", " a"]


def test_ids_that_look_alike_stay_different(tmp_path):
    """No normalisation, in either file: each writing is a node of its own."""
    rows = "".join(f"{name},{place % 2},{place}\n" for place, name in enumerate(STRANGE))
    ids = read_nodes(csv(tmp_path, "id,label,x\n" + rows, "nodes.csv")).ids
    assert ids.tolist() == STRANGE
    pairs = "".join(f"{name},{STRANGE[place - 1]}\n" for place, name in enumerate(STRANGE))
    for content in (pairs.encode(), b"\xef\xbb\xbf" + pairs.encode()):
        found = read_public_edges(csv(tmp_path, b"source,target\n" + content.removeprefix(b"\xef\xbb\xbf")), ids=ids)
        assert found.degrees.tolist() == [2] * len(STRANGE)


@pytest.mark.parametrize(
    "content",
    [
        b"source,target\na,\xed\xa0\x80\n",  # half of a pair
        b"source,target\na,\xff\xfe\n",
        b"source,target\na,b\nb,caf\xe9\n",  # Latin-1 after UTF-8
        "source,target\na,b\n".encode("utf-16"),
        b"source,target\na,b,c\n",
        b"source,target\na\n",
    ],
)
def test_text_that_is_not_utf8_or_not_two_fields(content, tmp_path):
    with pytest.raises(InputError, match=r"edges file 'edges.csv'"):
        read_edges(csv(tmp_path, content), ids=["a", "b", "c"])


def test_bytes_that_are_part_of_an_id_are_kept(tmp_path):
    """A NUL is a character like any other; a byte-order mark before the header is none."""
    path = csv(tmp_path, b"\xef\xbb\xbfsource,target\r\na\x00,b\r\n")
    assert read_public_edges(path, ids=["a\x00", "b"]).degrees.tolist() == [1, 1]
    with pytest.raises(InputError, match="an id that is not there"):
        read_edges(path, ids=["a", "b"])


def test_a_column_named_twice(tmp_path):
    with pytest.raises(InputError, match=r"a name of its own.*'source' more than once"):
        read_edges(csv(tmp_path, "source,target,source\na,b,c\n"), ids=["a", "b", "c"])
    with pytest.raises(InputError, match=r"a name of its own.*'x' more than once"):
        read_nodes(csv(tmp_path, "id,label,x,x\na,0,1,1\n", "nodes.csv"))


def test_messages_stay_short(tmp_path):
    wide = [f"column{n}" for n in range(5000)]
    path = csv(
        tmp_path, ",".join(["id", "label", *wide]) + "\n" + ",".join(["a", "0", *["?"] * 5000]) + "\n", "nodes.csv"
    )
    with pytest.raises(InputError, match="and 49") as caught:
        read_nodes(path)
    assert len(str(caught.value)) < 20_000
    with pytest.raises(InputError, match="and 4992 more") as caught:
        read_edges(csv(tmp_path, ",".join(["source", "target", *wide]) + "\n"), ids=["a"])
    assert len(str(caught.value)) < 1000


def test_row_pointers_that_lead_nowhere(tmp_path):
    """scipy 1.17 takes these on trust and ends the process."""
    path = tmp_path / "edges.npz"
    for pointers in ([0, 1, 2, 3, 0], [0, 1, 2, 3, -(2**31)], [0, 2**31 - 1, 2, 3, 4]):
        np.savez(
            path,
            format=b"csr",
            shape=[4, 4],
            data=np.ones(4, dtype=np.int8),
            indices=np.array([1, 2, 3, 0], dtype=np.int32),
            indptr=np.array(pointers, dtype=np.int32),
        )
        with pytest.raises(InputError, match="Write the file again"):
            read_edges(path, ids=["a", "b", "c", "d"])


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "d.ledger"
    FileLedger(path, data_set="d").set_ceiling(Budget(2.0, 1e-5))
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data[:40],
        lambda data: data.replace(b"gcon", b"GCON"),
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.split(b"\n")[1] + b"\n",
        lambda data: data + data,
        lambda data: b"[" * 10**6 + b"\n" + data,
        lambda data: data.replace(b'"version":1', b'"version":' + b"9" * 5000),
        lambda data: b"\n" + data,
    ],
)
def test_a_ledger_that_was_changed(ledger, change):
    ledger.write_bytes(change(ledger.read_bytes()))
    with pytest.raises(GconError) as caught:
        FileLedger(ledger).total()
    assert isinstance(caught.value, LedgerError)
    assert 20 < len(str(caught.value)) < 6000


def test_a_line_that_was_never_finished_is_told_apart(ledger):
    ledger.write_bytes(ledger.read_bytes() + b'{"hash":"0')
    found = FileLedger(ledger).verify()
    assert found.ok
    assert found.unfinished
