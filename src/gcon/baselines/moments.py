"""Our own method behind the face of the competitors, and its control without edges (docs/moments.md)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gcon.baselines.interface import Method, PrivateMethod, Scorer, Trained
from gcon.estimate.homophily import usual_homophily
from gcon.estimate.remembered import edge_free
from gcon.estimate.student import train_student
from gcon.graphs.edges import EdgeList
from gcon.graphs.nodes import PublicNodes
from gcon.moments import MomentsTraining, train_moments
from gcon.predict.predictions import Access
from gcon.predict.scorers import AnswersScorer, scorer_of
from gcon.predict.scorers import Scorer as ModelScorer
from gcon.privacy.boundary import Private
from gcon.privacy.ledger import Ledger
from gcon.privacy.randomness import Randomness
from gcon.release.moments_model import MomentsModel


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
        return Trained(scorers=_scorers(scorer_of(model)), receipts=(model.receipt,))


@dataclass(frozen=True, kw_only=True)
class MomentsWithoutEdges(Method):
    """The control of `Moments`: the same pipeline with the private statistics left out."""

    name = "moments-without-edges"
    about = "Reads no edge in training; every node's answer is computed from its own edges."

    def _train(
        self, nodes: PublicNodes, edges: Private[EdgeList], *, ledger: Ledger, randomness: Randomness
    ) -> Trained:
        free = edge_free(nodes, self.seed)
        scorer = AnswersScorer(
            free.answers,
            free.answers,
            student=train_student(nodes.features, free.answers),
            homophily=usual_homophily(free.neighbours_agree),
            training_nodes=nodes.fingerprint,
        )
        scorers = _scorers(scorer)
        del scorers["cached"]  # nothing is released
        return Trained(scorers=scorers)


def _scorers(scorer: ModelScorer) -> dict[Access, Scorer]:
    def own_edges(features: Tensor, opened: EdgeList | None) -> Tensor:
        assert opened is not None
        return scorer.own_edges(scorer.start(features, "own-edges"), opened)

    def public_graph(features: Tensor, edges: EdgeList | None) -> Tensor:
        assert edges is not None
        return scorer.public_graph(scorer.start(features, "public-graph"), edges)

    def fixed(access: Access) -> Scorer:
        return lambda features, _: scorer.without_edges(scorer.start(features, access))

    return {"own-edges": own_edges, "none": fixed("none"), "cached": fixed("cached"), "public-graph": public_graph}
