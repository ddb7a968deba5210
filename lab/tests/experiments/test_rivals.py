"""The table of competitors: the better of two accesses, and the smallest lead, run by run."""

from gcon_lab.experiments.rivals import as_csv, lines, take
from gcon_lab.experiments.units import UnitStore

OURS = [{"none": 0.1, "cached": 0.7, "own-edges": 0.8}, {"none": 0.1, "cached": 0.5, "own-edges": 0.8}]
THEIRS = [
    {"lpgnet|cached": 0.6, "gcon|none": 0.3, "gcon|own-edges": 0.9, "gcn|public-graph": 0.75},
    {"lpgnet|cached": 0.6, "gcon|none": 0.2, "gcon|own-edges": 0.5, "gcn|public-graph": 0.85},
]


def test_every_competitor_with_its_better_access_and_the_smallest_lead_over_private_ones():
    publish, owners = lines("g", 0.5, OURS, THEIRS)
    assert publish == [
        "g",
        "0.5",
        "2",
        "to publish",
        "0.600 ± 0.100",
        "0.600 ± 0.000",
        "",
        "",
        "0.250 ± 0.050",
        "",
        "",
        "+0.000 ± 0.100",
    ]
    assert owners == [
        "g",
        "0.5",
        "2",
        "for owners",
        "0.800 ± 0.000",
        "",
        "",
        "",
        "0.700 ± 0.200",
        "0.800 ± 0.050",
        "",
        "+0.100 ± 0.200",
    ]


def test_what_was_measured_is_kept_to_the_last_digit_and_nothing_is_written_over(tmp_path):
    store = UnitStore(tmp_path)
    found = {
        ("social/g@many", 0.5, 3): {"lpgnet|cached": 0.1 + 0.2, "gcn|public-graph": 1 / 3},
        ("h", 1.0, 4): {"gap|none": 0.0},
    }
    store.write("h-epsilon1-run4", {"gap|none": 0.5})
    take(as_csv(found), store)
    assert store.read("social-g@many-epsilon0.5-run3") == found["social/g@many", 0.5, 3]
    assert store.read("h-epsilon1-run4") == {"gap|none": 0.5}
