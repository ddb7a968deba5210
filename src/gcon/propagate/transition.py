"""The row-stochastic transition with self-loops: T = D^-1 (A + I), optionally clipped."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcon.graphs.edges import EdgeList


@dataclass(frozen=True, eq=False)
class TransitionWeights:
    """Row i of the transition: `neighbour[i]` at every neighbour of i and `own[i]` at i itself."""

    neighbour: Tensor
    own: Tensor


def transition_weights(edges: EdgeList, clip: float = 0.5) -> TransitionWeights:
    """Off-diagonal entries min(1/(k_i + 1), p), the rest of the row on the diagonal.

    Row i depends on the edges of node i alone (a symmetric normalisation would not have this property, and neither
    the private inference nor the proofs would hold). An isolated node keeps its own features.
    """
    degrees = edges.degrees.to(torch.float64)
    neighbour = torch.clamp(1 / (degrees + 1), max=clip)
    return TransitionWeights(neighbour, 1 - degrees * neighbour)
