"""Files that would fill the memory of a careless reader: made and read here, in a process with little room.

`python heavy_cases.py FOLDER` prints one JSON object a case: what the reader said, the seconds, and the memory it took.
"""

import hashlib
import io
import json
import os
import resource
import struct
import sys
import time
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gcon.cli.app import command
from gcon.errors import GconError
from gcon.files.edge_files import read_edges
from gcon.files.file_problems import raise_problems
from gcon.files.node_features import features_of_arrays
from gcon.files.node_files import read_nodes
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import Kind, Request
from gcon.privacy.ledger_file import FileLedger
from gcon.privacy.ledger_lines import FORMAT, HEAD_OF, VERSION, Chain, write_request
from gcon.release.layout import canonical
from gcon.release.read import load_release

SPARE = 3 * 2**30
IDS = ["a", "b", "c"]
NODES = "id,label,split,x\na,0,train,1\nb,1,train,2\nc,0,test,3\n"


def npy(kind, shape, content=b""):
    """An .npy as bytes."""
    text = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00v\x00" + text.ljust(117) + b"\n" + content


def archive(**members):
    """An .npz as bytes."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return sink.getvalue()


def inflating(name, size):
    """An .npz with one member that really unpacks to so many zeros, in a thousandth of the bytes."""
    packer, block = zlib.compressobj(9, zlib.DEFLATED, -15), 10**7
    first = packer.compress(npy("<i8", (2, size // 16)).ljust(block, b"\0")) + packer.flush(zlib.Z_FULL_FLUSH)
    more = packer.compress(bytes(block)) + packer.flush(zlib.Z_FULL_FLUSH)
    data = first + more * (size // block - 1) + b"\x03\x00"
    sizes = struct.pack("<HHQQ", 1, 16, size, len(data))
    plain = struct.pack("<HHHHHLLLHH", 45, 0, 8, 0, 0, 0, 2**32 - 1, 2**32 - 1, len(name), len(sizes))
    local = b"PK\x03\x04" + plain + name.encode() + sizes + data
    central = (
        b"PK\x01\x02" + struct.pack("<H", 45) + plain + struct.pack("<HHHLL", 0, 0, 0, 0, 0) + name.encode() + sizes
    )
    return local + central + b"PK\x05\x06" + struct.pack("<HHHHLLH", 0, 0, 1, 1, len(central), len(local), 0)


def features(path):
    """Read features for three nodes."""
    values, problems = features_of_arrays(path, 3)
    if problems:
        raise_problems(problems)
    return values


def edges(path):
    """Read edges between three nodes."""
    return read_edges(path, ids=IDS)


def config(path):
    """Read defaults for `gcon plan`."""
    return command("plan").make_context("plan", ["--config", str(path)])


def parquet_of(**columns):
    """A Parquet file as bytes."""
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def repeated_word(length):
    """A million rows of one word, which is stored once."""
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1_000_000, dtype=np.int32)), pa.array(["x" * length]))
    return parquet_of(source=column, target=column)


def many_rows(groups):
    """Groups of a million equal numbers."""
    sink, column = io.BytesIO(), pa.array(np.zeros(1_000_000, dtype=np.int64))
    table = pa.table({"source": column, "target": column})
    with pq.ParquetWriter(sink, table.schema) as writer:
        for _ in range(groups):
            writer.write_table(table)
    return sink.getvalue()


def many_groups(count):
    """One edge a row group."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"source": ["a"] * count, "target": ["b"] * count}), sink, row_group_size=1)
    return sink.getvalue()


def sealed(document):
    """A release.json with the right checksum."""
    return canonical({**document, "checksum": hashlib.sha256(canonical(document)).hexdigest()})


def release(folder, content):
    """Read a folder with this release.json."""
    folder.mkdir()
    (folder / "release.json").write_bytes(content)
    return load_release(folder)


def long_ledger(path, count):
    """Read a ledger of so many entries; what they add up to."""
    budget = Budget(0.001, 0.0)
    request = write_request(
        Request(kind=Kind.RELEASE, cost=budget, mechanism="m", purpose="p", randomness="operating system", plan={})
    )
    chain, lines = Chain(), []
    for content in [
        {"line": "header", "format": FORMAT, "version": VERSION, "data_set": "d", "created": "t"},
        *({"line": "reserve", "number": n, "time": "t", "request": request} for n in range(count)),
    ]:
        lines.append(chain.render(content))
        chain.last_hash = json.loads(lines[-1])["hash"]
        chain.lines += 1
    path.write_bytes(b"".join(lines))
    path.with_name(path.name + ".head").write_bytes(HEAD_OF.format(chain).encode())
    return round(FileLedger(path).total().epsilon, 6)


BIG = 10**9
OPENING = b'{"format": "gcon-release", "version": 4, "x": ['
FILES = {  # name: (ending, content, reader)
    "a member of 10 GB": (".npz", lambda: inflating("edge_index.npy", 10**10), edges),
    "features of 10 GB": (".npz", lambda: inflating("features.npy", 10**10), features),
    "a shape of 10^18": (".npz", lambda: archive(edge_index=npy("<i8", (BIG, BIG))), edges),
    "an array of 10^18": (".npy", lambda: npy("<f8", (BIG, BIG)), features),
    "an archive in an archive": (".npz", lambda: archive(edge_index=inflating("edge_index.npy", 10**8)), edges),
    "a sparse matrix with 10^12 columns": (
        ".npz",
        lambda: archive(
            format=npy("|S3", (), b"coo"),
            shape=npy("<i8", (2,), struct.pack("<qq", 3, 10**12)),
            row=npy("<i8", (1,), bytes(8)),
            col=npy("<i8", (1,), bytes(8)),
            data=npy("<f8", (1,), bytes(8)),
        ),
        features,
    ),
    "a word of 1 MB in every row": (".parquet", lambda: repeated_word(10**6), edges),
    "a word of 60 kB in every row": (".parquet", lambda: repeated_word(60_000), edges),
    "300 million rows": (".parquet", lambda: many_rows(300), edges),
    "3000 row groups": (".parquet", lambda: many_groups(3000), edges),
    "10^6 columns of edges": (".csv", lambda: b"source,target," + b"x," * 10**6 + b"x\n", edges),
    "10^6 fields in a row of edges": (".csv", lambda: b"source,target\n" + b"a," * 10**6 + b"b\n", edges),
    "10^6 columns of nodes": (".csv", lambda: ",".join(["id", "label", *(f"x{n}" for n in range(10**6))]).encode(), read_nodes),
    "10^6 fields in a row of nodes": (".csv", lambda: NODES.encode() + b"1," * 10**6 + b"1\n", read_nodes),
    "a field of 100 MB in the header": (".csv", lambda: b"source,target" + b"x" * 10**8 + b"\na,b\n", edges),
    "a field of 100 MB": (".csv", lambda: b"source,target\na,b\na," + b"x" * 10**8 + b"\n", edges),
    "a field of 100 MB in nodes": (".csv", lambda: NODES.encode() + b"d,0,train," + b"1" * 10**8 + b"\n", read_nodes),
    "a quote that never ends": (".csv", lambda: b'source,target\na,"' + b"x\n" * 10**7, edges),
    "10 MB of brackets": (".toml", lambda: b"a = " + b"[" * 10**7, config),
    "16 kB of brackets": (".toml", lambda: b"a = " + b"[" * 8000 + b"]" * 8000, config),
    "16 kB of dots": (".toml", lambda: b".".join([b"a"] * 8100) + b" = 1", config),
    "16 kB of tables": (".toml", lambda: b"".join(b"[a%d.b]\n" % n for n in range(1500)), config),
    "16 MiB of nested lists": ("", lambda: b"[" * 2**24, release),
    "200 kB of nested lists": ("", lambda: b"[" * 200_000, release),
    "16 MiB of empty lists": ("", lambda: OPENING + b"[]," * (2**24 // 3 - 30) + b"0]}", release),
    "1 MiB of lists with a checksum": ("", lambda: sealed(json.loads(OPENING + b"[]," * 120_000 + b"0]}")), release),
    "10^5 entries": (".ledger", None, lambda path: long_ledger(path, 10**5)),
}  # fmt: skip


def main(folder):
    """Try every case."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + SPARE
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for place, (name, (ending, content, reader)) in enumerate(FILES.items()):
        path = folder / f"case{place}{ending}"
        made = b"" if content is None else content()
        if content is not None and ending:
            path.write_bytes(made)
        start = time.process_time()
        try:
            value = reader(path, made) if reader is release else reader(path)
            said = {"value": value if isinstance(value, int | float) else type(value).__name__}
        except BaseException as error:
            known = isinstance(error, GconError) or type(error).__name__ == "BadParameter"
            said = {"refused" if known else "crash": f"{type(error).__name__}: {error}"}
        said |= {"case": name, "seconds": time.process_time() - start, "bytes": len(made)}
        said["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if path.is_file():
            path.unlink()
        del made
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
