"""The table of competitors: the better of two accesses, and the smallest lead, run by run."""

from gcon_lab.experiments.rivals import lines

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
