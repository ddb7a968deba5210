"""The competitors' grids (as their authors or the paper give them), and seeded draws from them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gcon.methods.controls import EncoderAlone, EncoderOneHop
from gcon.methods.method import Method, PrivateMethod
from gcon_lab.methods.dp_sgd import DPSGD
from gcon_lab.methods.dpgcn import DPGCN
from gcon_lab.methods.gap import GAP
from gcon_lab.methods.gcn import GCN
from gcon_lab.methods.gpr_gnn import GPRGNN
from gcon_lab.methods.lpgnet import LPGNet
from gcon_lab.methods.mlp import MLP
from gcon_lab.methods.progap import ProGAP
from gcon_lab.methods.self_training import SelfTraining

Settings = Mapping[str, Any]

_PERCEPTRON: dict[str, Sequence[Any]] = {
    "hidden": (16, 64, 256),
    "dropout": (0.1, 0.3, 0.5),
    "learning_rate": (0.001, 0.005, 0.01, 0.05),
}
_LAYERED = {**_PERCEPTRON, "layers": (2, 3)}


@dataclass(frozen=True, kw_only=True)
class Competitor:
    """A line of the table.

    Attributes:
        name: of the line.
        method: the class.
        fixed: settings that all candidates share.
        known: settings that are always tried, after the method's defaults.
        grid: values to draw from.
        most: how many candidates.
        chosen_by: the access under which validation scores choose; never the exact private edges of a private method.
        shown: the accesses whose scores are in the table.
    """

    name: str
    method: type[Method]
    fixed: Settings = field(default_factory=dict)
    known: tuple[Settings, ...] = ()
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    most: int = 20
    chosen_by: str = "cached"
    shown: tuple[str, ...] = ("cached", "own-edges")

    @property
    def spends(self) -> bool:
        """Whether it needs an epsilon."""
        return issubclass(self.method, PrivateMethod)

    def candidates(self) -> list[Settings]:
        """The defaults, known good settings, then distinct draws of the grid; the same on every machine."""
        combinations = [dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values())]
        random.Random(self.name).shuffle(combinations)
        drawn = [combination for combination in combinations if combination and combination not in self.known]
        found: list[Settings] = [{}, *self.known, *drawn]
        return [{**self.fixed, **settings} for settings in found[: self.most]]

    def build(self, settings: Settings, *, epsilon: float | None, seed: int) -> Method:
        budget = {"epsilon": epsilon} if self.spends else {}
        return self.method(**settings, **budget, seed=seed)  # type: ignore[call-arg]  # all of them have one


COMPETITORS: tuple[Competitor, ...] = (
    Competitor(name="encoder", method=EncoderAlone, chosen_by="none", shown=("none",)),
    Competitor(name="encoder, one hop", method=EncoderOneHop, chosen_by="none", shown=("own-edges",)),
    Competitor(name="self-training", method=SelfTraining, chosen_by="none", shown=("none", "own-edges")),
    Competitor(name="mlp", method=MLP, grid=_LAYERED, chosen_by="none", shown=("none",)),
    Competitor(name="gcn", method=GCN, grid=_PERCEPTRON, chosen_by="full", shown=("full",)),
    Competitor(
        name="gpr-gnn",
        method=GPRGNN,
        # Its authors' settings for graphs like PubMed and Actor. Actor's nodes have five words each: dropping half of
        # them, as the authors do, costs two points, so a smaller dropout is tried too.
        known=(
            {"learning_rate": 0.05, "restart": 0.2},
            {"restart": 0.9, "weight_decay": 0.0},
            {"restart": 0.9, "score_dropout": 0.0, "dropout": 0.1},
        ),
        grid={
            "learning_rate": (0.002, 0.01, 0.05),
            "weight_decay": (0.0, 5e-4),
            "restart": (0.1, 0.2, 0.5, 0.9),
            "score_dropout": (0.0, 0.5, 0.7),
            "dropout": (0.1, 0.5),
        },
        most=12,
        chosen_by="full",
        shown=("full",),
    ),
    Competitor(name="lpgnet", method=LPGNet, fixed={"stacked": 1}, grid=_LAYERED),
    Competitor(name="lpgnet, two", method=LPGNet, fixed={"stacked": 2}, grid=_LAYERED, most=8),
    Competitor(
        name="gap",
        method=GAP,
        grid={"hops": (1, 2, 3, 4, 5), "learning_rate": (0.001, 0.01, 0.05), "hidden": (16, 64), "dropout": (0.0, 0.5)},
    ),
    Competitor(
        name="progap",
        method=ProGAP,
        grid={
            "depth": (1, 2, 3, 4, 5),
            "base_layers": (1, 2),
            "train_earlier_blocks": (True, False),
            "learning_rate": (0.01, 0.05),
            "hidden": (16, 64),
            "dropout": (0.0, 0.5),
        },
    ),
    Competitor(
        name="dp-sgd",
        method=DPSGD,
        grid={
            "hidden": (8, 16, 64),
            "clip": (0.1, 0.5, 1.0),
            "steps": (50, 100, 200, 500),
            "sampling": (0.1, 0.25, 0.5, 1.0),
            "learning_rate": (0.01, 0.1, 0.5, 1.0),
            "optimiser": ("sgd", "adam"),
        },
        chosen_by="none",
        shown=("none", "own-edges"),
    ),
    Competitor(name="dpgcn, LapGraph", method=DPGCN, fixed={"variant": "top-pairs"}, grid=_PERCEPTRON, most=8),
    Competitor(
        name="dpgcn, EdgeRand",
        method=DPGCN,
        # A noisy graph of millions of pairs: fewer epochs and candidates, and what is larger is skipped and named.
        fixed={"variant": "random-flips", "epochs": 100, "most_pairs": 700_000},
        grid=_PERCEPTRON,
        most=2,
    ),
)


def competitor(name: str) -> Competitor:
    return next(entry for entry in COMPETITORS if entry.name == name)
