"""The calculated costs: by hand for one graph, and growing with what they should grow with."""

import pytest

from gcon.errors import InputError
from gcon_lab.bench.cluster_costs import Machine, costs, main

MACHINE = Machine(additions=1e9, disk=1e8, network=1e9)


def test_by_hand():
    found = costs(10**9, 10**7, 10, 9, MACHINE)
    assert found.read == pytest.approx(2e9 * 4 / 9e8)
    assert found.add == pytest.approx(2e9 * 10 / 9e9)
    assert found.received == pytest.approx(8 * 10**8 * 8 / 9)  # 222 entries per node and worker leave out none
    assert found.exchange == pytest.approx(0.8 * 8 / 9)
    assert found.store == 8 * 10**9 + 8 * (10**7 + 1)
    assert found.seconds == pytest.approx(found.read + found.add + found.exchange)
    assert found.received < found.memory < 2 * found.received


def test_more_of_everything_costs_more_and_workers_share():
    base = costs(10**9, 10**7, 10, 9, MACHINE)
    assert costs(2 * 10**9, 10**7, 10, 9, MACHINE).read == 2 * base.read
    assert costs(10**9, 2 * 10**7, 10, 9, MACHINE).exchange == pytest.approx(2 * base.exchange, rel=1e-4)
    assert costs(10**9, 10**7, 20, 9, MACHINE).add == 2 * base.add
    more = costs(10**9, 10**7, 10, 27, MACHINE)
    assert more.add == pytest.approx(base.add / 3)
    assert base.exchange < more.exchange < 1.1 * base.exchange


def test_few_neighbours_need_few_rows():
    assert costs(10**6, 10**7, 10, 10).received == pytest.approx(8 * 10 * 9 * 10**6 * 0.0198, rel=0.001)
    assert costs(10**6, 10**7, 10, 1).received == 0


def test_columns_of_many_nodes_are_wider():
    assert costs(10**9, 2**31, 1, 1).store - 8 * (2**31 + 1) == 2 * 10**9 * 8


@pytest.mark.parametrize("change", [{"edges": 0}, {"nodes": 0}, {"columns": 0}, {"workers": 0}, {"workers": 1.5}])
def test_bad_sizes(change):
    with pytest.raises(InputError, match=next(iter(change))):
        costs(**{"edges": 10, "nodes": 10, "columns": 1, "workers": 1} | change)
    with pytest.raises(InputError, match="disk"):
        Machine(disk=0)


def test_the_table_says_that_it_is_calculated(capsys):
    main(["--workers", "8", "--columns", "4"])
    text = capsys.readouterr().out
    assert text.startswith("Calculated, not measured: one step, 4 columns, 8 workers")
    assert [line.split(" | ")[0] for line in text.splitlines()[4:]] == [
        "| 1e8",
        "| 1e9",
        "| 1e10",
        "| 1e11",
        "| 1e12",
    ]
