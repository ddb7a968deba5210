"""Every attack that fits on one trained method: what is seen under each access, and how well links are guessed from it.

And a promise put to the test: train with canary pairs that a coin put in, then let every attack guess the coins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList
from gcon.edges.graph import private_graph
from gcon.errors import InputError
from gcon.methods.method import Method, ScoreFunction
from gcon.methods.predictions import Access
from gcon.nodes import PublicNodes
from gcon.privacy.account import transcript
from gcon.privacy.randomness import Randomness
from gcon_lab.attacks.black_box import DISTANCES, InfluenceAttack, Kind, Similarity, taught
from gcon_lab.attacks.canaries import Guesses, draw_canaries, guess
from gcon_lab.attacks.pairs import LabelledPairs, sample_pairs
from gcon_lab.attacks.roc import Roc, roc_of
from gcon_lab.attacks.view import Attack, Clue, View
from gcon_lab.attacks.white_box import Replay, WhiteBox
from gcon_lab.audits.pairs import with_edges
from gcon_lab.experiments.attacks.clues import clues
from gcon_lab.methods.fitted import fit

RELEASED = "released"  # the access of whoever reads the model itself
Progress = Callable[[str], None]
UNCOVERED = ("own-edges", "full")  # what third parties must not see, and what nothing is promised about


@dataclass(frozen=True, eq=False, kw_only=True)
class PairSamples:
    """The pairs that attacks are measured on.

    Attributes:
        many: for attacks that cost little per pair.
        few: for attacks that ask the model again and again, or compute what it would have been.
        fewest: the same where little is to be learned: answers that read no edge, or a node's own edges openly.
    """

    many: LabelledPairs
    few: LabelledPairs
    fewest: LabelledPairs


def sample(edges: EdgeList, *, many: int) -> PairSamples:
    """So many linked, and as many unlinked pairs; a fifth and a thirtieth of them for the others."""
    sizes = (many, max(many // 5, 1), max(many // 30, 1))
    drawn = [sample_pairs(edges, size, seed=place) for place, size in enumerate(sizes)]
    return PairSamples(many=drawn[0], few=drawn[1], fewest=drawn[2])


@dataclass(frozen=True, eq=False)
class Measured:
    access: str
    attack: str
    roc: Roc


def views_of(
    scorers: Mapping[Access, ScoreFunction], features: Tensor, edges: EdgeList, released: tuple[Clue, ...]
) -> dict[str, View]:
    """What is seen under every access of a method; edges that everybody may know are no target."""
    found = {}
    for access, scorer in scorers.items():
        if access != "public-graph":
            found[str(access)] = _view(scorer, features, edges if access == "own-edges" else None)
    if released:
        anything = next(iter(found.values()))
        found[RELEASED] = View(features=features, posteriors=anything.posteriors, released=released)
    return found


def _view(scorer: ScoreFunction, features: Tensor, edges: EdgeList | None) -> View:
    def asked(changed: Tensor) -> Tensor:
        return torch.softmax(scorer(changed, edges).double(), dim=1)

    def answered(other: EdgeList) -> Tensor:
        return torch.softmax(scorer(features, other).double(), dim=1)

    return View(
        features=features,
        posteriors=asked(features),
        query=asked if _can_be_asked(asked, features) else None,
        answers_on=None if edges is None else answered,
    )


def _can_be_asked(query: Callable[[Tensor], Tensor], features: Tensor) -> bool:
    """Some models answer for the table of their training alone."""
    try:
        query(features + 1.0)
    except InputError:
        return False
    return True


def measured(view: View, access: str, drawn: PairSamples, rest: EdgeList) -> Iterator[Measured]:
    """Every attack that the view allows."""
    if access == RELEASED:
        yield _one(WhiteBox((rest,)), view, access, drawn.few)
        return
    for distance in DISTANCES:
        yield _one(Similarity(distance), view, access, drawn.many)
    half = torch.arange(len(drawn.many.linked)) < len(drawn.many.linked) // 2
    known, unknown = drawn.many.part(half), drawn.many.part(~half)
    kinds: tuple[Kind, ...] = ("logistic", "boosting")
    for kind in kinds:
        yield _one(taught(view, known.pairs, known.linked, kind=kind), view, access, unknown)
    if view.query is not None:
        yield _one(InfluenceAttack(), view, access, drawn.few if access in ("full", "cached") else drawn.fewest)
    if view.answers_on is not None:
        yield _one(Replay(rest), view, access, drawn.fewest)


def _one(attack: Attack, view: View, access: str, pairs: LabelledPairs) -> Measured:
    return Measured(access, attack.name, roc_of(attack.scores(view, pairs.pairs), pairs.linked))


def attack_all(
    scorers: Mapping[Access, ScoreFunction],
    features: Tensor,
    edges: EdgeList,
    drawn: PairSamples,
    *,
    released: tuple[Clue, ...] = (),
    progress: Progress = lambda stage: None,
) -> list[Measured]:
    found = []
    for access, view in views_of(scorers, features, edges, released).items():
        progress(f"attack, access {access}")
        found += list(measured(view, access, drawn, edges))
    return found


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
    for access, view in views_of(fitted.trained.score_functions, nodes.features, truth, clues(lines)).items():
        attacks: list[Attack] = [Similarity("cosine"), Similarity("correlation")]
        if access == RELEASED:
            attacks = [WhiteBox((edges, with_edges(edges, drawn.pairs)))]
        elif access in ("cached", "full") and view.query is not None:
            attacks.append(InfluenceAttack())  # without edges nothing travels
        elif view.answers_on is not None:
            attacks = [Replay(edges)]
        for attack in attacks:
            scores = attack.scores(view, drawn.pairs)
            area = roc_of(scores, drawn.inserted).area if 0 < int(drawn.inserted.sum()) < canaries else 0.5
            covered = access not in UNCOVERED and method.private
            yield CanaryResult(access, attack.name, covered, guess(scores, drawn.inserted, made), area)
