"""What no verb replaces, also if it is told to."""

import pytest

from gcon.cli.checks import check_replaceable
from gcon.errors import InputError
from gcon.privacy.budget import Budget
from gcon.privacy.ledger_file import FileLedger


@pytest.mark.parametrize("ending", ["", ".head", ".lock", ".torn", ".new", ".checkpoint"])
def test_no_file_of_a_ledger_is_replaced(tmp_path, ending):
    books = tmp_path / "edges.csv.ledger"
    FileLedger(books, data_set="edges").set_ceiling(Budget(1.0, 1e-5))
    out = books.with_name(f"{books.name}{ending}")
    out.touch()
    with pytest.raises(InputError, match="belongs to a ledger"):
        check_replaceable(out, overwrite=True)


def test_another_file_is_replaced_if_asked(tmp_path):
    out = tmp_path / "labels.csv"
    out.touch()
    check_replaceable(out, overwrite=True)
    with pytest.raises(InputError, match="must not exist yet"):
        check_replaceable(out, overwrite=False)


def test_converted_edges_and_what_they_carry_are_not_replaced(tmp_path):
    edges, carried = tmp_path / "edges.parquet", tmp_path / "edges.parquet.ledger-path"
    edges.touch()
    carried.write_text(f"{tmp_path / 'edges.csv.ledger'}\n")
    with pytest.raises(InputError, match="private edges that were paid for"):
        check_replaceable(edges, overwrite=True)
    with pytest.raises(InputError, match="belongs to a ledger"):
        check_replaceable(carried, overwrite=True)


def test_what_is_kept_beside_a_ledger_is_not_replaced(tmp_path):
    FileLedger(tmp_path / "edges.csv.ledger", data_set="edges")
    kept = tmp_path / "edges.csv.ledger.recovery" / "entry-1" / "kept.json"
    kept.parent.mkdir(parents=True)
    kept.touch()
    with pytest.raises(InputError, match="belongs to a ledger"):
        check_replaceable(kept, overwrite=True)
