"""Any content at all, found by hypothesis: ids survive the trip through files, and readers refuse in our own words."""

import json
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gcon.errors import GconError
from gcon.files.edge_files import read_public_edges
from gcon.files.node_files import read_nodes
from gcon.files.node_ids import as_node_ids
from gcon.privacy.ledger_lines import read_ledger

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from fuzz.contract import check

FEW = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
IDS = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6), min_size=2, max_size=6, unique=True
)
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def quoted(text):
    return '"' + text.replace('"', '""') + '"'


@given(ids=IDS)
@FEW
def test_ids_are_kept_as_they_are(ids, tmp_path):
    """Whatever the characters: the nodes file gives the same ids, and the edges file finds them."""
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    rows = "".join(f"{quoted(name)},{place % 2},{place}\n" for place, name in enumerate(ids))
    nodes.write_text("id,label,x\n" + rows, encoding="utf-8", newline="")
    found = read_nodes(nodes).ids
    assert [str(name) for name in found.tolist()] == ids
    edges.write_text(f"source,target\n{quoted(ids[0])},{quoted(ids[1])}\n", encoding="utf-8", newline="")
    assert read_public_edges(edges, ids=found).degrees.tolist() == [1, 1] + [0] * (len(ids) - 2)


@given(ids=IDS)
@FEW
def test_a_list_of_ids_is_kept_as_it_is(ids):
    assert [str(name) for name in as_node_ids(ids).tolist()] == ids


@given(content=st.binary(max_size=60), ending=st.sampled_from([".csv", ".tsv", ".parquet", ".npz"]))
@FEW
def test_any_bytes_are_read_or_refused(content, ending, tmp_path):
    path = tmp_path / f"edges{ending}"
    path.write_bytes(content)
    check(lambda: read_public_edges(path, ids=["a", "b"]))


@given(records=st.lists(TREES, max_size=4))
@FEW
def test_any_lines_are_a_ledger_or_none(records):
    content = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    try:
        reading = read_ledger(content, None)
    except GconError:
        pytest.fail("read_ledger tells problems in its result")
    assert reading.problem is not None
