"""Our own method behind the face of the competitors (docs/moments.md); its control is in `gcon.methods.controls`."""

from __future__ import annotations

from dataclasses import dataclass

from gcon.edges.edge_list import EdgeList
from gcon.methods.controls import model_scorers
from gcon.methods.method import PrivateMethod, Trained
from gcon.methods.moments import MomentsTraining, train_moments
from gcon.methods.moments_model import MomentsModel
from gcon.methods.scorers import scorer_of
from gcon.nodes import PublicNodes
from gcon.privacy.boundary import Private
from gcon.privacy.ledger import Ledger
from gcon.privacy.randomness import Randomness


@dataclass(frozen=True, kw_only=True)
class Moments(PrivateMethod):
    """Edge moments, staged with neighbour sums. One set of settings serves all graphs."""

    name = MomentsModel.method
    about = "Releases noisy edge moments and neighbour sums of edge-free answers, once; Gaussian noise."

    def _train(
        self, nodes: PublicNodes, edges: Private[EdgeList], *, ledger: Ledger, randomness: Randomness
    ) -> Trained:
        model = train_moments(
            nodes,
            edges,
            MomentsTraining(epsilon=self.epsilon, delta=self.delta, seed=self.seed),
            ledger=ledger,
            randomness=randomness,
            purpose="edge moments and neighbour sums",
        )
        return Trained(scorers=model_scorers(scorer_of(model)), receipts=(model.receipt,))
