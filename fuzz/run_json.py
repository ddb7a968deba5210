"""run.json, the record that a report is made from."""

from __future__ import annotations

from fuzz.contract import check
from fuzz.mutate import change_json, mostly
from gcon.pages.report import (
    LedgerLine,
    ModelScores,
    NoiseLevel,
    ReportData,
    from_json,
    to_json,
    verdict,
)
from gcon.pages.scored_nodes import ReliabilityBin

change = mostly(change_json, share=0.9)

PLAIN_SHARE = 0.5  # of inputs that libFuzzer changes itself, which is fast


def seeds() -> list[bytes]:
    """A valid record."""
    data = ReportData(
        data_set="d",
        about="a",
        time="t",
        version="0",
        shown_epsilon=1.0,
        promise=("p",),
        models=(
            ModelScores(kind="edge-free", name="e", epsilon=None, none=(0.6, 0.5), own_edges=()),
            ModelScores(kind="one-hop", name="c", epsilon=None, none=(), own_edges=(0.7, 0.6)),
            ModelScores(kind="private", name="m", epsilon=1.0, none=(0.6, 0.7), own_edges=(0.7, 0.8)),
        ),
        noise=(
            NoiseLevel(epsilon=1.0, noise_to_edge=1.0, released=("r",), best_advantage=0.4, true_positive_rate=0.02),
        ),
        class_names=("a", "b"),
        confusion=((3, 1), (0, 5)),
        reliability=(ReliabilityBin(low=0.5, high=0.6, count=4, confidence=0.5, accuracy=0.8),),
        settings={"restart": "0.8"},
        ledger=(LedgerLine(number=0, time="t", kind="k", purpose="p", epsilon=1.0, delta=0.0, outcome="o"),),
        total_epsilon=1.0,
        total_delta=0.0,
    )
    return [to_json(data)]


def one(data: bytes) -> None:
    """Read one record, and say what it shows."""
    check(lambda: verdict(from_json(data)))
