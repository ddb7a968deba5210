"""A promise put to the test: train with canary pairs that a coin put in, then let every attack guess the coins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gcon.edges.edge_list import EdgeList
from gcon.edges.graph import private_graph
from gcon.methods.method import Method
from gcon.nodes import PublicNodes
from gcon.privacy.account import transcript
from gcon.privacy.randomness import Randomness
from gcon_lab.attacks.canaries import Guesses, draw_canaries, guess
from gcon_lab.attacks.influence import Influence
from gcon_lab.attacks.roc import roc_of
from gcon_lab.attacks.similarity import Similarity
from gcon_lab.attacks.view import Attack
from gcon_lab.attacks.white_box import Replay, WhiteBox
from gcon_lab.audits.pairs import with_edges
from gcon_lab.experiments.attacks.evidence import evidence
from gcon_lab.experiments.attacks.measure import RELEASED, views_of
from gcon_lab.methods.fitted import fit

UNCOVERED = ("own-edges", "full")  # what third parties must not see, and what nothing is promised about


@dataclass(frozen=True)
class CanaryResult:
    """What one attack guessed under one access.

    Attributes:
        covered: whether the promise of the method is about what this attacker sees.
        area: under the ROC curve of the coins; 0.5 if all fell on one side.
    """

    access: str
    attack: str
    covered: bool
    guesses: Guesses
    area: float


def canary_run(
    method: Method, nodes: PublicNodes, edges: EdgeList, *, canaries: int, seed: int, randomness: Randomness
) -> Iterator[CanaryResult]:
    """One training, and every attack on its canaries; half of the coins are guessed.

    The attacker knows all edges but the canaries, and which pairs these are.

    Args:
        method: what is trained.
        nodes: public.
        edges: opened by the operator, or a benchmark's.
        canaries: how many pairs.
        seed: of pairs and coins. Noise has a source of its own.
        randomness: the source of the noise.
    """
    drawn = draw_canaries(edges, canaries, seed=seed)
    truth = drawn.into(edges)
    with transcript() as lines:
        graph = private_graph(nodes, truth.edge_index(), name="canaries")
        fitted = fit(method, graph, randomness=randomness)
    made = canaries // 2 // 2 * 2
    for access, view in views_of(fitted.trained.score_functions, nodes.features, truth, evidence(lines)).items():
        attacks: list[Attack] = [Similarity("cosine"), Similarity("correlation")]
        if access == RELEASED:
            attacks = [WhiteBox((edges, with_edges(edges, drawn.pairs)))]
        elif access in ("cached", "full") and view.query is not None:
            attacks.append(Influence())  # without edges nothing travels
        elif view.answers_on is not None:
            attacks = [Replay(edges)]
        for attack in attacks:
            scores = attack.scores(view, drawn.pairs)
            area = roc_of(scores, drawn.inserted).area if 0 < int(drawn.inserted.sum()) < canaries else 0.5
            covered = access not in UNCOVERED and method.private
            yield CanaryResult(access, attack.name, covered, guess(scores, drawn.inserted, made), area)
