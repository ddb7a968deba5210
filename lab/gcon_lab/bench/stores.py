"""A made-up graph as an edge store, written row by row: nothing is sorted, and memory stays small."""

from __future__ import annotations

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
            for degrees, part in rows.chunks():
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
