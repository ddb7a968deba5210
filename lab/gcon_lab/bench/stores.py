"""A made-up graph as an edge store, written row by row: nothing is sorted, and memory stays small.

python -m gcon_lab.bench.stores --nodes 4000000 --entries 200000000 [--device cuda] FOLDER
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from gcon.edges.store_format import (
    CHUNK_BYTES,
    COLUMNS,
    HEADER,
    POINTERS,
    ChunkChecksums,
    StoreHeader,
    as_bytes,
    file_checksum,
    render_header,
)
from gcon.files.store_files import numbers_fingerprint
from gcon.writing import whole_folder
from gcon_lab.bench.graphs import MadeRows


def write_rows(rows: MadeRows, target: Path) -> None:
    """Write the store; under its own name once it is whole."""
    with whole_folder(target) as folder:
        checksums, entries = ChunkChecksums(CHUNK_BYTES), 0
        with (folder / COLUMNS).open("wb") as columns, (folder / POINTERS).open("wb") as pointers:
            pointers.write(as_bytes(np.zeros(1, dtype="<i8")))
            for chunk in rows.chunks():
                degrees, part = (each.cpu() for each in chunk)
                pointers.write(as_bytes((degrees.cumsum(0).numpy() + entries).astype("<i8")))
                piece = as_bytes(part.numpy().astype("<i4"))
                columns.write(piece)
                checksums.update(piece)
                entries += len(part)
        header = StoreHeader(
            num_nodes=rows.num_nodes,
            num_entries=entries,
            node_ids=numbers_fingerprint(np.arange(rows.num_nodes)),
            cleaned={"given": entries // 2, "self_loops": 0, "duplicates": 0, "kept": entries // 2},
            row_pointers=file_checksum(folder / POINTERS),
            chunk_bytes=CHUNK_BYTES,
            columns=checksums.all(),
        )
        (folder / HEADER).write_text(render_header(header))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--entries", type=int, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    write_rows(MadeRows(given.nodes, given.entries, given.device), given.folder)


if __name__ == "__main__":
    main()
