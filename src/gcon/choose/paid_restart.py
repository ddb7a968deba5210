"""The one choice that only edges can make: how much a node should trust its neighbours. It is paid for."""

from __future__ import annotations

from collections.abc import Sequence

from gcon.edges.graph import PrivateGraph
from gcon.edges.source import Edges
from gcon.mechanisms.counts import ENDS_OF_AN_EDGE, Selection
from gcon.methods.objective import ObjectiveModel
from gcon.methods.own_edges import own_edge_predictions
from gcon.privacy.account import Released, release_once
from gcon.privacy.ledger import Ledger
from gcon.privacy.randomness import Randomness

RESTARTS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)


def choose_inference_restart(
    model: ObjectiveModel,
    graph: PrivateGraph,
    *,
    epsilon: float,
    ledger: Ledger,
    randomness: Randomness,
    restarts: Sequence[float] = RESTARTS,
) -> Released[int]:
    """Which restart answers most validation nodes correctly from their own edges: its place in `restarts`.

    Args:
        model: trained without the private edges, or released and paid for before.
        graph: public nodes and private edges.
        epsilon: what the choice costs.
        ledger: pays it.
        randomness: the source of the noise.
        restarts: the candidates, public.

    Privacy:
        One edge changes the answers of its two ends at most, so every candidate's count has sensitivity 2. Costs
        (epsilon, 0) (docs/proofs/selection.md).
    """
    nodes = graph.nodes
    encoded = model.encoder.encode(nodes.features)

    def correct(opened: Edges) -> list[int]:
        answers = [own_edge_predictions(model, encoded, opened, restart=restart).classes for restart in restarts]
        return [int((classes == nodes.labels)[nodes.validation_mask].sum()) for classes in answers]

    return release_once(
        Selection(epsilon, correct, ENDS_OF_AN_EDGE),
        graph.edges,
        ledger=ledger,
        randomness=randomness,
        purpose="choice of the inference restart",
    )
